//! The passes of one session and what the hooks of its host say about them: a state machine without
//! files or clocks.
//!
//! A hook does not name a compaction, so it is about the newest pass, unless the transcript shows that
//! the compaction of that pass is over: with more boundaries than its number, another one is meant.
//!
//! ```text
//! answered ──report──▶ applied | handed_over | left
//!    ├─ PostCompact without a summary ──▶ applied
//!    ├─ PreCompact (the host runs its own) ──▶ handed_over (outcome escalate), else left
//!    │    (only a report says that the host got what the pass left)
//!    ├─ PostCompact with a summary ──▶ the same
//!    ├─ SessionStart(compact), the boundary in the transcript ──▶ as the outcome says
//!    └─ the end of the session ──▶ unknown
//! ```

use std::collections::BTreeMap;

use compactd_api::compact::Outcome;
use compactd_api::passes::{
    KEPT, KeptPass, PassItem, PassReport, PassState, ReportOutcome, ended, really_ran, settled,
};

/// The passes of one session.
#[derive(Debug, Default, Clone)]
pub struct Track {
    passes: BTreeMap<u64, KeptPass>,
}

/// What a session's files must follow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Passes to write.
    pub written: Vec<u64>,
    /// Passes to remove.
    pub removed: Vec<u64>,
}

impl Changed {
    fn one(number: u64) -> Self {
        Self { written: vec![number], removed: Vec::new() }
    }
}

impl Track {
    /// The passes as they were kept.
    #[must_use]
    pub fn of(passes: impl IntoIterator<Item = KeptPass>) -> Self {
        let passes = passes.into_iter().map(|kept| (kept.pass.item.number, kept));
        Self { passes: passes.collect() }
    }

