//! Over the budget: results that the ladder lets stay may go all the same, the easiest to have again
//! first (`docs/rules.md` §8). `escalate` asks for them when the ladder alone does not free enough.

use super::{Case, Decision, Reason, Rule, Ruling, result_flag};

/// How easily a result can be had again, the easiest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "`text` puts each in words")]
pub enum Class {
    UnusedRead,
    Rerunnable,
    Search,
    Web,
    Shell,
    UsedRead,
}

impl Class {
    /// The class in words, behind "over the budget: ".
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::UnusedRead => "a read that was not used later",
            Self::Rerunnable => "a command that is cheap to run again",
            Self::Search => "a search, can be run again",
            Self::Web => "from the web, can be fetched again",
            Self::Shell => "output of a command",
            Self::UsedRead => "a read, can be read again",
        }
    }
}

impl Ruling {
    /// Whether the ladder's ruling leaves room for a cut.
    pub(crate) fn is_open(self) -> bool {
        self.decision == Decision::Keep
            && matches!(self.rule, Rule::LatestRead | Rule::Referenced | Rule::Undecided)
    }
}

/// The ruling over the budget; `None` for what is in no class.
pub(super) fn rule(case: &Case<'_>) -> Option<(Class, Ruling)> {
    // A recent read must not stand open just because it is the latest of its file: once that is gone
    // an earlier one would be the latest, and open too.
    let is_recent = case.results - 1 - case.ordinal < case.settings.recent_results;
    if is_recent || case.is(result_flag::OPAQUE) {
        return None;
    }
    let class = class(case)?;
    let decision = match class {
        Class::UnusedRead | Class::UsedRead => Decision::Drop,
        _ if case.is(result_flag::CUTTABLE) => Decision::Truncate,
        _ => return None,
    };
    let reason = Reason::OverBudget(class);
    Some((class, Ruling { decision, rule: Rule::OverBudget, reason }))
}

fn class(case: &Case<'_>) -> Option<Class> {
    if case.entry.read != u32::MAX && !case.is(result_flag::PARTIAL) {
        let used = case.result.referenced > 0;
        Some(if used { Class::UsedRead } else { Class::UnusedRead })
    } else if case.is(result_flag::RERUNNABLE) {
        Some(Class::Rerunnable)
    } else if case.is(result_flag::SEARCH) {
        Some(Class::Search)
    } else if case.is(result_flag::WEB) {
        Some(Class::Web)
    } else {
        case.is(result_flag::SHELL).then_some(Class::Shell)
    }
}
