//! What the daemon and its callers agree on: wire types, error codes, route names, limits, where the
//! socket is and which settings there are.
//!
//! Nothing here does I/O: the environment is passed in. The wire types are twins of the core's types,
//! so that the rules can change without the protocol, and the other way round.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod compact;
pub mod config;
pub mod convert;
pub mod dirs;
pub mod error;
pub mod fork;
pub mod hooks;
pub mod ids;
pub mod openapi;
pub mod passes;
pub mod pins;
pub mod recall;
pub mod routes;
pub mod sessions;
pub mod settings;
pub mod socket;
pub mod text;
pub mod words;

pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use text::Text;
pub use words::{CallFate, DecisionKind, History, Host, Level, Profile, Role, Trigger};

use std::time::Duration;

/// Number of the protocol that this version speaks: the `1` of `/v1`.
pub const PROTOCOL: u32 = 1;
/// Request header with the caller's protocol number.
pub const PROTOCOL_HEADER: &str = "Compactd-Protocol";
/// Request header of a hook: until when its answer is read, in milliseconds since 1970.
pub const UNTIL_HEADER: &str = "Compactd-Until";
/// Answer header with the id that stands in logs and in error bodies.
pub const REQUEST_ID_HEADER: &str = "Compactd-Request-Id";

/// Largest request body that the daemon reads.
pub const BODY_MAX: usize = 8 * 1024 * 1024;
/// Largest body, either way, that passes Claude Code's own door (`$.http.fetch`): characters of a
/// request, bytes of an answer.
pub const HOST_BODY_MAX: usize = 4_194_304;
/// Most connections at once; more wait in the listen queue.
pub const CONNECTIONS_MAX: usize = 64;
/// Most tool call and result ids in one compaction request.
pub const IDS_MAX: usize = 20_000;
/// A connection that has not sent its header by then is closed.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// What a hook waits for an answer before it goes on without one.
pub const HOOK_DEADLINE: Duration = Duration::from_millis(1_500);
/// What a compaction request waits for its session to be read: the caller's own deadline is that of a
/// hook, and the answer has to reach it.
pub const COMPACT_WAIT: Duration = Duration::from_millis(1_200);
/// What a stopping daemon gives the requests that still run.
pub const DRAIN: Duration = Duration::from_secs(5);

/// Decides whether a caller with this [`PROTOCOL_HEADER`] can be served.
///
/// No header counts as the current protocol, so that `curl` works; an older number is served.
///
/// # Errors
/// [`ErrorCode::UpgradeRequired`] for a newer protocol, [`ErrorCode::BadRequest`] for no number.
pub fn check_protocol(header: Option<&str>) -> Result<(), ErrorCode> {
    let Some(header) = header else { return Ok(()) };
    match header.trim().parse::<u32>() {
        Ok(0) | Err(_) => Err(ErrorCode::BadRequest),
        Ok(number) if number > PROTOCOL => Err(ErrorCode::UpgradeRequired),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_header() {
        assert_eq!(check_protocol(None), Ok(()));
        assert_eq!(check_protocol(Some(" 1 ")), Ok(()));
        assert_eq!(check_protocol(Some("2")), Err(ErrorCode::UpgradeRequired));
        for bad in ["", "0", "-1", "one", "99999999999"] {
            assert_eq!(check_protocol(Some(bad)), Err(ErrorCode::BadRequest), "{bad}");
        }
    }
}
