//! The one line that a person reads in the host behind a compaction.

use compactd_api::passes::{PassItem, PassState, ReportOutcome};

/// The line about a pass; `session` is as much of the session's id as leads to it.
#[must_use]
pub fn line(item: &PassItem, session: &str) -> String {
    let counters = item.counters;
    let report = item.report.as_ref();
    let said = |told: Option<u64>, counted: u64| told.unwrap_or(counted);
    let kept = said(report.and_then(|report| report.kept), counters.kept);
    let cut = said(report.and_then(|report| report.truncated), counters.truncated);
    let dropped = said(report.and_then(|report| report.dropped), counters.dropped);
    let sums =
        format!("kept {kept}, cut {cut}, dropped {dropped} of {} tool results", counters.results);
    let tokens = report.and_then(|report| Some((report.tokens_before?, report.tokens_after?)));
    let (before, after) = tokens.unwrap_or((counters.tokens_before, counters.tokens_after));
    let tokens = format!("{} → {} tokens", rough(before), rough(after));
    let more = format!("what went: compactctl explain {session} · one back: compactctl recall ID");
    if item.state == PassState::HandedOver {
        let why = item.reason.as_deref().unwrap_or("that alone frees too little");
        if report.is_none_or(|report| report.outcome != ReportOutcome::HandedOver) {
            // Nobody said what the summary was made of.
            return format!(
                "compactd: {why}; the host made its own summary · what was decided: compactctl explain {session} · one back: compactctl recall ID"
            );
        }
        return format!(
            "compactd: {sums}, {tokens}; {why}: the host was asked for its own summary of what is left · {more}"
        );
    }
    let millis = report.and_then(|report| report.millis).filter(|millis| millis.is_finite());
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    let millis = millis.unwrap_or(counters.micros as f64 / 1_000.0);
    format!("compactd: {sums}, {tokens} in {:.0} ms · {more}", millis.max(1.0))
}

/// A number in thousands or millions once it is large.
pub(crate) fn rough(value: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = value.saturating_add(unit / 20) / (unit / 10);
        if tenths < 100 && !tenths.is_multiple_of(10) {
            format!("{}.{}{name}", tenths / 10, tenths % 10)
        } else {
            format!("{}{name}", value.saturating_add(unit / 2) / unit)
        }
    };
    match value {
        0..=999 => value.to_string(),
        1_000..=999_499 => scaled(1_000, "k"),
        _ => scaled(1_000_000, "M"),
    }
}

#[cfg(test)]
mod tests {
    use compactd_api::passes::PassReport;

    use super::*;

    fn item(name: &str, place: usize) -> PassItem {
        let path = format!("{}/../tests/fixtures/api/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let list: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        serde_json::from_value(list["passes"][place].clone()).unwrap()
    }

    #[test]
    fn the_line_is_this() {
        assert_eq!(
            line(&item("passes", 1), "4c1f0a52"),
            "compactd: kept 14, cut 1, dropped 9 of 24 tool results, 52k → 31k tokens in 6 ms · \
             what went: compactctl explain 4c1f0a52 · one back: compactctl recall ID"
        );
        let untold = item("passes", 0);
        let report = Some(PassReport::of(ReportOutcome::HandedOver));
        assert_eq!(
            line(&PassItem { report, ..untold.clone() }, "4c1f0a52"),
            "compactd: kept 27, cut 0, dropped 4 of 31 tool results, 168k → 160k tokens; \
             about 160000 tokens would be left, the budget is 150300: the host was asked for its \
             own summary of what is left · what went: compactctl explain 4c1f0a52 · one back: \
             compactctl recall ID"
        );
        assert_eq!(
            line(&untold, "4c1f0a52"),
            "compactd: about 160000 tokens would be left, the budget is 150300; the host made its \
             own summary · what was decided: compactctl explain 4c1f0a52 · one back: compactctl \
             recall ID"
        );
    }

    #[test]
    fn any_number_has_a_short_form() {
        for (value, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_550, "1.6k"),
            (999_499, "999k"),
            (999_500, "1M"),
            (u64::MAX, "18446744073709M"),
        ] {
            assert_eq!(rough(value), shown);
        }
    }
}
