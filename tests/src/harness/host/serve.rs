//! HTTP for scripted APIs: a server on a port of its own, and answers that may be held back.

use std::convert::Infallible;
use std::net::TcpListener as StdListener;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::Body;
use axum::http::Response;
use hyper::body::{Bytes, Frame};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

use super::gate::Gate;

/// A server on 127.0.0.1. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one; `build` gets its address.
    pub(super) fn start(build: impl FnOnce(&str) -> Router) -> Self {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let app = build(&format!("http://{}", listener.local_addr().unwrap()));
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let server = axum::serve(listener, app).into_future();
                tokio::select! {
                    ended = server => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the mock API panicked");
        }
    }
}

/// An HTTP answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: String,
    /// What comes after the body when a gate is opened.
    pub(super) rest: Option<(Gate, String)>,
}

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self { status, content_type: "application/json", body: body.to_string(), rest: None }
    }

    /// Server-sent events.
    pub(super) fn events(body: String) -> Self {
        Self { status: 200, content_type: "text/event-stream", body, rest: None }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        Response::builder()
            .status(self.status)
            .header("content-type", self.content_type)
            .header("request-id", "req_mock")
            .body(match self.rest {
                Some((gate, rest)) => two_parts(self.body, gate, rest),
                None => Body::from(self.body),
            })
            .unwrap()
    }
}

/// A body whose second part comes when the gate is opened.
fn two_parts(first: String, gate: Gate, second: String) -> Body {
    let (send, parts) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let _gone = send.send(first);
        gate.pass().await;
        let _gone = send.send(second);
    });
    Body::new(Parts { parts })
}

struct Parts {
    parts: mpsc::UnboundedReceiver<String>,
}

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.parts.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part.into()))))
    }
}
