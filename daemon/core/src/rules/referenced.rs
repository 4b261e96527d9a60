//! Rule 5: a result that the agent used later stays; one that it had time to use and did not, goes.

use super::{Case, Reason, Rule, Ruling, result_flag};

pub(super) fn rule(case: &Case<'_>) -> Ruling {
    let has_terms = case.entry.deciding.start < case.entry.deciding.end
        || case.entry.known.start < case.entry.known.end;
    if case.is(result_flag::BLANK) || (case.is(result_flag::OPAQUE) && !has_terms) {
        return Ruling::keep(Rule::Undecided, Reason::NoTerms);
    }
    if case.is(result_flag::UNSURE) {
        return Ruling::keep(Rule::Undecided, Reason::FilesUnknown);
    }
    let after = case.results - 1 - case.ordinal;
    if after < case.settings.recent_results {
        return Ruling::keep(Rule::TooRecent, Reason::ResultsAfter(after));
    }
    if case.result.referenced > 0 {
        return Ruling::keep(Rule::Referenced, Reason::TermsUsed(case.result.referenced));
    }
    Ruling::drop(Rule::Unreferenced, Reason::NothingUsed)
}
