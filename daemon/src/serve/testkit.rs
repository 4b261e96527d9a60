//! A server in a folder of its own, and a client that sends bytes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use compactd_api::ErrorBody;
use compactd_api::socket::Listen;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Options, SocketGuard, Unfinished, bind, serve};

/// For what should take no time at all.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) path: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<Unfinished>>,
    _guard: SocketGuard,
    _folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(router: Router) -> Self {
        Self::start_with(router, Options::default())
    }

    pub(crate) fn start_with(router: Router, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(folder.path(), private).unwrap();
        let path = folder.path().join("api.sock");
        let bound = bind(&Listen { path: path.clone(), link: None, link_error: None }).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(bound.listener, router, stopped, options));
        Self { path, stop: Some(stop), served, _guard: bound.guard, _folder: folder }
    }

    /// Asks the server to stop.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has stopped.
    pub(crate) async fn stopped(mut self) -> Unfinished {
        self.stop();
        (&mut self.served).await.unwrap().unwrap()
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The error, after checking that the answer has the one shape.
    pub(crate) fn error(&self) -> ErrorBody {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.head);
        let body: ErrorBody = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body.error.code.status(), self.status);
        assert_eq!(Some(&*body.request_id), self.header("compactd-request-id"));
        assert!(!body.error.message.is_empty());
        assert_eq!(body.error.hint.as_deref(), body.error.code.hint());
        body
    }
}

pub(crate) async fn connect(path: &Path) -> UnixStream {
    UnixStream::connect(path).await.unwrap()
}

/// Sends bytes on a connection of its own and reads until it is closed.
pub(crate) async fn send(path: &Path, bytes: impl AsRef<[u8]>) -> Answer {
    let mut stream = connect(path).await;
    // The server may answer and close before it has read everything.
    drop(stream.write_all(bytes.as_ref()).await);
    read(stream).await
}

pub(crate) async fn read(mut stream: UnixStream) -> Answer {
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

pub(crate) fn request(method: &str, target: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    )
}

pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}
