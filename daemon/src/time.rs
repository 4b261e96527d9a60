//! Points in time for people and programs.

use std::time::{Duration, SystemTime};

/// What is left until a point in time; nothing once it is over.
#[must_use]
pub fn left(until: SystemTime) -> Duration {
    until.duration_since(SystemTime::now()).unwrap_or_default()
}

/// A time as RFC 3339 in UTC, to the second.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .and_then(|time| time.round(jiff::Unit::Second))
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_string()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn known_times() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(at(1_796_083_199), "2026-11-30T23:59:59Z");
    }
}
