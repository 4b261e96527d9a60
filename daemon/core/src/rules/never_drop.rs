//! Rule 2: what a later message quotes, or answers with a rule, stays untouched.

use super::{Case, Reason, Rule, Ruling, live_flag};

pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
    let reason = if case.has(live_flag::QUOTED) {
        Reason::Quoted
    } else if case.has(live_flag::RULE_WORD) {
        Reason::RuleWord
    } else {
        return None;
    };
    Some(Ruling::keep(Rule::NeverDrop, reason))
}
