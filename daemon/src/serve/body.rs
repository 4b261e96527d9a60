//! Reading a JSON body within limits, with errors that tell where it is wrong but never quote it.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body as HttpStream, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use compactd_api::{BODY_MAX, ErrorCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A body that has not arrived by then is given up.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a body that is too large is read and thrown away, so that the caller gets to the answer
/// instead of a broken pipe.
const DISCARD_MAX: usize = 8 * BODY_MAX;

/// A body declared as JSON, of allowed size, not yet parsed: for types that borrow from it.
#[derive(Debug)]
pub struct RawBody(Vec<u8>);

/// A parsed JSON body.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl RawBody {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Parses the bytes.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidJson`].
    pub fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.0)
            .map_err(|error| ApiError::new(ErrorCode::InvalidJson, describe(&error)))
    }
}

impl<S: Sync> FromRequest<S> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
        if !is_json {
            return Err(ApiError::new(
                ErrorCode::UnsupportedMediaType,
                "the body is not declared as json",
            ));
        }
        match tokio::time::timeout(BODY_TIMEOUT, read(request.into_body(), length)).await {
            Ok(body) => body.map(Self),
            Err(_) => Err(ApiError::new(ErrorCode::Timeout, "the body did not arrive in time")),
        }
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        RawBody::from_request(request, state).await?.json().map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(CONTENT_TYPE).map(|value| value.to_str()) else {
        return false;
    };
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// `length` is what the caller announced.
async fn read(mut body: HttpStream, length: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(length.min(BODY_MAX));
    let mut seen = 0_usize;
    while let Some(frame) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        let Ok(frame) = frame else {
            return Err(ApiError::new(ErrorCode::BadRequest, "the body ended early"));
        };
        let Ok(data) = frame.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= BODY_MAX {
            bytes.extend_from_slice(&data);
        } else if seen > DISCARD_MAX {
            break;
        } else {
            bytes = Vec::new();
        }
    }
    if seen > BODY_MAX {
        let message = format!("the body is larger than {BODY_MAX} bytes");
        return Err(ApiError::new(ErrorCode::PayloadTooLarge, message));
    }
    Ok(bytes)
}

/// What is wrong and where, without the values: they may come from a transcript.
fn describe(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if !error.is_data() {
        return format!("the body is no valid json at line {line} column {column}");
    }
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let what = if text.starts_with("missing field `") {
        // The name is ours.
        text.to_owned()
    } else {
        // `invalid type: string "…", expected u32`: leave out the middle.
        let kind = text.split(['"', '`']).next().unwrap_or_default();
        let kind = kind.split(", expected ").next().unwrap_or_default().trim_end();
        match text.rfind(", expected ") {
            Some(at) if is_kind(kind) => {
                format!("{kind}{}", text.get(at..).unwrap_or_default())
            }
            _ => "unexpected value".to_owned(),
        }
    };
    format!("the body has not the wanted shape at line {line} column {column}: {what}")
}

fn is_kind(text: &str) -> bool {
    ["invalid type", "invalid value", "invalid length", "unknown variant", "unknown field"]
        .iter()
        .any(|kind| text.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use compactd_api::compact::CompactRequest;

    use super::*;

    fn message<'a, T: Deserialize<'a>>(text: &'a str) -> String {
        describe(&serde_json::from_str::<T>(text).err().unwrap())
    }

    #[test]
    fn describes_without_quoting() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only read by serde")]
        struct Want {
            number: u32,
            list: Vec<u8>,
        }
        let at = "the body has not the wanted shape at line";
        for (text, expected) in [
            ("{", "the body is no valid json at line 1 column 1".to_owned()),
            ("{\n \"number\":}", "the body is no valid json at line 2 column 11".to_owned()),
            (r#"{"number":1}"#, format!("{at} 1 column 12: missing field `list`")),
            (
                r#"{"number":"secret, expected \" x"}"#,
                format!("{at} 1 column 33: invalid type: string, expected u32"),
            ),
            (r#"{"number":-7}"#, format!("{at} 1 column 12: invalid value: integer, expected u32")),
            (r#"{"number":null}"#, format!("{at} 1 column 14: invalid type: null, expected u32")),
            (
                r#"{"number":1,"list":{}}"#,
                format!("{at} 1 column 19: invalid type: map, expected a sequence"),
            ),
        ] {
            assert_eq!(message::<Want>(text), expected, "{text}");
        }
        let message = message::<CompactRequest<'_>>(r#"{"host":"claude","rows":"secret"}"#);
        assert!(!message.contains("secret"), "{message}");
    }
}
