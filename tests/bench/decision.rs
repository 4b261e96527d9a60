//! The decision alone, over an index that is up to date.

use compactd_core::index::History;
use compactd_core::record::Host;
use compactd_core::rules::{Decision, Pins, Profile};

use crate::table::{Table, median, shown, time};
use crate::{ours, synthetic};

pub(crate) fn bench(table: &mut Table) {
    let pins = Pins::default();
    let mut first = None;
    for count in [100, 1_000, 10_000, 100_000] {
        let session = synthetic::results(count);
        let index = ours::index(Host::Claude, &session.slices());
        let count = index.results();
        let batch = 200_000 / count + 1;
        let (mut walks, mut sums) = (Vec::new(), Vec::new());
        let mut changed = 0;
        for _ in 0..31 {
            let walk = time(|| {
                for _ in 0..batch {
                    let pass = index.pass(History::Context, Profile::Standard, &pins);
                    changed = pass
                        .iter()
                        .filter(|decided| decided.ruling.decision != Decision::Keep)
                        .count();
                    std::hint::black_box(changed);
                }
            });
            walks.push(walk / batch as f64);
            let sum = time(|| {
                for _ in 0..batch {
                    let pass = index.pass(History::Context, Profile::Standard, &pins);
                    std::hint::black_box(pass.totals());
                }
            });
            sums.push(sum / batch as f64);
        }
        let per_result = median(&walks) * 1000.0 / count as f64;
        let base = *first.get_or_insert(per_result);
        table.row(
            &format!("decision, {count} results in context ({changed} change)"),
            &format!("{:.2} x per result of the smallest", per_result / base),
            &format!(
                "walk {}, totals {}, {per_result:.1} ns a result",
                shown(median(&walks)),
                shown(median(&sums))
            ),
            "linear",
        );
    }
}
