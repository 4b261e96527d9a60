use super::*;
use crate::index::Index;
use crate::settings::Settings;

fn fed(host: Host, lines: &[String]) -> Index {
    let mut index = Index::new(host, &Settings::default());
    for line in lines {
        index.apply(line.as_bytes(), 0);
    }
    index.settle();
    index
}

/// A transcript of Claude Code, written row by row.
#[derive(Default)]
struct Claude {
    lines: Vec<String>,
    leaf: String,
}

impl Claude {
    fn row(&mut self, parent: &str, kind: &str, message: &str) -> String {
        let uuid = format!("u{}", self.lines.len());
        let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
        self.lines.push(format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"message":{message}}}"#
        ));
        self.leaf = uuid.clone();
        uuid
    }

    fn answer(&mut self, id: &str, model: &str, (input, output): (u64, u64)) {
        let parent = self.leaf.clone();
        self.row(&parent, "assistant", &format!(
            r#"{{"id":"{id}","model":"{model}","content":[{{"type":"tool_use","id":"c{id}{output}","name":"Read","input":{{}}}}],"usage":{{"input_tokens":3,"cache_read_input_tokens":{},"output_tokens":{output}}}}}"#,
            input - 3
        ));
    }

    fn result(&mut self, text: &str, more: &str) {
        let parent = self.leaf.clone();
        self.row(&parent, "user", &format!(
            r#"{{"content":[{{"type":"tool_result","tool_use_id":"c","content":[{{"type":"text","text":"{text}"}}{more}]}}]}}"#
        ));
    }

    fn measured(&self) -> (u64, Interval) {
        fed(Host::Claude, &self.lines).meter().measured()
    }
}

const OPUS: &str = "claude-opus-4-5-20251101";

#[test]
fn priors_by_name() {
    let of = |model| Ratio::of(Host::Claude, model).thousandths();
    for (model, ratio) in [
        (OPUS, 2_720),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 2_650),
        ("claude-opus-5[1m]", 2_430),
        ("claude-opus-5-20270101", 2_430),
        ("claude-opus-4-20250514", 2_400),
        ("claude-opus-55", 2_400),
        ("claude-sonnet-4-51", 2_400),
        ("some-model", 2_400),
    ] {
        assert_eq!(of(Some(model)), ratio, "{model}");
    }
    assert_eq!(of(None), 2_400);
    assert_eq!(Ratio::of(Host::Codex, Some(OPUS)).thousandths(), 3_700);
    assert_eq!(Ratio(2_500).tokens(5_000), 2_000);
    assert_eq!(Ratio(2_500).tokens(0), 0);
}

#[test]
fn two_prompts_measure_what_came_between() {
    let mut session = Claude::default();
    session.answer("m1", OPUS, (10_000, 8));
    // The same message again: its usage counts once, and the larger output is the true one.
    session.answer("m1", OPUS, (10_000, 200));
    session.result(&"x".repeat(6_000), "");
    session.answer("m2", OPUS, (12_200, 5));
    let wanted = Interval { chars: 6_000, result_chars: 6_000, results: 1, tokens: 2_000 };
    assert_eq!(session.measured(), (1, wanted));
    // One ratio of 3.0 against three votes of 2.72 changes nothing yet; four do.
    let ratio = |session: &Claude| fed(Host::Claude, &session.lines).ratio().thousandths();
    assert_eq!(ratio(&session), 2_720);
    for turn in 3..=6 {
        session.result(&"x".repeat(6_000), "");
        session.answer(&format!("m{turn}"), OPUS, (12_200 + (turn - 2) * 2_005, 5));
    }
    assert_eq!(ratio(&session), 3_000);
}

