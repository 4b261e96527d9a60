//! What stands around each request: its id, its span, the protocol check, panics, and the one shape of
//! every answer that is no success.
//!
//! The only answers that do not come through here are those of hyper to bytes that are no HTTP request:
//! 400, 414 and 431 without a body.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use compactd_api::{
    BODY_MAX, ErrorCode, PROTOCOL, PROTOCOL_HEADER, REQUEST_ID_HEADER, check_protocol,
};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::error::ApiError;
use super::tasks::{Tasks, catch_panic};

/// Longest text of an answer that is not ours that is taken over as the message.
const FOREIGN_TEXT_MAX: usize = 1024;

/// Id of a request: in its answer, in error bodies and in the log. Handlers take it as an
/// [`Extension`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(u64);

impl RequestId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r-{:016x}", self.0)
    }
}

/// Is told the status of every answer, for the counters.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn Fn(u16) + Send + Sync>>);

impl Observer {
    /// Calls `told` with every status.
    pub fn new(told: impl Fn(u16) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    fn tell(&self, status: StatusCode) {
        if let Some(told) = &self.0 {
            told(status.as_u16());
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}

/// Puts everything around the routes. [`super::serve`] does this itself; call it only to test routes
/// without a socket.
pub fn apply(router: Router, tasks: &Tasks, observer: &Observer) -> Router {
    router
        .fallback(async || ApiError::new(ErrorCode::NotFound, "no such route"))
        .method_not_allowed_fallback(async || {
            ApiError::new(ErrorCode::MethodNotAllowed, "the route has no such method")
        })
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(Extension(tasks.clone()))
        .layer(from_fn_with_state(observer.clone(), around))
}

async fn around(State(observer): State<Observer>, mut request: Request, next: Next) -> Response {
    let id = RequestId::next();
    request.extensions_mut().insert(id);
    let route = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str);
    let method = request.method().clone();
    let span = tracing::debug_span!(
        "request", %id, %method, route, session = tracing::field::Empty
    );
    let answer = answer(id, method, request, next).instrument(span).await;
    observer.tell(answer.status());
    answer
}

async fn answer(id: RequestId, method: Method, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let response = match check(&request) {
        Err(error) => error.into_response(),
        Ok(()) => catch_panic(next.run(request))
            .await
            .unwrap_or_else(|| ApiError::internal("handler panicked").into_response()),
    };
    let status = response.status();
    let mut response = if method == Method::OPTIONS && status == StatusCode::METHOD_NOT_ALLOWED {
        // No route has OPTIONS. axum adds the `Allow` header further out, and that is the answer.
        StatusCode::NO_CONTENT.into_response()
    } else if status.as_u16() >= 400 {
        reshape(response, id).await
    } else {
        response
    };
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID_HEADER, value);
    }
    tracing::debug!(
        status = response.status().as_u16(),
        took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        "answered"
    );
    response
}

fn check(request: &Request) -> Result<(), ApiError> {
    // Bytes that are no text are no number either.
    let header = request.headers().get(PROTOCOL_HEADER).map(|value| value.to_str().unwrap_or(""));
    check_protocol(header).map_err(|code| {
        if code == ErrorCode::UpgradeRequired {
            let message = format!("the caller speaks a newer protocol, the daemon {PROTOCOL}");
            ApiError::new(code, message)
        } else {
            ApiError::new(code, format!("{PROTOCOL_HEADER} is not a protocol number"))
        }
    })
}

async fn reshape(response: Response, id: RequestId) -> Response {
    let (mut parts, body) = response.into_parts();
    let error = match parts.extensions.remove::<ApiError>() {
        Some(error) => error,
        None => adopt(parts.status, body).await,
    };
    if let Some(cause) = error.cause() {
        tracing::error!(%id, code = %error.code(), cause, "request failed");
    }
    let body = error.body(&id.to_string());
    let mut answer = Response::new(Body::from(serde_json::to_vec(&body).unwrap_or_default()));
    *answer.status_mut() = error.status();
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}

/// Makes one of ours of an answer that is not: those of axum's extractors, or a bare status.
async fn adopt(status: StatusCode, body: Body) -> ApiError {
    let code = match status.as_u16() {
        404 => ErrorCode::NotFound,
        405 => ErrorCode::MethodNotAllowed,
        413 => ErrorCode::PayloadTooLarge,
        415 => ErrorCode::UnsupportedMediaType,
        422 => ErrorCode::InvalidJson,
        426 => ErrorCode::UpgradeRequired,
        503 => ErrorCode::Busy,
        408 | 504 => ErrorCode::Timeout,
        500.. => ErrorCode::Internal,
        _ => ErrorCode::BadRequest,
    };
    let text = axum::body::to_bytes(body, FOREIGN_TEXT_MAX).await.unwrap_or_default();
    match std::str::from_utf8(&text) {
        Ok(text) if !text.is_empty() && code != ErrorCode::Internal => {
            let message = text.trim_end_matches('.');
            let mut chars = message.chars();
            let first = chars.next().map(|first| first.to_ascii_lowercase());
            ApiError::new(code, first.into_iter().chain(chars).collect::<String>())
        }
        _ => code.into(),
    }
}
