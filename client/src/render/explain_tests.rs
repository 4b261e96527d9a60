use compactd_api::sessions::ShortenedText;
use compactd_api::{CallFate, History, Host, Level, Profile, Text};

use super::*;

fn result(
    id: &'static str,
    decision: DecisionKind,
    chars: u64,
    reason: &'static str,
) -> ExplainedResult<'static> {
    ExplainedResult {
        id: Text::from(id),
        tool: Text::from("Bash"),
        chars,
        tokens_est: chars / 3,
        decision,
        call: CallFate::Kept,
        rule: Text::from("r"),
        reason: Text::from(reason),
        left: None,
    }
}

fn explain() -> Explain<'static> {
    use DecisionKind::{Drop, Keep, Truncate};
    Explain {
        host: Host::Claude,
        session: Text::from("s"),
        profile: Profile::Standard,
        history: History::Context,
        lines: 1_200,
        messages: 14,
        results: vec![
            result("small", Drop, 10, "none of its terms was used later"),
            result("large", Drop, 9_000, "none of its terms was used later"),
            result("status", Truncate, 900, "cheap to run again"),
            result("a", Keep, 5, "used later: 1 of its terms"),
            result("b", Keep, 6, "used later: 7 of its terms"),
            result("c", Keep, 70, "is an error"),
        ],
        totals: Totals {
            results: 6,
            kept: 3,
            truncated: 1,
            dropped: 2,
            pinned: 1,
            chars_before: 182_000,
            chars_after: 121_000,
            tokens_before: 70_000,
            tokens_after: 50_000,
        },
        escalation: None,
    }
}

#[test]
fn the_summary_says_how_much_is_freed() {
    let expected = "6 results, 1 cut, 2 dropped: 182k → 121k characters, about 34% freed";
    assert_eq!(summary(&explain().totals), expected);
    assert_eq!(summary(&Totals::default()), "no tool results yet: nothing to free");
}

#[test]
fn groups_show_the_largest_and_count_the_rest() {
    let text = view(&explain(), Detail::Largest(1), &Ui::plain(100));
    let expected = "\
6 results, 1 cut, 2 dropped: 182k → 121k characters, about 34% freed
claude s, profile standard, history context: 1,200 lines, 14 messages, about 70k → 50k tokens

goes: 2, 9k characters
  result  tool  chars  why
  large   Bash  9,000  none of its terms was used later
  and 1 smaller (explain --all lists them)

is cut: 1, 900 characters
  result  tool  chars  why
  status  Bash    900  cheap to run again

stays: 3, 81 characters
  results  chars  why
        1     70  is an error
        2     11  used later: 1 to 7 of its terms
";
    assert_eq!(text, expected);
}

#[test]
fn all_lists_every_result_in_order() {
    let text = view(&explain(), Detail::All, &Ui::plain(100));
    let ids: Vec<&str> =
        text.lines().skip(4).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(ids, ["small", "large", "status", "a", "b", "c"]);
}

#[test]
fn an_id_cannot_steer_the_terminal() {
    let mut explain = explain();
    explain.results[1].id = Text::from("\u{1b}[2J");
    explain.session = Text::from("\u{1b}c");
    for detail in [Detail::All, Detail::Largest(5)] {
        assert!(!view(&explain, detail, &Ui::plain(100)).contains('\u{1b}'));
    }
}

#[test]
fn a_budget_has_a_line_of_its_own() {
    let mut explain = explain();
    let text = ShortenedText { line: 3, chars: 9_000, keep: 4_000 };
    explain.escalation =
        Some(Escalation { budget: 60_000, left: 58_000, level: Level::Texts, texts: vec![text] });
    let text = view(&explain, Detail::Largest(1), &Ui::plain(100));
    let line = text.lines().nth(2).unwrap();
    assert_eq!(
        line,
        "budget 60k tokens, level texts: about 58k left, one text shortened by 5k characters"
    );
}
