//! Warnings that may come often are logged seldom.

use std::time::Duration;

use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(60);

/// Lets one warning a minute through.
#[derive(Debug, Default)]
pub(super) struct Seldom {
    last: Option<Instant>,
    skipped: u64,
}

impl Seldom {
    /// Whether to log now; then with how many were left out since.
    pub(super) fn due(&mut self) -> Option<u64> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < EVERY) {
            self.skipped += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_a_minute() {
        let mut seldom = Seldom::default();
        assert_eq!([seldom.due(), seldom.due(), seldom.due()], [Some(0), None, None]);
        tokio::time::advance(EVERY).await;
        assert_eq!([seldom.due(), seldom.due()], [Some(2), None]);
    }
}
