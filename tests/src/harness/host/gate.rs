//! Holding an answer back.

use std::sync::Arc;

use tokio::sync::watch;

/// Holds an answer back until the test lets it go.
#[derive(Debug, Clone)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    #[must_use]
    pub fn new() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)) }
    }

    /// Lets go what waits, and all that comes later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    pub(super) async fn pass(&self) {
        let mut opened = self.open.subscribe();
        drop(opened.wait_for(|open| *open).await);
    }
}