#[test]
fn intervals_that_say_nothing_are_left_out() {
    let interval = |between: &dyn Fn(&mut Claude), prompt: u64| {
        let mut session = Claude::default();
        session.answer("m0", OPUS, (9_000, 5));
        session.answer("m1", OPUS, (10_000, 200));
        between(&mut session);
        session.answer("m2", OPUS, (prompt, 5));
        session.measured().0
    };
    let read = |session: &mut Claude| session.result(&"x".repeat(6_000), "");
    assert_eq!(interval(&read, 12_200), 1);
    assert_eq!(interval(&read, 10_200), 0, "nothing was added");
    assert_eq!(interval(&read, 9_000), 0, "the prompt became smaller");
    let image = |session: &mut Claude| {
        session.result(&"x".repeat(6_000), r#",{"type":"image","source":{}}"#);
    };
    assert_eq!(interval(&image, 12_200), 0, "an image");
    let boundary = |session: &mut Claude| {
        session.lines.push(
            r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null}"#.into(),
        );
        session.leaf = "b".into();
        read(session);
    };
    assert_eq!(interval(&boundary, 12_200), 0, "a boundary");
    let rewind = |session: &mut Claude| {
        session.leaf = "u0".into();
        read(session);
    };
    assert_eq!(interval(&rewind, 12_200), 0, "a rewind");
    let synthetic = |session: &mut Claude| {
        let leaf = session.leaf.clone();
        session.row(&leaf, "assistant", r#"{"id":"s","model":"<synthetic>","content":"x"}"#);
        read(session);
    };
    assert_eq!(interval(&synthetic, 12_200), 0, "an answer without usage");
    let other = |session: &mut Claude| {
        read(session);
        session.answer("m9", "claude-sonnet-5", (11_000, 5));
    };
    assert_eq!(interval(&other, 12_200), 0, "another model");
}

#[test]
fn ratios_that_no_model_has_do_not_count() {
    for (chars, tokens, counts) in [
        (6_000, 2_000, true),
        (6_000, 900, false),
        (6_000, 5_100, false),
        (1_999, 700, false),
        (2_000, 700, true),
    ] {
        let mut session = Claude::default();
        session.answer("m0", OPUS, (10_000, 5));
        let mut prompt = 10_005;
        for turn in 1..=8 {
            session.result(&"x".repeat(chars), "");
            prompt += tokens;
            session.answer(&format!("m{turn}"), OPUS, (prompt, 5));
            prompt += 5;
        }
        let index = fed(Host::Claude, &session.lines);
        assert_eq!(index.meter().measured().0, 8);
        assert_eq!(index.ratio().thousandths() != 2_720, counts, "{chars} {tokens}");
    }
}

#[test]
fn the_newest_ratios_count() {
    let mut meter = Meter::new(Host::Claude);
    meter.ratios = vec![3_000; RATIOS];
    let text = "x".repeat(4_000);
    for prompt in 0..RATIOS as u64 {
        meter.request = Some(Request { input: 0, output: prompt, ..Request::default() });
        meter.between.item(&Item::Text(text.as_str().into()));
        meter.close(prompt + 2_000);
        assert_eq!(meter.ratios.len(), RATIOS);
    }
    assert_eq!(meter.ratio(), Ratio(2_000));
}

fn item(payload: &str) -> String {
    format!(r#"{{"type":"response_item","payload":{payload}}}"#)
}

fn call() -> String {
    item(r#"{"type":"function_call","call_id":"c","name":"shell","arguments":"{}"}"#)
}

fn output(chars: usize) -> String {
    let text = "x".repeat(chars);
    item(&format!(r#"{{"type":"function_call_output","call_id":"c","output":"{text}"}}"#))
}

fn count(input: u64, output: u64) -> String {
    format!(
        r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{input},"output_tokens":{output},"total_tokens":{input}}}}}}}}}"#
    )
}

#[test]
fn codex_in_the_order_of_old_and_new_versions() {
    let old = [
        call(),
        count(1_000, 10),
        output(4_000),
        call(),
        count(2_010, 10),
        count(2_010, 10),
        output(8_000),
        call(),
        count(4_020, 10),
    ];
    let new = [
        call(),
        output(4_000),
        count(1_000, 10),
        call(),
        output(8_000),
        count(2_010, 10),
        count(2_010, 10),
        call(),
        output(100),
        count(4_020, 10),
    ];
    let wanted = Interval { chars: 8_000, result_chars: 8_000, results: 1, tokens: 2_000 };
    for lines in [&old[..], &new[..]] {
        let index = fed(Host::Codex, lines);
        assert_eq!(index.meter().measured(), (2, wanted));
        assert_eq!(index.meter().ratios, [4_000, 4_000]);
    }
    for odd in [
        r#"{"type":"compacted","payload":{"message":"s"}}"#.to_owned(),
        r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}"#.to_owned(),
        // Behind a compaction: the host's own estimate, as a total only.
        count(1_500, 0),
    ] {
        let mut lines = old.to_vec();
        lines.insert(2, odd);
        assert_eq!(fed(Host::Codex, &lines).meter().measured().0, 1);
    }
}

#[test]
fn a_snapshot_has_the_calibration() {
    let mut session = Claude::default();
    session.answer("m1", OPUS, (10_000, 8));
    session.result(&"x".repeat(6_000), "");
    session.answer("m2", OPUS, (12_200, 5));
    session.result(&"x".repeat(600), "");
    let index = fed(Host::Claude, &session.lines);
    let again = Index::decode(&index.encode(), &Settings::default()).unwrap();
    assert_eq!(index.meter(), again.meter());
    assert_eq!(again.meter().ratios.len(), 1);
}

#[test]
fn a_ratio_fits_what_was_counted() {
    let ratio = Ratio::of(Host::Codex, None);
    assert_eq!(ratio.fitted(3_700, 1_000), ratio);
    assert_eq!(ratio.fitted(3_700, 5_000), ratio);
    assert_eq!(ratio.fitted(3_700, 500).tokens(3_700), 500);
    assert_eq!(ratio.fitted(0, 0), ratio);
    assert_eq!(ratio.fitted(u64::MAX, 1).thousandths(), u16::MAX);
}
