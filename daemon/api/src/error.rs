//! The one body of every answer that is no success, and the closed set of its codes.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// Why a request was not served.
    ErrorCode {
        /// A parameter, a header or a field does not make sense.
        BadRequest = "bad_request",
        /// The body is no JSON, or not of the shape that the route wants.
        InvalidJson = "invalid_json",
        /// An id or name has characters that it may not have.
        InvalidId = "invalid_id",
        /// No such route.
        NotFound = "not_found",
        /// The route exists, but not with this method.
        MethodNotAllowed = "method_not_allowed",
        /// The body is larger than the daemon reads.
        PayloadTooLarge = "payload_too_large",
        /// The body is not declared as JSON.
        UnsupportedMediaType = "unsupported_media_type",
        /// The caller speaks a newer protocol.
        UpgradeRequired = "upgrade_required",
        /// The caller runs as another user.
        PeerDenied = "peer_denied",
        /// Neither `claude` nor `codex`.
        HostUnknown = "host_unknown",
        /// No such profile.
        ProfileUnknown = "profile_unknown",
        /// No session with this id.
        SessionUnknown = "session_unknown",
        /// No pass of the session with this number.
        PassUnknown = "pass_unknown",
        /// The session's file cannot be read now.
        SessionUnreadable = "session_unreadable",
        /// The named transcript is in none of the hosts' folders.
        TranscriptOutsideRoots = "transcript_outside_roots",
        /// The named file is no transcript of this host.
        NotATranscript = "not_a_transcript",
        /// The thread cannot be forked, or not truly; the message says why.
        ForkRefused = "fork_refused",
        /// More ids than one request may hold.
        TooManyIds = "too_many_ids",
        /// Too much to do at the moment.
        Busy = "busy",
        /// The daemon is about to stop.
        ShuttingDown = "shutting_down",
        /// It took too long.
        Timeout = "timeout",
        /// A bug in the daemon.
        Internal = "internal",
    }
}

impl ErrorCode {
    /// The HTTP status that goes with the code.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest | Self::InvalidJson | Self::InvalidId | Self::ProfileUnknown => 400,
            Self::PeerDenied | Self::TranscriptOutsideRoots => 403,
            Self::NotFound | Self::HostUnknown | Self::SessionUnknown | Self::PassUnknown => 404,
            Self::MethodNotAllowed => 405,
            Self::PayloadTooLarge | Self::TooManyIds => 413,
            Self::UnsupportedMediaType => 415,
            Self::SessionUnreadable | Self::NotATranscript | Self::ForkRefused => 422,
            Self::UpgradeRequired => 426,
            Self::Internal | Self::Other => 500,
            Self::Busy | Self::ShuttingDown => 503,
            Self::Timeout => 504,
        }
    }

    /// What the caller can do about it, where there is something.
    #[must_use]
    pub const fn hint(self) -> Option<&'static str> {
        match self {
            Self::BadRequest | Self::InvalidJson => {
                Some("see GET /v1/openapi.json for the shape that the route wants")
            }
            Self::InvalidId => Some("ids are 1 to 128 characters of A-Z a-z 0-9 . _ -"),
            Self::NotFound | Self::MethodNotAllowed => {
                Some("see GET /v1/openapi.json for the routes")
            }
            Self::PayloadTooLarge => Some("send ids and lengths, never the text of messages"),
            Self::UnsupportedMediaType => Some("send Content-Type: application/json"),
            Self::UpgradeRequired => Some("the daemon is older than its caller: restart it"),
            Self::PeerDenied => Some("each user runs a daemon of their own"),
            Self::HostUnknown => Some("hosts are claude and codex"),
            Self::ProfileUnknown => Some("profiles are reference and standard"),
            Self::SessionUnknown => Some("`compactctl sessions` lists the known ones"),
            Self::PassUnknown => Some("GET /v1/sessions/{id}/passes lists the known ones"),
            Self::SessionUnreadable => Some("check that the file exists and is yours"),
            Self::TranscriptOutsideRoots => {
                Some("add its folder to [roots] in config.toml if it belongs to a host")
            }
            Self::NotATranscript => Some("name a .jsonl file that the host itself wrote"),
            Self::ForkRefused => Some("resume the thread itself, with `codex resume`"),
            Self::TooManyIds => Some("leave out the rows that an earlier compaction removed"),
            Self::Busy | Self::ShuttingDown | Self::Timeout => {
                Some("go on without an answer; the next request may be served")
            }
            Self::Internal => Some("the request id leads to the cause in the daemon's log"),
            Self::Other => None,
        }
    }

    /// The body for this code, with its default hint.
    pub fn body(self, message: impl Into<String>, request_id: impl Into<String>) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail {
                code: self,
                message: message.into(),
                hint: self.hint().map(str::to_owned),
            },
            request_id: request_id.into(),
        }
    }
}

/// The body of every answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
    /// Id of the request, as in the log.
    pub request_id: String,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// For programs.
    pub code: ErrorCode,
    /// For people: lower case, no full stop, never content of a transcript.
    pub message: String,
    /// What the caller can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_status_and_hint() {
        for code in ErrorCode::ALL {
            assert!((400..=599).contains(&code.status()), "{code}");
            assert!(code.hint().is_some(), "{code}");
            assert_eq!(ErrorCode::from_name(code.name()), Some(*code));
        }
        let new: ErrorBody = serde_json::from_str(
            r#"{"error":{"code":"eaten_by_bear","message":"m"},"request_id":"r"}"#,
        )
        .unwrap();
        assert_eq!(new.error.code, ErrorCode::Other);
    }
}
