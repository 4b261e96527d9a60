//! A client on tokio, for tests and load tools: raw requests, raw answers.

use std::path::{Path, PathBuf};

use compactd_api::{PROTOCOL, PROTOCOL_HEADER};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use hyperlocal::{UnixConnector, Uri};

use crate::http::Response;

/// Keeps connections open between requests.
#[derive(Debug, Clone)]
pub struct AsyncClient {
    client: Client<UnixConnector, Full<Bytes>>,
    socket: PathBuf,
}

/// A request that was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AsyncError {
    /// Method, path or headers are no HTTP.
    #[error("cannot make the request")]
    Request(#[from] hyper::http::Error),
    /// No answer came.
    #[error("no answer from the daemon")]
    Send(#[from] hyper_util::client::legacy::Error),
    /// The answer broke off.
    #[error("the answer broke off")]
    Body(#[from] hyper::Error),
}

impl AsyncClient {
    /// A client of the daemon that listens at a path.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        let client = Client::builder(TokioExecutor::new()).build(UnixConnector);
        Self { client, socket: socket.to_path_buf() }
    }

    /// Sends a request and reads the answer, whatever its status.
    ///
    /// # Errors
    /// No whole answer came.
    pub async fn send(
        &self,
        method: &str,
        target: &str,
        body: Option<Bytes>,
    ) -> Result<Response, AsyncError> {
        let uri: hyper::Uri = Uri::new(&self.socket, target).into();
        let mut request =
            Request::builder().method(method).uri(uri).header(PROTOCOL_HEADER, PROTOCOL);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body.unwrap_or_default()))?;
        let answer = self.client.request(request).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes().to_vec();
        Ok(Response { status, body })
    }
}
