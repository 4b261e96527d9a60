use compactd_api::compact::Counters;
use compactd_api::passes::Pass;
use compactd_api::{Host, Profile, Trigger};

use super::*;

fn kept(number: u64, outcome: Outcome) -> KeptPass {
    let item = PassItem {
        number,
        at: "2026-11-30T08:16:00Z".to_owned(),
        trigger: Trigger::Manual,
        outcome,
        level: None,
        profile: Profile::Standard,
        state: PassState::Answered,
        focus: outcome == Outcome::Escalate,
        reason: None,
        counters: Counters { results: 24, ..Counters::default() },
        report: None,
    };
    let pass = Pass { host: Host::Claude, session: "s".to_owned(), item, results: Vec::new() };
    KeptPass { pass, told: false, asked: false, finished: false, results_after: 24 }
}

fn track(number: u64, outcome: Outcome) -> Track {
    let mut track = Track::default();
    let _written = track.answered(kept(number, outcome));
    track
}

fn state(track: &Track, number: u64) -> PassState {
    track.get(number).unwrap().pass.item.state
}

fn tells(track: &mut Track, boundaries: Option<u64>) -> Option<u64> {
    track.started(boundaries, |_| true).0.map(|kept| kept.pass.item.number)
}

/// What can come after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Report,
    Before,
    AfterEmpty,
    AfterSummary,
    Started,
}

/// Every order of these events, each given once or twice.
fn orders(events: &[Event]) -> Vec<Vec<Event>> {
    if events.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &event) in events.iter().enumerate() {
        let mut rest = events.to_vec();
        rest.remove(at);
        for order in orders(&rest) {
            all.push([&[event][..], &order].concat());
            all.push([&[event, event][..], &order].concat());
        }
    }
    all
}

fn told(track: &mut Track, order: &[Event], report: ReportOutcome, seen: Option<u64>) -> usize {
    let mut told = 0;
    for event in order {
        match event {
            Event::Report => {
                track.reported(3, &PassReport::of(report)).unwrap();
            }
            Event::Before => {
                let _focus = track.before(seen.map(|seen| seen + 1));
            }
            Event::AfterEmpty => {
                let _changed = track.after(true, seen);
            }
            Event::AfterSummary => {
                let _changed = track.after(false, seen);
            }
            Event::Started => told += usize::from(tells(track, seen).is_some()),
        }
    }
    told
}

#[test]
fn an_answered_compaction_is_told_once_in_any_order() {
    for seen in [None, Some(2), Some(3)] {
        for order in orders(&[Event::Report, Event::AfterEmpty, Event::Started]) {
            let mut track = track(3, Outcome::Apply);
            assert_eq!(told(&mut track, &order, ReportOutcome::Applied, seen), 1, "{order:?}");
            assert_eq!(state(&track, 3), PassState::Applied, "{order:?}");
        }
        // Without the report the hooks are proof enough.
        for order in orders(&[Event::AfterEmpty, Event::Started]) {
            let mut track = track(3, Outcome::Apply);
            assert_eq!(told(&mut track, &order, ReportOutcome::Applied, seen), 1, "{order:?}");
            assert_eq!(state(&track, 3), PassState::Applied, "{order:?}");
        }
    }
}

#[test]
fn a_handed_over_compaction_is_told_once() {
    use Event::{AfterSummary, Before, Report, Started};
    for order in orders(&[Report, AfterSummary, Started]) {
        let order = [&[Before][..], &order].concat();
        let mut track = track(3, Outcome::Escalate);
        assert_eq!(told(&mut track, &order, ReportOutcome::HandedOver, Some(2)), 1, "{order:?}");
        assert_eq!(state(&track, 3), PassState::HandedOver, "{order:?}");
    }
}

#[test]
fn what_the_host_did_without_us_is_not_told() {
    use Event::{AfterSummary, Before, Report, Started};
    // The caller gave up on the answer: the host's own compaction ran.
    for order in orders(&[Started, AfterSummary]) {
        let order = [&[Before][..], &order].concat();
        let mut track = track(3, Outcome::Apply);
        assert_eq!(told(&mut track, &order, ReportOutcome::Left, Some(2)), 0, "{order:?}");
        assert_eq!(state(&track, 3), PassState::Left);
    }
    let mut left = track(3, Outcome::Apply);
    assert_eq!(told(&mut left, &[Report, Started], ReportOutcome::Left, Some(2)), 0);
    // A skipped pass is no compaction at all.
    assert_eq!(tells(&mut track(3, Outcome::Skip), Some(2)), None);
    // A later compaction of the host, in which nobody asked us.
    assert_eq!(tells(&mut track(3, Outcome::Apply), Some(4)), None);
    let mut old = track(3, Outcome::Apply);
    assert!(old.started(None, |_| false).0.is_none());
}

/// An escalate answer that the caller says it handed over.
fn handed() -> Track {
    let mut track = track(3, Outcome::Escalate);
    track.reported(3, &PassReport::of(ReportOutcome::HandedOver)).unwrap();
    track
}

