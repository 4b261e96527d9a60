//! Connections: who may connect, how many at once, how long they may take, and how they end.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use compactd_api::{CONNECTIONS_MAX, DRAIN, HEADER_TIMEOUT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::folder::own_uid;
use super::layers::{self, Observer};
use super::seldom::Seldom;
use super::tasks::Tasks;

/// What a connection gets at the end to send the rest of a header, or to take the rest of an answer.
const CLOSE_GRACE: Duration = Duration::from_millis(250);
/// First and longest pause after a failed accept.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Limits; the defaults are those of the API.
#[derive(Debug, Clone)]
pub struct Options {
    /// Most connections at once; more wait in the listen queue.
    pub connections_max: usize,
    /// A connection that has not sent its (next) header by then is closed.
    pub header_timeout: Duration,
    /// What running requests and tasks get when the daemon stops.
    pub drain: Duration,
    /// The user who may connect.
    pub uid: u32,
    /// Where the handlers' detached work is counted.
    pub tasks: Tasks,
    /// Is told how requests end.
    pub observer: Observer,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            header_timeout: HEADER_TIMEOUT,
            drain: DRAIN,
            uid: own_uid(),
            tasks: Tasks::new(),
            observer: Observer::default(),
        }
    }
}

/// What was not done when the time to drain was over. Zeros: everything ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unfinished {
    /// Connections that were cut.
    pub connections: usize,
    /// Tasks that still run; they end with the runtime.
    pub tasks: usize,
}

/// Serves `router` until `shutdown` ends, then lets running requests and tasks end.
///
/// The listener is closed before the drain, so that new callers are refused at once.
///
/// # Errors
/// If the listener cannot be used. Failing connections are no error.
pub async fn serve(
    listener: StdListener,
    router: Router,
    shutdown: impl Future,
    options: Options,
) -> io::Result<Unfinished> {
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let router = layers::apply(router, &options.tasks, &options.observer);
    Ok(run(listener, router, shutdown, options).await)
}

/// Where connections come from. Tests have one that fails.
pub(super) trait Accept {
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<UnixStream>>;
}

impl Accept for UnixListener {
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        Self::poll_accept(self, context).map_ok(|(stream, _)| stream)
    }
}

pub(super) async fn run(
    listener: impl Accept,
    router: Router,
    shutdown: impl Future,
    options: Options,
) -> Unfinished {
    let places = Arc::new(Semaphore::new(options.connections_max));
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut door = Door::new(listener, options.uid);
    let mut shutdown = pin!(shutdown);
    loop {
        let next = async {
            // A closed semaphore cannot happen; it would mean no place, for ever.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return std::future::pending().await;
            };
            (door.next().await, place)
        };
        tokio::select! {
            biased;
            _ = shutdown.as_mut() => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                report(ended);
            }
            (stream, place) = next => {
                let connection = Connection {
                    stopped: stopped.clone(),
                    header_timeout: options.header_timeout,
                    _place: place,
                };
                connections.spawn(connection.serve(stream, router.clone()));
            }
        }
    }
    drop(door);
    drop(stop);
    drain(connections, &options).await
}

async fn drain(mut connections: JoinSet<()>, options: &Options) -> Unfinished {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
        options.tasks.idle().await;
    };
    if tokio::time::timeout(options.drain, all).await.is_ok() {
        return Unfinished::default();
    }
    let left = Unfinished { connections: connections.len(), tasks: options.tasks.count() };
    tracing::warn!(left.connections, left.tasks, "stopping with requests unfinished");
    connections.shutdown().await;
    left
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("connection panicked");
    }
}

/// Lets in those who may, and survives failures.
struct Door<A> {
    listener: A,
    uid: u32,
    /// Not before then.
    closed_until: Option<Instant>,
    pause: Duration,
    failed: Seldom,
    denied: Seldom,
}

impl<A: Accept> Door<A> {
    fn new(listener: A, uid: u32) -> Self {
        let (pause, _) = PAUSE;
        let (failed, denied) = (Seldom::default(), Seldom::default());
        Self { listener, uid, closed_until: None, pause, failed, denied }
    }

    /// The next connection. May be dropped and called again at any time.
    async fn next(&mut self) -> UnixStream {
        loop {
            if let Some(until) = self.closed_until {
                tokio::time::sleep_until(until).await;
                self.closed_until = None;
            }
            match std::future::poll_fn(|context| self.listener.poll_accept(context)).await {
                Ok(stream) => {
                    (self.pause, _) = PAUSE;
                    if self.may_enter(&stream) {
                        return stream;
                    }
                }
                Err(error) => self.fail(&error),
            }
        }
    }

    fn fail(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        // No descriptors or no memory: the connection stays in the queue, so that trying again at
        // once would fail at once.
        self.closed_until = Some(Instant::now() + self.pause);
        let (_, longest) = PAUSE;
        self.pause = (self.pause * 2).min(longest);
        if let Some(skipped) = self.failed.due() {
            tracing::warn!(%error, skipped, "cannot accept connections");
        }
    }

    fn may_enter(&mut self, stream: &UnixStream) -> bool {
        let peer = match stream.peer_cred() {
            Ok(peer) if peer.uid() == self.uid => return true,
            Ok(peer) => Some(peer.uid()),
            Err(_) => None,
        };
        if let Some(skipped) = self.denied.due() {
            tracing::warn!(uid = peer, skipped, "refused a connection of another user");
        }
        false
    }
}

struct Connection {
    /// Ends with its sender.
    stopped: watch::Receiver<()>,
    header_timeout: Duration,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn serve(mut self, stream: UnixStream, router: Router) {
        let handling = Arc::new(AtomicUsize::new(0));
        let service = service_fn(|request| {
            let handling = Handling::new(&handling);
            let router = router.clone();
            async move {
                let response = router.oneshot(request).await;
                drop(handling);
                response
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return log(ended),
            _ = self.stopped.changed() => connection.as_mut().graceful_shutdown(),
        }
        // Half a header is not worth waiting for; a running handler is.
        match tokio::time::timeout(CLOSE_GRACE, connection.as_mut()).await {
            Ok(ended) => log(ended),
            Err(_) if handling.load(Ordering::Relaxed) == 0 => {}
            Err(_) => log(connection.await),
        }
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection failed");
    }
}

/// Counts the handlers that run.
struct Handling(Arc<AtomicUsize>);

impl Handling {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
