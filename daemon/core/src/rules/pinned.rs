//! Rule 1: the beginning, the newest messages, errors and what the person pinned stay untouched.

use super::{Case, Reason, Rule, Ruling, live_flag, result_flag};

pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
    let last = case.settings.pin_last;
    let reason = if case.result.message == 0 {
        Reason::FirstMessage
    } else if case.result.message + last >= case.messages {
        Reason::LastMessages(last)
    } else if case.is(result_flag::ERROR) {
        Reason::Error
    } else if case.pinned_by_person {
        Reason::PinnedByPerson
    } else if case.is(result_flag::STUB) {
        Reason::UnchangedStub
    } else if case.has(live_flag::STUB_TARGET) {
        Reason::StubTarget
    } else {
        return None;
    };
    Some(Ruling::keep(Rule::Pinned, reason))
}
