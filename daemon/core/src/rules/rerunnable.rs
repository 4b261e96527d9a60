//! Rule 6: output that is cheap to have again is cut, where no earlier rule protects it.

use super::{Case, Decision, Reason, Rule, Ruling, result_flag};

pub(super) fn narrow(case: &Case<'_>, ruling: Ruling) -> Ruling {
    let open = match ruling.rule {
        Rule::TooRecent | Rule::Undecided => true,
        Rule::Referenced => case.is(result_flag::EVEN_IF_USED),
        _ => false,
    };
    if !open || !case.is(result_flag::RERUNNABLE) {
        return ruling;
    }
    Ruling {
        decision: Decision::Truncate,
        rule: Rule::Rerunnable,
        reason: Reason::CheapToRerun(case.settings.rerunnable_chars),
    }
}
