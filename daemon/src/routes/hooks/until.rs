//! Until when the shim reads an answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use compactd_api::{HOOK_DEADLINE, UNTIL_HEADER};

/// What the way back and the shim itself need.
const MARGIN: Duration = Duration::from_millis(100);

/// When an answer has to be given, by the system's clock: that one goes on while the machine or this
/// process stands still.
pub(super) fn of(headers: &HeaderMap) -> SystemTime {
    let now = SystemTime::now();
    let told = headers
        .get(UNTIL_HEADER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .and_then(|millis| UNIX_EPOCH.checked_add(Duration::from_millis(millis)));
    // No shim waits longer than that, whatever it says.
    let most = now + HOOK_DEADLINE;
    let until = told.map_or(most, |told| told.min(most));
    until.checked_sub(MARGIN).unwrap_or(until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::left;

    #[test]
    fn no_longer_than_a_shim_waits() {
        let at = |text: Option<String>| {
            let mut headers = HeaderMap::new();
            if let Some(text) = text {
                headers.insert(UNTIL_HEADER, text.parse().unwrap());
            }
            left(of(&headers))
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let most = HOOK_DEADLINE.saturating_sub(MARGIN);
        for text in [None, Some("soon".into()), Some("-1".into()), Some((now + 60_000).to_string())]
        {
            let found = at(text);
            assert!(found > most / 2 && found <= most, "{found:?}");
        }
        assert!(at(Some((now + 600).to_string())) <= Duration::from_millis(500));
        assert_eq!(at(Some((now - 1).to_string())), Duration::ZERO);
        assert_eq!(at(Some("0".into())), Duration::ZERO);
    }
}
