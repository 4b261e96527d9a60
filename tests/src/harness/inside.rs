//! The daemon in this process, on a thread of its own.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use compactd::run::{Setup, run};
use compactd::store::Store;
use compactd_api::settings::Settings;
use compactd_transcript::Roots;
use tokio::sync::oneshot;

use super::client::Client;
use super::home::Home;

/// A running daemon. Dropping it stops it.
#[derive(Debug)]
pub struct Daemon {
    pub client: Client,
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Daemon {
    /// Starts one with the default settings.
    #[must_use]
    pub fn start(home: &Home) -> Self {
        Self::start_with(home, |_| {})
    }

    /// Starts one with other settings.
    #[must_use]
    pub fn start_with(home: &Home, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        let socket = home.join("inside.sock");
        let _stale = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let snapshots = settings.index.snapshot.then(|| home.join(".cache/compactd"));
        let setup = Setup {
            settings,
            roots: Roots::new([home.join(".claude")], [home.join(".codex")]),
            store: Store::new(snapshots, Some(home.join(".local/state/compactd"))),
            socket: socket.clone(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(run(setup, listener, async {
                let _dropped = stopped.await;
            }))
        });
        Self { client: Client::new(&socket), socket, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Stops it and waits for its end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}
