//! Connections: none may hold up the others, nor the end.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use compactd_api::{CONNECTIONS_MAX, DRAIN, HEADER_TIMEOUT};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{Barrier, Notify, Semaphore};
use tokio::time::{Instant, timeout};

use super::accept::{Accept, run};
use super::testkit::{SOON, Server, connect, get, read, send};
use super::{ApiError, Options, Tasks, Unfinished, apply};

fn hello() -> Router {
    Router::new().route("/", on_get(async || "hello"))
}

/// A handler that tells that it began and ends when it is let go.
fn gated(began: &Arc<Semaphore>, go: &Arc<Notify>) -> Router {
    let (began, go) = (Arc::clone(began), Arc::clone(go));
    let handler = async move || {
        began.add_permits(1);
        go.notified().await;
        "done"
    };
    hello().route("/gated", on_get(handler))
}

async fn closed(mut stream: UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    bytes
}

#[tokio::test]
async fn silent_connection_blocks_nobody() {
    let server = Server::start(hello());
    let _silent = connect(&server.path).await;
    let answer = timeout(SOON, send(&server.path, get("/"))).await.unwrap();
    assert_eq!(answer.body, "hello");
}

#[tokio::test(start_paused = true)]
async fn silence_and_half_headers_time_out() {
    let server = Server::start(hello());
    let started = Instant::now();
    let silent = connect(&server.path).await;
    let mut half = connect(&server.path).await;
    half.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
    // Between two requests, too.
    let mut idle = connect(&server.path).await;
    idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let (silent, half, idle) = tokio::join!(closed(silent), closed(half), closed(idle));
    assert!(silent.is_empty() && half.is_empty());
    assert!(idle.ends_with(b"hello"));
    let took = started.elapsed();
    assert!(took >= HEADER_TIMEOUT && took < HEADER_TIMEOUT + Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn half_header_does_not_hang_shutdown() {
    let mut server = Server::start(hello());
    let mut half = connect(&server.path).await;
    half.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
    let _silent = connect(&server.path).await;
    assert_eq!(send(&server.path, get("/")).await.status, 200);
    let started = Instant::now();
    server.stop();
    assert_eq!(server.stopped().await, Unfinished::default());
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test]
async fn detached_work_survives_its_client() {
    let (began, go, ended) =
        (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let work = (Arc::clone(&began), Arc::clone(&go), Arc::clone(&ended));
    let handler = async move |tasks: Tasks| -> Result<&'static str, ApiError> {
        let (began, go, ended) = work.clone();
        let work = async move {
            began.add_permits(1);
            go.notified().await;
            ended.add_permits(1);
            "done"
        };
        tasks.detached(work).await
    };
    let options = Options::default();
    let tasks = options.tasks.clone();
    let mut server = Server::start_with(Router::new().route("/", on_get(handler)), options);
    let mut client = connect(&server.path).await;
    client.write_all(get("/").as_bytes()).await.unwrap();
    began.acquire().await.unwrap().forget();
    assert_eq!(tasks.count(), 1);
    drop(client);
    // The drain waits for it as well.
    server.stop();
    assert_eq!(timeout(SOON, refused(&server)).await, Ok(()));
    assert_eq!(ended.available_permits(), 0);
    go.notify_one();
    assert_eq!(timeout(SOON, server.stopped()).await.unwrap(), Unfinished::default());
    assert_eq!((ended.available_permits(), tasks.count()), (1, 0));
}

/// Waits until the listener is closed.
async fn refused(server: &Server) {
    while UnixStream::connect(&server.path).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn plain_handler_ends_with_its_client() {
    struct Told(Arc<Semaphore>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.add_permits(1);
        }
    }
    let (began, dropped) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let work = (Arc::clone(&began), Arc::clone(&dropped));
    let handler = async move || {
        let _told = Told(Arc::clone(&work.1));
        work.0.add_permits(1);
        std::future::pending::<()>().await;
    };
    let server = Server::start(Router::new().route("/", on_get(handler)));
    let mut client = connect(&server.path).await;
    client.write_all(get("/").as_bytes()).await.unwrap();
    began.acquire().await.unwrap().forget();
    drop(client);
    timeout(SOON, dropped.acquire()).await.unwrap().unwrap().forget();
}

#[tokio::test]
async fn drain_finishes_what_is_in_flight() {
    let (began, go) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let mut server = Server::start(gated(&began, &go));
    let path = server.path.clone();
    let mut client = connect(&path).await;
    // Keep-alive: the end of the server must close it after the answer.
    client.write_all(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    began.acquire().await.unwrap().forget();
    server.stop();
    timeout(SOON, refused(&server)).await.unwrap();
    go.notify_one();
    let answer = timeout(SOON, read(client)).await.unwrap();
    assert_eq!((answer.status, &*answer.body), (200, "done"));
    assert_eq!(server.stopped().await, Unfinished::default());
}

#[tokio::test(start_paused = true)]
async fn drain_has_an_end() {
    let began = Arc::new(Semaphore::new(0));
    let server = Server::start(gated(&began, &Arc::new(Notify::new())));
    let mut client = connect(&server.path).await;
    client.write_all(get("/gated").as_bytes()).await.unwrap();
    began.acquire().await.unwrap().forget();
    let started = Instant::now();
    assert_eq!(server.stopped().await, Unfinished { connections: 1, tasks: 0 });
    assert!(started.elapsed() >= DRAIN && started.elapsed() < DRAIN + Duration::from_secs(1));
}

#[tokio::test]
async fn as_many_as_allowed_at_once_and_more_wait() {
    let all = Arc::new(Barrier::new(CONNECTIONS_MAX));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let handler = async move || {
        most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        all.wait().await;
        now.fetch_sub(1, Ordering::Relaxed);
        "met"
    };
    let server = Server::start(Router::new().route("/", on_get(handler)));
    let clients: Vec<_> = (0..3 * CONNECTIONS_MAX)
        .map(|_| {
            let path = server.path.clone();
            tokio::spawn(async move { send(&path, get("/")).await })
        })
        .collect();
    for client in clients {
        assert_eq!(timeout(SOON, client).await.unwrap().unwrap().body, "met");
    }
    assert_eq!(seen.load(Ordering::Relaxed), CONNECTIONS_MAX);
}

#[tokio::test]
async fn other_users_are_turned_away() {
    let options = Options { uid: Options::default().uid + 1, ..Options::default() };
    let server = Server::start_with(hello(), options);
    for _ in 0..3 {
        let client = connect(&server.path).await;
        assert!(timeout(SOON, closed(client)).await.unwrap().is_empty());
    }
}

/// Fails a few times, then gives connections.
struct Failing {
    errors: Mutex<Vec<io::ErrorKind>>,
    streams: Mutex<Vec<UnixStream>>,
    polls: Arc<AtomicUsize>,
}

impl Accept for Failing {
    fn poll_accept(&self, _: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        if let Some(kind) = self.errors.lock().unwrap().pop() {
            return Poll::Ready(Err(kind.into()));
        }
        self.streams.lock().unwrap().pop().map_or(Poll::Pending, |stream| Poll::Ready(Ok(stream)))
    }
}

#[tokio::test(start_paused = true)]
async fn accept_errors_are_survived_without_spinning() {
    let (mut client, stream) = UnixStream::pair().unwrap();
    client.write_all(get("/").as_bytes()).await.unwrap();
    let mut errors = vec![io::ErrorKind::OutOfMemory; 10];
    errors.extend([io::ErrorKind::ConnectionAborted, io::ErrorKind::Interrupted]);
    let polls = Arc::new(AtomicUsize::new(0));
    let listener = Failing {
        errors: Mutex::new(errors),
        streams: Mutex::new(vec![stream]),
        polls: Arc::clone(&polls),
    };
    let options = Options::default();
    let router = apply(hello(), &options.tasks, &options.observer);
    let started = Instant::now();
    let answer = async { assert_eq!(read(client).await.body, "hello") };
    assert_eq!(run(listener, router, answer, options).await, Unfinished::default());
    // 10 ms, 20, 40, 80, 160, 320, 640, then three times a second.
    let waited = started.elapsed();
    assert!(
        waited >= Duration::from_millis(4270) && waited < Duration::from_millis(4500),
        "{waited:?}"
    );
    assert!(polls.load(Ordering::Relaxed) < 20);
}