    /// All passes, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &KeptPass> {
        self.passes.values().rev()
    }

    /// A pass.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&KeptPass> {
        self.passes.get(&number)
    }

    /// A pass, to change what is kept of it.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut KeptPass> {
        self.passes.get_mut(&number)
    }

    /// The newest pass.
    #[must_use]
    pub fn newest(&self) -> Option<&KeptPass> {
        self.passes.values().next_back()
    }

    /// An answer was given. A later one of the same number replaces it: the host asked twice.
    pub fn answered(&mut self, kept: KeptPass) -> Changed {
        let number = kept.pass.item.number;
        // So many boundaries there are: the passes before are over. Passes behind belong to a file
        // that was replaced since.
        let mut changed = self.boundaries(number.saturating_sub(1));
        let behind: Vec<u64> = self.passes.range(number + 1..).map(|(number, _)| *number).collect();
        changed.removed.extend(behind);
        self.passes.insert(number, kept);
        changed.written.push(number);
        let many = self.passes.len().saturating_sub(KEPT + changed.removed.len());
        changed.removed.extend(self.passes.keys().take(many).copied().collect::<Vec<_>>());
        self.passes.retain(|number, _| !changed.removed.contains(number));
        changed.written.retain(|number| !changed.removed.contains(number));
        changed
    }

    /// The caller tells what it did. `None`: there is no such pass.
    pub fn reported(&mut self, number: u64, report: &PassReport) -> Option<Changed> {
        let item = &mut self.passes.get_mut(&number)?.pass.item;
        let report = PassReport { host: None, agent: None, ..report.clone() };
        let state = report.outcome.state();
        if item.report.as_ref() == Some(&report) && item.state == state {
            return Some(Changed::default());
        }
        item.state = state;
        item.report = Some(report);
        Some(Changed::one(number))
    }

    /// The transcript shows so many boundaries.
    pub fn boundaries(&mut self, boundaries: u64) -> Changed {
        let mut changed = Changed::default();
        for (number, kept) in &mut self.passes {
            let state = settled(&kept.pass.item, boundaries);
            if state != kept.pass.item.state {
                kept.pass.item.state = state;
                changed.written.push(*number);
            }
        }
        changed
    }

    /// The newest pass, if a hook that comes now can be about it.
    fn current(&mut self, boundaries: Option<u64>) -> Option<&mut KeptPass> {
        let kept = self.passes.values_mut().next_back()?;
        let is_over = boundaries.is_some_and(|boundaries| boundaries > kept.pass.item.number);
        if is_over { None } else { Some(kept) }
    }

    /// `PreCompact`: the host is about to ask for its own summary, as compaction number `number`. Says
    /// whether the caller handed the focus text over for this very attempt. A missing text does harm, a
    /// second one does not: whatever is in doubt is a no.
    pub fn before(&mut self, number: Option<u64>) -> (bool, Changed) {
        let Some(kept) = self.passes.values_mut().next_back() else {
            return (false, Changed::default());
        };
        let item = &mut kept.pass.item;
        let own = item.number;
        if let Some(number) = number.filter(|number| *number != own) {
            // A later compaction: what the person is told of from now on is not this one.
            let is_past = number > own && !kept.told;
            kept.told |= is_past;
            return (false, if is_past { Changed::one(own) } else { Changed::default() });
        }
        let reported = item.report.as_ref().map(|report| report.outcome);
        let is_handed = item.focus && reported == Some(ReportOutcome::HandedOver);
        // A report from before an earlier summary is about that one.
        let is_fresh = !kept.asked && !kept.finished;
        let mut is_changed = !kept.asked;
        kept.asked = true;
        if item.state == PassState::Answered {
            item.state = native(item.outcome);
            is_changed = true;
        }
        let changed = if is_changed { Changed::one(own) } else { Changed::default() };
        (is_handed && is_fresh, changed)
    }

    /// `PostCompact`: the compaction is done; an empty summary means that a plugin answered it.
    pub fn after(&mut self, is_empty: bool, boundaries: Option<u64>) -> Changed {
        let Some(kept) = self.current(boundaries).filter(|kept| !kept.finished) else {
            return Changed::default();
        };
        kept.finished = true;
        let item = &mut kept.pass.item;
        if item.report.is_none() {
            let is_open = matches!(item.state, PassState::Answered | PassState::Unknown);
            if is_empty && is_open {
                item.state = ended(Outcome::Apply);
            } else if !is_empty && (is_open || item.state == PassState::Applied) {
                item.state = native(item.outcome);
            }
        }
        Changed::one(item.number)
    }

    /// `SessionStart` with source `compact`: the pass that the person is to be told of now, if any.
    /// `is_recent` says whether a pass of that time can be meant at all where the transcript is not
    /// read yet.
    pub fn started(
        &mut self,
        boundaries: Option<u64>,
        is_recent: impl Fn(&str) -> bool,
    ) -> (Option<&KeptPass>, Changed) {
        let nothing = (None, Changed::default());
        let Some(kept) = self.current(boundaries).filter(|kept| !kept.told) else {
            return nothing;
        };
        let item = &mut kept.pass.item;
        if boundaries.is_none() && !is_recent(&item.at) {
            return nothing;
        }
        if item.state == PassState::Answered {
            item.state = ended(item.outcome);
        }
        let changed = Changed::one(item.number);
        if !matches!(item.state, PassState::Applied | PassState::HandedOver) {
            return (None, changed);
        }
        kept.told = true;
        (Some(kept), changed)
    }

    /// The session ends: what nobody told so far, nobody will.
    pub fn closed(&mut self, boundaries: Option<u64>) -> Changed {
        let mut changed = boundaries.map(|seen| self.boundaries(seen)).unwrap_or_default();
        for (number, kept) in &mut self.passes {
            if kept.pass.item.state == PassState::Answered {
                kept.pass.item.state = PassState::Unknown;
                changed.written.push(*number);
            }
        }
        changed
    }

    /// Number of the newest compaction that happened as far as the passes tell.
    #[must_use]
    pub fn compaction(&self) -> u64 {
        let happened = |kept: &&KeptPass| {
            matches!(kept.pass.item.state, PassState::Applied | PassState::HandedOver)
                || kept.finished
        };
        self.newest_first().find(happened).map_or(0, |kept| kept.pass.item.number)
    }

    /// The passes that were applied, the oldest first: their numbers, and the results that each left.
    #[must_use]
    pub fn applied(&self) -> Vec<(u64, u64)> {
        let is_applied = |item: &PassItem| item.outcome == Outcome::Apply && really_ran(item);
        let applied = self.passes.values().filter(|kept| is_applied(&kept.pass.item));
        applied.map(|kept| (kept.pass.item.number, kept.results_after)).collect()
    }
}

/// How a pass ended whose compaction the host went on with by itself.
fn native(outcome: Outcome) -> PassState {
    match outcome {
        Outcome::Escalate => PassState::HandedOver,
        _ => PassState::Left,
    }
}

#[cfg(test)]
#[path = "track_tests.rs"]
mod tests;
