//! Through a real socket: every answer that is no success has the one shape.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::{get as on_get, post};
use compactd_api::compact::CompactRequest;
use compactd_api::{BODY_MAX, ErrorCode};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;

use super::testkit::{Server, connect, get, read, request, send};
use super::{ApiError, BODY_TIMEOUT, Body, Observer, Options, RawBody, Tasks};

const JSON: &str = "Content-Type: application/json\r\n";

#[derive(Debug, Deserialize)]
struct Want {
    number: u32,
}

fn router() -> Router {
    Router::new()
        .route("/get", on_get(async || "hello"))
        .route("/want", post(async |Body(want): Body<Want>| want.number.to_string()))
        .route("/raw", post(async |body: RawBody| body.bytes().len().to_string()))
        .route("/borrowed", post(borrowed))
        .route("/query", on_get(async |Query(want): Query<Want>| want.number.to_string()))
        .route("/panic", on_get(panics))
        .route("/panic-in-task", on_get(panics_in_task))
        .route("/bare", on_get(async || StatusCode::BAD_GATEWAY))
        .route("/own", on_get(async || ApiError::from(ErrorCode::SessionUnknown)))
        .route("/sessions/{id}", on_get(async || "x").delete(async || StatusCode::NO_CONTENT))
}

async fn borrowed(body: RawBody) -> Result<String, ApiError> {
    let request: CompactRequest<'_> = body.json()?;
    request.check()?;
    Ok(request.session.into_owned())
}

async fn panics() -> String {
    panic!("secret")
}

async fn panics_in_task(tasks: Tasks) -> Result<String, ApiError> {
    tasks.detached(panics()).await
}

async fn fails(server: &Server, bytes: impl AsRef<[u8]>, code: ErrorCode) -> String {
    let answer = send(&server.path, bytes).await;
    let error = answer.error().error;
    assert_eq!(error.code, code, "{}", error.message);
    assert!(!answer.body.contains("secret"), "{}", answer.body);
    error.message
}

#[tokio::test]
async fn successes_are_left_alone() {
    let server = Server::start(router());
    let answer = send(&server.path, get("/get")).await;
    assert_eq!((answer.status, &*answer.body), (200, "hello"));
    let id = answer.header("compactd-request-id").unwrap();
    assert!(id.len() == 18 && id.starts_with("r-"), "{id}");
    for kind in [JSON, "content-type: Application/JSON; charset=utf-8\r\n"] {
        let answer = send(&server.path, request("POST", "/want", kind, "{\"number\":7}")).await;
        assert_eq!((answer.status, &*answer.body), (200, "7"));
    }
    for protocol in ["Compactd-Protocol: 1\r\n", ""] {
        assert_eq!(send(&server.path, request("GET", "/get", protocol, "")).await.status, 200);
    }
}

#[tokio::test]
async fn head_and_options() {
    let server = Server::start(router());
    let answer = send(&server.path, request("HEAD", "/get", "", "")).await;
    assert_eq!((answer.status, &*answer.body), (200, ""));
    assert_eq!(answer.header("content-length"), Some("5"));
    let answer = send(&server.path, request("HEAD", "/nowhere", "", "")).await;
    assert_eq!((answer.status, &*answer.body), (404, ""));
    let answer = send(&server.path, request("OPTIONS", "/sessions/x", "", "")).await;
    assert_eq!((answer.status, answer.header("allow")), (204, Some("GET,HEAD,DELETE")));
    fails(&server, request("OPTIONS", "/nowhere", "", ""), ErrorCode::NotFound).await;
}

