//! Work that outlives its request.
//!
//! hyper drops a handler when its client goes away, and a hook's client goes away whenever the host
//! loses patience. Whatever changes state must not end half way: it runs here.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use compactd_api::ErrorCode;
use tokio::sync::watch;
use tracing::Instrument as _;

use super::error::ApiError;

/// The running tasks. A clone is another handle to the same ones; handlers take it as an argument.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    // Each task holds a receiver: the sender knows how many there are.
    running: Arc<watch::Sender<()>>,
}

impl Tasks {
    /// No tasks yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts `work` now; the future waits for its result. Dropping the future leaves the work alone.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] if the work panicked, [`ErrorCode::ShuttingDown`] if the runtime ended
    /// before it.
    pub fn detached<F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<F::Output, ApiError>> + Send + use<F>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let running = self.running.subscribe();
        let task = tokio::spawn(
            async move {
                let result = work.await;
                drop(running);
                result
            }
            .in_current_span(),
        );
        async move {
            task.await.map_err(|error| {
                if error.is_panic() {
                    ApiError::internal("task panicked")
                } else {
                    ErrorCode::ShuttingDown.into()
                }
            })
        }
    }

    /// How many run.
    #[must_use]
    pub fn count(&self) -> usize {
        self.running.receiver_count()
    }

    /// Waits until none runs.
    pub async fn idle(&self) {
        self.running.closed().await;
    }
}

impl<S: Sync> FromRequestParts<S> for Tasks {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let tasks = parts.extensions.get::<Self>().cloned();
        tasks.ok_or_else(|| ApiError::internal("route without layers"))
    }
}

/// Makes panics leave their place in the log, not their message: that may quote a transcript.
pub fn hide_panic_messages() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(%place, "panic");
    }));
}

/// Runs `work`; a panic in it becomes `None`.
pub(super) async fn catch_panic<F: Future>(work: F) -> Option<F::Output> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| {
        // Whatever the panic left half done inside `work` is dropped with it, never polled again.
        let poll = std::panic::AssertUnwindSafe(|| work.as_mut().poll(context));
        match std::panic::catch_unwind(poll) {
            Ok(poll) => poll.map(Some),
            Err(_) => std::task::Poll::Ready(None),
        }
    })
    .await
}
