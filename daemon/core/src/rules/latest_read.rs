//! Rule 4: the latest read of each file stays.

use super::{Case, Reason, Rule, Ruling};

pub(super) fn rule(case: &Case<'_>) -> Option<Ruling> {
    case.live
        .is_latest_read(case.log, case.ordinal, case.result)
        .then_some(Ruling::keep(Rule::LatestRead, Reason::LatestRead))
}