#[tokio::test]
async fn every_failure_has_the_one_shape() {
    let server = Server::start(router());
    let server = &server;
    use ErrorCode as E;
    assert_eq!(fails(server, get("/nowhere"), E::NotFound).await, "no such route");
    let answer = send(&server.path, request("PUT", "/get", "", "")).await;
    assert_eq!(answer.error().error.code, E::MethodNotAllowed);
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));

    let post = |headers: &str, body: &str| request("POST", "/want", headers, body);
    let message = fails(server, post(JSON, "{\"number\":"), E::InvalidJson).await;
    assert_eq!(message, "the body is no valid json at line 1 column 10");
    let message = fails(server, post(JSON, "{\n\"number\":\"secret\"}"), E::InvalidJson).await;
    assert_eq!(
        message,
        "the body has not the wanted shape at line 2 column 17: invalid type: string, expected u32"
    );
    fails(server, post(JSON, ""), E::InvalidJson).await;
    fails(server, post("", "{}"), E::UnsupportedMediaType).await;
    fails(server, post("Content-Type: text/plain\r\n", "{}"), E::UnsupportedMediaType).await;

    for (header, code) in
        [("2", E::UpgradeRequired), ("x", E::BadRequest), ("\u{e9}", E::BadRequest)]
    {
        let header = format!("Compactd-Protocol: {header}\r\n");
        fails(server, request("GET", "/get", &header, ""), code).await;
    }

    let message = fails(server, get("/query?number=x"), E::BadRequest).await;
    assert!(message.starts_with("failed to deserialize query string"), "{message}");
    fails(server, get("/bare"), E::Internal).await;
    fails(server, get("/own"), E::SessionUnknown).await;
    fails(server, request("POST", "/borrowed", JSON, "[]"), E::InvalidJson).await;
    let body = r#"{"host":"other","session":"s","transcript":"/t","trigger":"auto","rows":[]}"#;
    fails(server, request("POST", "/borrowed", JSON, body), E::HostUnknown).await;

    fails(server, get("/panic"), E::Internal).await;
    fails(server, get("/panic-in-task"), E::Internal).await;
    assert_eq!(send(&server.path, get("/get")).await.status, 200);
}

#[tokio::test]
async fn observer_sees_every_status_and_a_hint_can_be_replaced() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let observer = Observer::new(move |status| told.lock().unwrap().push(status));
    let options = Options { observer, ..Options::default() };
    let hint = |hint| ApiError::new(ErrorCode::Internal, "no room").with_hint(hint);
    let router = router()
        .route("/hint", on_get(async move || hint("free some space")))
        .route("/no-hint", on_get(async move || hint("")));
    let server = Server::start_with(router, options);
    for target in ["/get", "/nowhere", "/panic"] {
        send(&server.path, get(target)).await;
    }
    assert_eq!(*seen.lock().unwrap(), [200, 404, 500]);
    let answer = send(&server.path, get("/hint")).await;
    assert!(answer.body.contains(r#""hint":"free some space""#), "{}", answer.body);
    fails(&server, get("/no-hint"), ErrorCode::Internal).await;
}

#[tokio::test]
async fn body_limit() {
    let server = Server::start(router());
    let at_limit = "x".repeat(BODY_MAX);
    let answer = send(&server.path, request("POST", "/raw", JSON, &at_limit)).await;
    assert_eq!((answer.status, answer.body), (200, BODY_MAX.to_string()));
    let over = format!("{at_limit}x");
    fails(&server, request("POST", "/raw", JSON, &over), ErrorCode::PayloadTooLarge).await;
    let chunked = format!(
        "POST /raw HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{JSON}\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{over}\r\n0\r\n\r\n",
        over.len()
    );
    fails(&server, chunked, ErrorCode::PayloadTooLarge).await;
}

#[tokio::test(start_paused = true)]
async fn half_a_body_times_out() {
    let server = Server::start(router());
    let started = tokio::time::Instant::now();
    let mut stream = connect(&server.path).await;
    let head = format!("POST /raw HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 9\r\n\r\nhalf");
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read(stream).await.error().error.code, ErrorCode::Timeout);
    assert!(started.elapsed() < BODY_TIMEOUT + Duration::from_secs(1));
}
