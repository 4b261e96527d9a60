//! The texts of one thread, and which compaction each is for: a state machine without files or clocks.
//!
//! The rollout is the truth: compaction number `n` has happened once it shows `n` compactions (`seen`).
//! No hook is believed without it, so hooks may be missing, come twice, or in any order.
//!
//! ```text
//! PreCompact (seen = n - 1) ──▶ kept n ──rollout shows n──▶ pending n ──handed out──▶ delivered n
//!                                 └─ the thread goes on without n: the attempt came to nothing
//! ```

use std::collections::BTreeMap;

/// So many of the newest texts of a thread are kept.
pub(super) const KEPT: usize = 3;

/// How far the newest text of a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Written; the compaction that it is for is not over.
    Kept,
    /// The compaction is over; the agent has not got it yet.
    Pending,
    /// The agent got it.
    Delivered,
}

/// What a hook says about the moment at which it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Behind a compaction, which may not be the newest.
    Compacted,
    /// The thread goes on: no compaction is under way.
    GoesOn,
}

/// The texts of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Track {
    /// Up to this compaction everything is delivered.
    delivered: u64,
    /// When each text was written, by the number of its compaction.
    texts: BTreeMap<u64, String>,
}

impl Track {
    /// A thread as it was kept.
    #[must_use]
    pub fn of(delivered: u64, texts: impl IntoIterator<Item = (u64, String)>) -> Self {
        Self { delivered, texts: texts.into_iter().collect() }
    }

    /// The newest compaction whose text was delivered; 0 if none was.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The texts that are kept, delivered ones too: number, and when it was written.
    pub fn texts(&self) -> impl Iterator<Item = (u64, &str)> {
        self.texts.iter().map(|(number, at)| (*number, at.as_str()))
    }

    /// Whether there is a text that may have to be delivered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.texts.keys().next_back().is_some_and(|newest| *newest > self.delivered)
    }

    /// `PreCompact`, with `seen` compactions before it. A text written `at` may be there for it; gives its
    /// number. What was kept for this number before was for an attempt that came to nothing, and what has
    /// a later one is of a history that was taken back since.
    pub fn before(&mut self, seen: u64, at: Option<String>) -> u64 {
        let number = seen.saturating_add(1);
        self.delivered = self.delivered.min(seen);
        self.texts.retain(|kept, _| *kept < number);
        if let Some(at) = at {
            self.texts.insert(number, at);
        }
        while self.texts.len() > KEPT {
            self.texts.pop_first();
        }
        number
    }

    /// The texts to hand out now, the oldest first: that of the newest compaction, and of those right
    /// before it what was never delivered. They count as delivered from here on.
    pub fn due(&mut self, seen: u64, moment: Moment) -> Vec<u64> {
        if moment == Moment::GoesOn {
            let delivered = self.delivered;
            self.texts.retain(|number, _| *number <= seen.max(delivered));
        }
        if self.delivered >= seen || !self.texts.contains_key(&seen) {
            return Vec::new();
        }
        let mut due = Vec::new();
        let mut next = Some(seen);
        for number in self.texts.range(self.delivered + 1..=seen).rev().map(|(number, _)| *number) {
            if next != Some(number) {
                break;
            }
            due.push(number);
            next = number.checked_sub(1);
        }
        due.reverse();
        self.delivered = seen;
        due
    }

    /// What [`Self::due`] gave did not go out after all.
    pub fn take_back(&mut self, due: &[u64]) {
        if let Some(first) = due.first() {
            self.delivered = self.delivered.min(first.saturating_sub(1));
        }
    }

    /// How far the newest text is, and the number of its compaction.
    #[must_use]
    pub fn stage(&self, seen: Option<u64>) -> Option<(u64, Stage)> {
        let newest = self.texts.keys().next_back().copied().unwrap_or(0);
        if newest > self.delivered {
            let is_over = seen.is_some_and(|seen| seen >= newest);
            return Some((newest, if is_over { Stage::Pending } else { Stage::Kept }));
        }
        (self.delivered > 0).then_some((self.delivered, Stage::Delivered))
    }
}

#[cfg(test)]
#[path = "track_tests.rs"]
mod tests;
