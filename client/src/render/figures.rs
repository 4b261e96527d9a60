//! Numbers as people read them.

use jiff::Timestamp;

/// A number with commas.
#[must_use]
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number in thousands or millions once it is large.
#[must_use]
pub fn rough(value: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = (value + unit / 20) / (unit / 10);
        if tenths < 100 && !tenths.is_multiple_of(10) {
            format!("{}.{}{name}", tenths / 10, tenths % 10)
        } else {
            format!("{}{name}", (value + unit / 2) / unit)
        }
    };
    match value {
        0..=999 => value.to_string(),
        1_000..=999_499 => scaled(1_000, "k"),
        _ => scaled(1_000_000, "M"),
    }
}

/// A size in bytes.
#[must_use]
pub fn bytes(value: u64) -> String {
    match value {
        0..=1_023 => format!("{value} B"),
        1_024..=1_048_575 => format!("{} KiB", value.div_ceil(1_024)),
        _ => {
            let tenths = (value * 10).div_ceil(1_048_576);
            format!("{}.{} MiB", tenths / 10, tenths % 10)
        }
    }
}

/// How much of `before` is gone in `after`.
#[must_use]
pub fn freed_percent(before: u64, after: u64) -> u64 {
    let freed = before.saturating_sub(after);
    // Rounded to the nearest.
    (freed * 200 + before).checked_div(before * 2).unwrap_or_default()
}

/// How long ago an RFC 3339 time was.
#[must_use]
pub fn ago(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return time.to_owned() };
    span(u64::try_from(now.as_second() - time.as_second()).unwrap_or_default()) + " ago"
}

/// A span of time in its largest unit.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (value, exact, about) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1_000, "1,000", "1k"),
            (1_460, "1,460", "1.5k"),
            (9_960, "9,960", "10k"),
            (182_400, "182,400", "182k"),
            (999_499, "999,499", "999k"),
            (999_500, "999,500", "1M"),
            (12_345_678, "12,345,678", "12M"),
            (2_345_678, "2,345,678", "2.3M"),
        ] {
            assert_eq!((number(value).as_str(), rough(value).as_str()), (exact, about));
        }
    }

    #[test]
    fn sizes_and_shares() {
        assert_eq!(
            (bytes(12), bytes(1_025), bytes(2_097_152)),
            ("12 B".into(), "2 KiB".into(), "2.0 MiB".into())
        );
        for (before, after, percent) in
            [(0, 0, 0), (100, 66, 34), (3, 2, 33), (3, 1, 67), (10, 20, 0), (200, 199, 1)]
        {
            assert_eq!(freed_percent(before, after), percent, "{before} {after}");
        }
    }

    #[test]
    fn times() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-11-30T11:59:50Z", "10 s ago"),
            ("2026-11-30T11:00:00Z", "60 min ago"),
            ("2026-11-30T09:00:00Z", "3 h ago"),
            ("2026-11-20T09:00:00Z", "10 days ago"),
            ("2026-12-30T09:00:00Z", "0 s ago"),
            ("whenever", "whenever"),
        ] {
            assert_eq!(ago(time, now), expected);
        }
    }
}
