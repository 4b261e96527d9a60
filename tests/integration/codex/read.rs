//! Rollouts that the real host wrote: the index reads them as the rescan does, and holds what the
//! host sends.

use std::path::Path;

use compactd_core::index::{History, Index};
use compactd_core::record::Host;
use compactd_core::rules::{Decision, Pins, Profile};
use compactd_core::settings::Settings;
use compactd_tests::compare::{Question, difference};
use compactd_tests::harness::host::codex::scenario::{
    CANARY, SHORT_PROMPT, Tools, codex_work, short_work,
};
use compactd_tests::harness::host::codex::{Call, Codex, Kind, Request, Responses, Step, wire};
use compactd_tests::harness::host::{Gate, codex};
use compactd_tests::harness::{Home, eventually};
use compactd_transcript::load::for_each_line;
use serde_json::json;

/// Settings under which short sessions have something to decide, and the defaults.
fn settings() -> [Settings; 2] {
    let eager = Settings {
        recent_results: 0,
        pin_last: 0,
        generic_above: 3,
        rerunnable_chars: 20,
        ..Settings::default()
    };
    [Settings::default(), eager]
}

/// At how many places of a rollout index and rescan are compared.
const PLACES: usize = 24;

/// That the index says of a thread what the rescan says, while it grows and in the end; gives how
/// many results there are then, and the index by default settings.
#[track_caller]
fn assert_as_rescan(rollout: &Path) -> (usize, Index) {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let loaded = for_each_line(rollout, None, |host, _, line| {
        assert_eq!(host, Host::Codex);
        lines.push(line.to_vec());
    });
    let loaded = loaded.unwrap();
    assert_eq!((loaded.gap, loaded.too_long, loaded.is_torn), (None, 0, false));
    let slices: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let every = lines.len().div_ceil(PLACES);
    let mut results = 0;
    let mut indexes = settings().map(|settings| {
        let mut index = Index::new(Host::Codex, &settings);
        let questions = Question::all(&settings, &Pins::default());
        for (at, line) in lines.iter().enumerate() {
            index.apply(line, 0);
            if at % every != 0 && at + 1 != lines.len() {
                continue;
            }
            index.settle();
            for question in &questions {
                let held = question.ask(&index, &lines[..=at]);
                let rescanned = question.rescan(Host::Codex, &slices[..=at]);
                if let Some(why) = difference(&held, &rescanned) {
                    panic!("{} line {at} {question:?}\n{why}", rollout.display());
                }
                results = held.verdicts.len();
            }
        }
        index
    });
    let [index, _] = &mut indexes;
    (results, std::mem::replace(index, Index::new(Host::Codex, &Settings::default())))
}

/// That the results in the index's context are those of a request, with their lengths.
#[track_caller]
fn assert_as_sent(index: &Index, request: &Request) {
    let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
    let held: Vec<(String, usize)> =
        pass.iter().map(|decided| (decided.id.to_owned(), decided.chars as usize)).collect();
    let sent = wire::results(&request.body);
    let sent: Vec<(String, usize)> =
        sent.into_iter().map(|sent| (sent.id, sent.text.chars().count())).collect();
    assert_eq!(held, sent, "\n{}", wire::outline(&request.body));
}

#[test]
fn sessions_and_native_forks() {
    let Some(codex) = codex() else { return };
    for tools in Tools::ALL {
        let (home, api) = (Home::new(), Responses::start(short_work(tools)));
        let host = Codex::set_up(&codex, &home, &api, &tools.config());
        let first = host.exec(SHORT_PROMPT).good();
        assert_eq!(api.left(), 0);
        assert!(wire::has(&first.last().body, CANARY));
        let (results, index) = assert_as_rescan(&host.rollout(&first.thread));
        assert_eq!(results, 7, "{tools:?}");
        assert_as_sent(&index, first.last());

        api.script([Step::calls([tools.shell("wc -c note.txt")]), Step::text("There.")]);
        let fork = host.fork(&first.thread, "How long is it?").good();
        assert_ne!(fork.thread, first.thread);
        let (results, index) = assert_as_rescan(&host.rollout(&fork.thread));
        assert_eq!(results, 8, "{tools:?}: the parent's are in the context");
        assert_as_sent(&index, fork.last());
    }
}

