//! "Did you mean": the known name nearest to a wrong one.

/// The nearest of `known`, if it is near enough to be meant. A name whose last part is the wrong
/// name's last part counts as near: the section was forgotten or mistaken.
pub(super) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (far, name) = known.map(|name| (distance(wrong, name), name)).min()?;
    // A third of the letters may be wrong, but never so many that all are.
    let bound = (wrong.chars().count() / 3).clamp(1, 4);
    (far <= bound).then_some(name)
}

/// The last part of a dotted name.
pub(super) fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Edits that lead from one to the other: insertions, deletions, replacements, swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(100).collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expect) in [
            ("", "", 0),
            ("", "ab", 2),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expect, "{a} {b}");
            assert_eq!(distance(b, a), expect, "{b} {a}");
        }
    }

    #[test]
    fn near_and_far() {
        let known = ["index", "rules", "watch", "log"];
        assert_eq!(nearest("rule", known.into_iter()), Some("rules"));
        assert_eq!(nearest("wacth", known.into_iter()), Some("watch"));
        assert_eq!(nearest("zzz", known.into_iter()), None);
        assert_eq!(nearest("x", [].into_iter()), None);
    }
}
