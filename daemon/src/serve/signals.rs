//! Signals that end the daemon or make it read its settings again.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Listens for signals from now on; the future ends at SIGTERM or SIGINT, with its name. Each SIGHUP
/// calls `on_hangup`, as long as the future is polled.
///
/// # Errors
/// If the system refuses a handler.
pub fn signals(
    mut on_hangup: impl FnMut() + Send,
) -> io::Result<impl Future<Output = &'static str> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => return "SIGTERM",
                _ = interrupt.recv() => return "SIGINT",
                _ = hangup.recv() => on_hangup(),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    const CHILD: &str = "COMPACTD_TEST_SIGNALS";

    /// In a process of its own: the signals would reach every other test that listens for them.
    #[test]
    fn hangup_calls_and_terminate_ends() {
        if std::env::var_os(CHILD).is_some() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            return runtime.unwrap().block_on(listen());
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["hangup_calls_and_terminate_ends", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    async fn listen() {
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let ended = tokio::spawn(signals(move || told.send(()).unwrap()).unwrap());
        kill_process(getpid(), Signal::HUP).unwrap();
        heard.recv().await.unwrap();
        kill_process(getpid(), Signal::TERM).unwrap();
        assert_eq!(ended.await.unwrap(), "SIGTERM");
    }
}
