//! Generated sessions of both hosts: a small vocabulary, so that terms collide, become generic and
//! are used later, and every odd thing that a transcript may hold.
//!
//! A session is its seed: the same seed gives the same lines on every machine.

mod claude;
mod codex;
mod words;

use compactd_core::record::Host;

/// A generated transcript.
#[derive(Debug, Clone)]
pub struct Session {
    pub host: Host,
    /// Its lines, without their newlines.
    pub lines: Vec<Vec<u8>>,
}

/// What a session may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole rows that hang on each other, as a host writes them in one go.
    Plain,
    /// Also rewinds, boundaries, copies, torn lines and the like.
    Odd,
}

/// The session of a seed, about `steps` calls and texts long.
#[must_use]
pub fn session(host: Host, kind: Kind, seed: u64, steps: usize) -> Session {
    let mut rng = Rng::new(seed);
    let lines = match host {
        Host::Claude => claude::lines(&mut rng, kind, steps),
        Host::Codex => codex::lines(&mut rng, kind, steps),
    };
    Session { host, lines }
}

/// A small generator of random numbers (splitmix64).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end` (0 if that is 0).
    pub fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        usize::try_from(self.number() % end).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// The lines without those that can go while `fails` stays true: for reports.
pub fn shrunk(lines: &[Vec<u8>], mut fails: impl FnMut(&[Vec<u8>]) -> bool) -> Vec<Vec<u8>> {
    let mut left = lines.to_vec();
    let mut step = left.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let before = left.len();
        while at < left.len() {
            let mut fewer = left.clone();
            fewer.drain(at..(at + step).min(left.len()));
            if fails(&fewer) {
                left = fewer;
            } else {
                at += step;
            }
        }
        if step == 1 && left.len() == before {
            return left;
        }
        step = (step / 2).max(1);
    }
}

/// Lines as text, for reports.
#[must_use]
pub fn shown(lines: &[Vec<u8>]) -> String {
    lines.iter().map(|line| String::from_utf8_lossy(line).into_owned() + "\n").collect()
}
