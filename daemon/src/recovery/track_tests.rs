use proptest::prelude::*;

use super::*;

/// What can happen to a thread, as far as its texts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// `PreCompact`.
    Before,
    /// The host writes the compaction down.
    Record,
    /// `SessionStart` with source `compact`.
    Compacted,
    /// A prompt or a tool's hook.
    GoesOn,
    /// The history is taken back to before the newest compaction.
    Back,
    /// The daemon starts again.
    Restart,
}

use Event::{Back, Before, Compacted, GoesOn, Record, Restart};

/// The host's side and ours.
#[derive(Debug, Default)]
struct Thread {
    seen: u64,
    track: Track,
    /// Every text ever written gets a number of its own, which stands in for its time.
    written: u64,
    /// What was handed out, in order: the number of the compaction, and which text.
    got: Vec<(u64, String)>,
}

impl Thread {
    fn take(&mut self, event: Event) {
        match event {
            Before => {
                self.written += 1;
                let number = self.track.before(self.seen, Some(self.written.to_string()));
                assert_eq!(number, self.seen + 1);
            }
            Record => self.seen += 1,
            Compacted => self.due(Moment::Compacted),
            GoesOn => self.due(Moment::GoesOn),
            Back => self.seen = self.seen.saturating_sub(1),
            Restart => {
                let bytes = super::super::files::print(&self.track).unwrap();
                self.track = super::super::files::parse(&bytes).unwrap();
            }
        }
        let count = self.track.texts().count();
        assert!(count <= KEPT, "{count}");
        if self.track.is_open() {
            let (number, stage) = self.track.stage(Some(self.seen)).unwrap();
            assert_eq!(stage == Stage::Pending, number <= self.seen);
        }
    }

    fn due(&mut self, moment: Moment) {
        let texts = self.track.clone();
        for number in self.track.due(self.seen, moment) {
            let text = texts.texts().find(|(kept, _)| *kept == number).unwrap().1.to_owned();
            self.got.push((number, text));
        }
    }

    fn run(events: &[Event]) -> Self {
        let mut thread = Self::default();
        for event in events {
            thread.take(*event);
        }
        thread
    }

    fn numbers(&self) -> Vec<u64> {
        self.got.iter().map(|(number, _)| *number).collect()
    }
}

/// Every order of these events, each given so often as `times` allows, from not at all on.
fn orders(events: &[(Event, usize)]) -> Vec<Vec<Event>> {
    let mut all = vec![Vec::new()];
    for (at, (event, left)) in events.iter().enumerate() {
        if *left == 0 {
            continue;
        }
        let mut rest = events.to_vec();
        rest[at].1 -= 1;
        for order in orders(&rest) {
            all.push([&[*event][..], &order].concat());
        }
    }
    all
}

/// What a compaction must give, told plainly: the text of the attempt that it completed.
fn expected(events: &[Event]) -> Vec<u64> {
    let mut seen = 0;
    let mut attempt = false;
    let mut waits: Vec<u64> = Vec::new();
    let mut got = Vec::new();
    for event in events {
        match event {
            Before => attempt = true,
            Record => {
                seen += 1;
                if attempt {
                    waits.push(seen);
                } else {
                    // Nothing stands between what waits and this one: it is out of date.
                    waits.clear();
                }
                attempt = false;
            }
            Compacted => got.append(&mut waits),
            GoesOn => {
                got.append(&mut waits);
                attempt = false;
            }
            Back | Restart => {}
        }
    }
    got
}

#[test]
fn one_compaction_in_every_order_of_hooks_however_often_they_come() {
    let orders = orders(&[(Before, 2), (Record, 1), (Compacted, 2), (GoesOn, 2)]);
    assert!(orders.len() > 1_000, "{}", orders.len());
    for order in orders {
        let thread = Thread::run(&order);
        assert_eq!(thread.numbers(), expected(&order), "{order:?}");
    }
}

