//! systemd: a socket that it passes to us, and telling it how we are.
//!
//! `sd_notify` gives only numbers of descriptors, and making a socket of a number needs `unsafe`; the
//! `listenfd` crate hides that behind a check, so it is used for this one thing.

use std::io;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;

/// Why the passed socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// The unit has more than one `ListenStream=`.
    #[error("systemd passed {0} sockets, expected one")]
    TooMany(usize),
    /// It is no Unix stream socket.
    #[error("systemd passed something that is no unix stream socket")]
    WrongKind(#[source] io::Error),
    /// `Accept=yes`, or not systemd at all.
    #[error("systemd passed a socket that does not listen")]
    NotListening,
}

/// Takes the socket that systemd passed, if it did.
///
/// Call it once, first in `main` and before any thread: it takes the variables out of the
/// environment, so that children do not believe the socket is theirs.
///
/// # Errors
/// If something was passed that is not one listening Unix stream socket.
pub fn take_listener() -> Result<Option<UnixListener>, ActivationError> {
    let mut passed = ListenFd::from_env();
    match passed.len() {
        0 => return Ok(None),
        1 => {}
        more => return Err(ActivationError::TooMany(more)),
    }
    let Some(listener) = passed.take_unix_listener(0).map_err(ActivationError::WrongKind)? else {
        return Ok(None);
    };
    match rustix::net::sockopt::socket_acceptconn(&listener) {
        Ok(true) => Ok(Some(listener)),
        Ok(false) | Err(_) => Err(ActivationError::NotListening),
    }
}

/// Tells systemd that requests are answered, and how far we are.
pub fn notify_ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// Tells systemd how far we are.
pub fn notify_status(status: &str) {
    notify(&[NotifyState::Status(&one_line(status))]);
}

/// Tells systemd that we are about to end.
pub fn notify_stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Pings systemd's watchdog at twice the rate that it wants, for ever; ends at once if it wants none.
///
/// It must run on the thread that serves requests: what it proves is that this thread still turns.
pub async fn watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let mut tick = tokio::time::interval((limit / 2).max(Duration::from_millis(1)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        notify(&[NotifyState::Watchdog]);
    }
}

/// Without systemd this does nothing.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "cannot notify systemd");
    }
}

/// A line break would begin a new assignment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::process::{Command, Stdio};

    use super::*;

    const CHILD: &str = "COMPACTD_TEST_ACTIVATION";

    /// Not a test of its own: what the tests below run in a process with another environment.
    #[test]
    fn child() {
        let Ok(role) = std::env::var(CHILD) else { return };
        if role == "notify" {
            notify_ready("up\nWATCHDOG=trigger");
            notify_stopping();
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let pings =
                async { tokio::time::timeout(Duration::from_millis(200), watchdog()).await };
            assert!(runtime.block_on(pings).is_err());
            return;
        }
        println!("\nfound: {:?}", take_listener().map(|listener| listener.is_some()));
        assert!(std::env::var_os("LISTEN_FDS").is_none());
        assert!(take_listener().unwrap().is_none(), "taken twice");
    }

    fn run(stdin: OwnedFd, count: &str, pid: &str) -> String {
        let script = format!("LISTEN_PID={pid} exec \"$0\" \"$@\" 3<&0 4<&0");
        let output = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .args(["activation::tests::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, "take")
            .env("LISTEN_FDS", count)
            .stdin(Stdio::from(stdin))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let found = text.lines().find_map(|line| line.strip_prefix("found: ")).unwrap();
        found.to_owned()
    }

    #[test]
    fn takes_one_listening_unix_socket() {
        let folder = tempfile::tempdir().unwrap();
        let listener = || -> OwnedFd {
            let path = folder.path().join("s");
            drop(std::fs::remove_file(&path));
            UnixListener::bind(&path).unwrap().into()
        };
        assert_eq!(run(listener(), "1", "$$"), "Ok(true)");
        assert_eq!(run(listener(), "1", "1"), "Ok(false)", "meant for another process");
        assert_eq!(run(listener(), "0", "$$"), "Ok(false)");
        assert_eq!(run(listener(), "2", "$$"), "Err(TooMany(2))");
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(run(one.into(), "1", "$$"), "Err(NotListening)");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(run(file.into(), "1", "$$").starts_with("Err(WrongKind"));
    }

    #[test]
    fn notifies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["activation::tests::child", "--test-threads=1"])
            .env(CHILD, "notify")
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "20000")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut messages = String::new();
        for _ in 0..4 {
            let mut buffer = [0; 256];
            let length = socket.recv(&mut buffer).unwrap();
            messages.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
        }
        assert_eq!(
            messages,
            "READY=1\nSTATUS=up WATCHDOG=trigger\nSTOPPING=1\nWATCHDOG=1\nWATCHDOG=1\n"
        );
        // Nobody listens any more: that must not disturb the daemon.
        drop(socket);
        assert!(child.wait().unwrap().success());
    }
}
