//! The ladder: the first rule that decides wins, a later one may only narrow a keep to a cut.

use super::{
    Case, Reason, Rule, Ruling, latest_read, never_drop, pinned, referenced, rerunnable,
    result_flag, superseded,
};

pub(super) fn decide(case: &Case<'_>) -> Ruling {
    if case.is(result_flag::NOTED) {
        return Ruling::keep(Rule::Noted, Reason::AlreadyNoted);
    }
    let ruling = pinned::rule(case)
        .or_else(|| never_drop::rule(case))
        .or_else(|| superseded::rule(case))
        .or_else(|| latest_read::rule(case))
        .unwrap_or_else(|| referenced::rule(case));
    rerunnable::narrow(case, ruling)
}