#[test]
fn the_orders_of_the_host() {
    // Manual, and the next turn; before a turn; in mid-turn; a sub-agent's; two without a turn between.
    for (events, numbers) in [
        (&[Before, Record, Compacted, GoesOn][..], &[1][..]),
        (&[Before, Record, Compacted], &[1]),
        (&[Before, Record, GoesOn, GoesOn], &[1]),
        (&[Before, Record, Before, Record, Compacted, Compacted, GoesOn], &[1, 2]),
        // An attempt that came to nothing uses up no number.
        (&[Before, GoesOn, Before, Record, Compacted], &[1]),
        (&[Before, Before, Record, Compacted], &[1]),
        // The daemon was down when it began: nothing is said, not even what is left of before.
        (&[Record, Compacted, GoesOn], &[]),
        (&[Before, Record, Record, Compacted, GoesOn], &[]),
        (&[Before, GoesOn, Record, Compacted, GoesOn], &[]),
        // It starts again in between.
        (&[Before, Restart, Record, Restart, Compacted, Restart, Compacted], &[1]),
    ] {
        assert_eq!(Thread::run(events).numbers(), numbers, "{events:?}");
    }
}

#[test]
fn the_text_is_that_of_the_newest_attempt() {
    let thread = Thread::run(&[Before, GoesOn, Before, Before, Record, Before, Compacted]);
    assert_eq!(thread.got, [(1, "3".to_owned())]);
}

#[test]
fn a_history_that_is_taken_back_counts_again() {
    let events = [Before, Record, Compacted, Back, Before, Record, Compacted];
    assert_eq!(Thread::run(&events).got, [(1, "1".to_owned()), (1, "2".to_owned())]);
    // What was not delivered of the other history never is.
    let events = [Before, Record, Back, GoesOn, Record, Compacted];
    assert_eq!(Thread::run(&events).got, []);
}

#[test]
fn what_did_not_go_out_is_due_again() {
    let mut track = Track::default();
    track.before(0, Some("a".to_owned()));
    track.before(1, Some("b".to_owned()));
    let due = track.due(2, Moment::Compacted);
    assert_eq!((due.as_slice(), track.is_open()), (&[1, 2][..], false));
    track.take_back(&due);
    assert_eq!(track.due(2, Moment::GoesOn), due);
    track.take_back(&[]);
    assert_eq!(track.due(2, Moment::GoesOn), [] as [u64; 0]);
}

#[test]
fn stages() {
    let mut track = Track::default();
    assert_eq!(track.stage(Some(0)), None);
    track.before(0, None);
    assert_eq!((track.stage(Some(0)), track.is_open()), (None, false));
    track.before(0, Some("a".to_owned()));
    assert_eq!(track.stage(None), Some((1, Stage::Kept)));
    assert_eq!(track.stage(Some(0)), Some((1, Stage::Kept)));
    assert_eq!(track.stage(Some(1)), Some((1, Stage::Pending)));
    track.due(1, Moment::Compacted);
    assert_eq!(track.stage(None), Some((1, Stage::Delivered)));
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Before), 3 => Just(Record), 3 => Just(Compacted), 2 => Just(GoesOn), 1 => Just(Restart)
    ]
}

proptest! {
    #[test]
    fn every_text_goes_out_once_and_behind_its_compaction(
        events in prop::collection::vec(event(), 0..60)
    ) {
        let thread = Thread::run(&events);
        // More texts than are kept may wait: the oldest go.
        let mut wanted = expected(&events);
        wanted.retain(|number| thread.numbers().contains(number) || !crowded(&events, *number));
        prop_assert_eq!(thread.numbers(), wanted);
        let mut texts: Vec<&String> = thread.got.iter().map(|(_, text)| text).collect();
        texts.sort();
        texts.dedup();
        prop_assert_eq!(texts.len(), thread.got.len());
    }

    #[test]
    fn no_text_goes_out_twice_even_where_histories_are_taken_back(
        events in prop::collection::vec(prop_oneof![8 => event(), 1 => Just(Back)], 0..80)
    ) {
        let thread = Thread::run(&events);
        let mut texts: Vec<&String> = thread.got.iter().map(|(_, text)| text).collect();
        texts.sort();
        texts.dedup();
        prop_assert_eq!(texts.len(), thread.got.len());
    }
}

/// Whether so many attempts followed on compaction `number` before it could go out that its text went.
fn crowded(events: &[Event], number: u64) -> bool {
    let mut seen = 0;
    let mut later = std::collections::BTreeSet::new();
    for event in events {
        match event {
            Before if seen >= number => {
                later.insert(seen + 1);
            }
            Record => seen += 1,
            Compacted | GoesOn if seen >= number => return later.len() >= KEPT,
            _ => {}
        }
    }
    false
}