#[test]
fn native_compactions() {
    let Some(codex) = codex() else { return };
    for (provider, kind) in [("mock", Kind::CompactLocal), ("OpenAI", Kind::CompactRemote)] {
        let (home, api) = (Home::new(), Responses::start(short_work(Tools::Direct)));
        let config = Tools::Direct.config().provider(provider);
        let host = Codex::set_up(&codex, &home, &api, &config);
        let thread = host.exec(SHORT_PROMPT).good().thread;
        host.compact(&thread);
        assert_eq!(api.of_kind(kind).len(), 1, "{provider}");
        let (results, _) = assert_as_rescan(&host.rollout(&thread));
        assert_eq!(results, 7, "the whole history has them");
        api.script([Step::calls([Call::shell("cat note.txt")]), Step::text("Read.")]);
        let resumed = host.resume(&thread, "Read the note.").good();
        assert_eq!(resumed.kinds(), [Kind::Turn; 2], "{provider}");
        let (results, index) = assert_as_rescan(&host.rollout(&thread));
        assert_eq!(results, 8, "the whole history has them");
        // Only what came after the compaction is sent.
        assert_eq!(wire::results(&resumed.last().body).len(), 1);
        assert_as_sent(&index, resumed.last());
    }
}

#[test]
fn the_legacy_mode() {
    let Some(codex) = codex() else { return };
    let (home, api) = (Home::new(), Responses::start(short_work(Tools::Direct)));
    let host = Codex::new(&codex, &home, &api);
    let mut server = host.app_server();
    let thread = server.new_thread(&json!({"historyMode": "legacy"}));
    server.turn(&thread, SHORT_PROMPT);
    assert_eq!(api.left(), 0);
    let rollout = host.rollout(&thread);
    let text = std::fs::read_to_string(&rollout).unwrap();
    assert!(!text.contains("\"ordinal\""), "{text}");
    let (results, index) = assert_as_rescan(&rollout);
    assert_eq!(results, 7);
    assert_as_sent(&index, &api.last_turn());
    server.finish();
}

#[test]
fn sub_agents() {
    let Some(codex) = codex() else { return };
    let counted = Gate::new();
    let steps = [
        Step::calls([Call::spawn("Count the files.")]),
        Step::calls([Call::shell("ls -la")]).gate(&counted),
        Step::text("Counted."),
        Step::calls([Call::shell("ls"), Call::shell("cat none")]).for_agent(),
        Step::text("None.").for_agent(),
    ];
    let (home, api) = (Home::new(), Responses::start(steps));
    let host = Codex::new(&codex, &home, &api);
    let exec = host.start("Let somebody count.");
    let agents = |requests: &[std::sync::Arc<Request>]| {
        let of_agent: Vec<_> = requests.iter().filter(|request| request.is_agent).collect();
        (of_agent.len() == 2).then(|| std::sync::Arc::clone(of_agent[1]))
    };
    let last = api.wait_until("the agent's requests", agents);
    let rollout = host.rollout(&last.thread);
    let text = || std::fs::read_to_string(&rollout).unwrap();
    eventually("the agent is done", || text().contains("task_complete").then_some(()));
    counted.open();
    let run = exec.finish().good();
    let (results, index) = assert_as_rescan(&rollout);
    assert_eq!(results, 2);
    assert_as_sent(&index, &last);
    let (results, index) = assert_as_rescan(&host.rollout(&run.thread));
    assert_eq!(results, 2);
    assert_as_sent(&index, run.last());
}

#[test]
fn what_a_long_work_comes_to() {
    let Some(codex) = codex() else { return };
    for tools in Tools::ALL {
        let (home, api) = (Home::new(), Responses::start([]));
        let host = Codex::set_up(&codex, &home, &api, &tools.config());
        let work = codex_work(&host, tools, "core", 9);
        api.script(work.steps.clone());
        let run = host.exec("Mend all parts.").good();
        assert_eq!(api.left(), 0);
        let (results, index) = assert_as_rescan(&host.rollout(&run.thread));
        assert_eq!(results, work.calls.len());
        assert_as_sent(&index, run.last());
        let pass = index.pass(History::Context, Profile::Standard, &Pins::default());
        for decided in pass.iter() {
            let (id, decision) = (decided.id.to_owned(), decided.ruling.decision);
            let why = format!("{tools:?} {id} {decision:?} {}", decided.ruling.rule.name());
            if work.removed.contains(&id) {
                assert_eq!(decision, Decision::Drop, "{why}");
            } else if work.kept.contains(&id) {
                assert_eq!(decision, Decision::Keep, "{why}");
            }
        }
        assert!(work.removed.len() >= 14 && work.kept.len() >= 20, "{work:?}");
    }
}