#[test]
fn only_a_report_of_this_attempt_keeps_the_focus_text_back() {
    for number in [None, Some(3)] {
        let mut track = handed();
        assert!(track.before(number).0);
        assert!(!track.before(number).0, "another attempt, or the same hook twice");
    }
    assert!(!track(3, Outcome::Escalate).before(Some(3)).0, "nobody said so");
    assert!(!track(3, Outcome::Apply).before(Some(3)).0);
    assert!(!Track::default().before(Some(1)).0);
    let mut other = track(3, Outcome::Escalate);
    other.reported(3, &PassReport::of(ReportOutcome::Left)).unwrap();
    assert!(!other.before(Some(3)).0, "it said otherwise");
    // Of an answer without a focus text none was handed over.
    let mut bare = kept(3, Outcome::Escalate);
    bare.pass.item.focus = false;
    let mut without = Track::of([bare]);
    without.reported(3, &PassReport::of(ReportOutcome::HandedOver)).unwrap();
    assert!(!without.before(Some(3)).0);
}

#[test]
fn a_stale_handover_keeps_nothing_back() {
    assert!(!handed().before(Some(4)).0, "another compaction");
    let mut done = handed();
    let _changed = done.after(false, Some(2));
    assert!(!done.before(Some(3)).0);
    let mut again = handed();
    let _changed = again.answered(kept(3, Outcome::Escalate));
    assert!(!again.before(Some(3)).0);
    // The report came late: behind the hook that it was meant for.
    let mut late = track(3, Outcome::Escalate);
    assert!(!late.before(Some(3)).0);
    late.reported(3, &PassReport::of(ReportOutcome::HandedOver)).unwrap();
    assert!(!late.before(Some(3)).0);
}

#[test]
fn a_later_compaction_does_not_tell_the_one_before() {
    let mut track = track(3, Outcome::Apply);
    assert_eq!(track.before(Some(4)), (false, Changed::one(3)));
    assert_eq!(track.before(Some(4)), (false, Changed::default()));
    // The transcript does not show its boundary yet.
    assert_eq!(tells(&mut track, Some(3)), None);
}

#[test]
fn a_second_answer_replaces_the_first() {
    let mut track = track(3, Outcome::Apply);
    track.reported(3, &PassReport::of(ReportOutcome::Left)).unwrap();
    assert_eq!(track.answered(kept(3, Outcome::Escalate)).written, [3]);
    assert_eq!(track.newest_first().count(), 1);
    assert_eq!(state(&track, 3), PassState::Answered);
}

#[test]
fn the_newest_twenty_stay() {
    let mut track = Track::default();
    for number in 1..=25 {
        let changed = track.answered(kept(number, Outcome::Apply));
        assert!(changed.written.contains(&number), "{number}: {changed:?}");
        let gone: Vec<u64> = number.checked_sub(20).filter(|gone| *gone > 0).into_iter().collect();
        assert_eq!(changed.removed, gone);
    }
    let numbers: Vec<u64> = track.newest_first().map(|kept| kept.pass.item.number).collect();
    assert_eq!(numbers, (6..=25).rev().collect::<Vec<_>>());
    // The passes before the newest are over: its boundaries say so.
    assert_eq!(state(&track, 24), PassState::Applied);
    assert_eq!(state(&track, 25), PassState::Answered);
    // The file was replaced by another history.
    let changed = track.answered(kept(7, Outcome::Apply));
    assert_eq!(changed.removed, (8..=25).collect::<Vec<_>>());
    assert_eq!(track.newest().unwrap().pass.item.number, 7);
}

#[test]
fn a_report_is_idempotent_and_needs_its_pass() {
    let mut track = track(3, Outcome::Apply);
    let report = PassReport { millis: Some(6.3), ..PassReport::of(ReportOutcome::Applied) };
    assert_eq!(track.reported(3, &report), Some(Changed::one(3)));
    assert_eq!(track.reported(3, &report), Some(Changed::default()));
    assert_eq!(track.reported(4, &report), None);
    // What the caller says counts more than what the hooks suggest.
    let _changed = track.after(false, Some(3));
    assert_eq!(state(&track, 3), PassState::Applied);
}

#[test]
fn the_end_of_a_session_settles() {
    let mut open = track(3, Outcome::Apply);
    assert_eq!(open.closed(Some(2)).written, [3]);
    assert_eq!(state(&open, 3), PassState::Unknown);
    let mut seen = track(3, Outcome::Escalate);
    assert_eq!(seen.closed(Some(3)).written, [3]);
    assert_eq!((state(&seen, 3), seen.compaction()), (PassState::HandedOver, 3));
    assert_eq!(track(3, Outcome::Apply).compaction(), 0);
}

#[test]
fn what_the_passes_left() {
    let mut track = track(3, Outcome::Apply);
    assert_eq!(track.applied(), [(3, 24)]);
    // The next one was answered, perhaps twice: the one before is there all the same.
    track.answered(kept(4, Outcome::Escalate));
    assert_eq!(track.applied(), [(3, 24)]);
    track.answered(kept(4, Outcome::Apply));
    assert_eq!(track.applied(), [(3, 24), (4, 24)]);
    track.reported(3, &PassReport::of(ReportOutcome::Left)).unwrap();
    assert_eq!(track.applied(), [(4, 24)]);
    assert_eq!(self::track(3, Outcome::Escalate).applied(), []);
}
