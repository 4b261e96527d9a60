//! Rule 3: a read whose text a later read of the same file shows again goes; the later one stays.

use super::{Case, Reason, Rule, Ruling, live_flag};

pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
    if let Some(by) = case.live.results().get(case.result.superseded_by as usize) {
        let reason = Reason::ReadAgain { message: by.message };
        return Some(Ruling::drop(Rule::SupersededRead, reason));
    }
    case.has(live_flag::SUPERSEDER).then_some(Ruling::keep(Rule::Superseder, Reason::Supersedes))
}
