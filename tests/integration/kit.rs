//! What the tests of this binary share.

use compactd_core::index::Index;
use compactd_core::record::Host;
use compactd_core::rules::Pins;
use compactd_core::settings::Settings;
use compactd_tests::compare::{Question, difference};
use compactd_tests::session::{Kind, Rng, Session, session, shown, shrunk};

/// Settings under which short sessions have something to decide, and the defaults.
pub(crate) fn settings(rng: &mut Rng) -> Settings {
    let of = |recent_results, pin_last, generic_above, rerunnable_chars| Settings {
        recent_results,
        pin_last,
        generic_above,
        rerunnable_chars,
        ..Settings::default()
    };
    match rng.below(6) {
        0 => Settings::default(),
        1 => of(0, 0, 3, 20),
        2 => of(3, 4, 5, 200),
        _ => of(1, 2, 3, 60),
    }
}

pub(crate) fn pins(rng: &mut Rng) -> Pins {
    let mut pins = Pins::default();
    if rng.chance(30) {
        pins.ids.insert(format!("call_{}", 1 + rng.below(20)));
        pins.files.insert("/work/app/src/cart.rs".to_owned());
    }
    pins
}

/// A case: a session with settings and pins, all from its seed.
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) session: Session,
    pub(crate) settings: Settings,
    pub(crate) pins: Pins,
}

impl Case {
    pub(crate) fn new(seed: u64, steps: usize, kind: Option<Kind>) -> Self {
        let mut rng = Rng::new(seed ^ 0xC0FFEE);
        let host = if seed % 5 < 3 { Host::Claude } else { Host::Codex };
        let kind = kind.unwrap_or(if rng.chance(20) { Kind::Plain } else { Kind::Odd });
        let steps = steps / 2 + rng.below(steps);
        let settings = settings(&mut rng);
        let pins = pins(&mut rng);
        Self { seed, session: session(host, kind, seed, steps), settings, pins }
    }

    pub(crate) fn index(&self) -> Index {
        Index::new(self.session.host, &self.settings)
    }
}

pub(crate) fn fed(host: Host, settings: &Settings, lines: &[impl AsRef<[u8]>]) -> Index {
    let mut index = Index::new(host, settings);
    for line in lines {
        index.apply(line.as_ref(), 0);
    }
    index.settle();
    index
}

/// How the index differs from the rescan of the same lines, for a question.
pub(crate) fn differs(question: &Question, index: &Index, lines: &[Vec<u8>]) -> Option<String> {
    let slices: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let rescan = question.rescan(index.host(), &slices);
    difference(&question.ask(index, lines), &rescan)
}

/// A failure in few lines: those of a case that cannot go.
pub(crate) fn report(
    case: &Case,
    lines: &[Vec<u8>],
    check: impl Fn(&[Vec<u8>]) -> Result<(), String>,
) -> String {
    let few = shrunk(lines, |lines| check(lines).is_err());
    let why = check(&few).err().unwrap_or_default();
    format!("seed {} {:?} {:?}\n{why}\n{}", case.seed, case.settings, case.pins, shown(&few))
}

/// The seeds of a test: as many as `COMPACTD_CASES` says, or the default.
pub(crate) fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("COMPACTD_SEED").unwrap_or(0);
    first..first + number("COMPACTD_CASES").unwrap_or(default)
}
