//! The socket to serve on, wherever it comes from.

use compactd_api::dirs::Env;
use compactd_api::socket::{SocketError, link_path, listen_path};

use super::activation::{ActivationError, take_listener};
use super::bind::{Bound, adopt, bind};
use super::error::BindError;

/// Why there is no socket to serve on.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// There is no place for it.
    #[error(transparent)]
    Place(#[from] SocketError),
    /// systemd passed something else.
    #[error(transparent)]
    Activation(#[from] ActivationError),
    /// It cannot be made or used.
    #[error(transparent)]
    Bind(#[from] BindError),
}

impl TakeError {
    /// What the person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Place(_) => Some("set COMPACTD_SOCKET to a short absolute path".to_owned()),
            Self::Activation(_) => {
                Some("compactd.socket needs one ListenStream= and no Accept=".to_owned())
            }
            Self::Bind(error) => error.hint(),
        }
    }
}

/// Takes the socket that systemd passed, or makes one, and sees to the link under HOME.
///
/// Call it once and before any thread: see [`take_listener`]. That the link cannot be made is only a
/// warning in the log.
///
/// # Errors
/// If there is no socket to serve on; another running daemon is the usual reason.
pub fn take_socket(env: &Env) -> Result<Bound, TakeError> {
    if let Some(listener) = take_listener()? {
        // Whoever says where the socket is knows where to look: no link then.
        let link = if env.socket.is_some() { None } else { link_path(env) };
        return Ok(warn(adopt(listener, link.as_deref())?));
    }
    let listen = listen_path(env)?;
    if let Some(error) = &listen.link_error {
        tracing::warn!(%error, "no link under home: only callers that know the socket find it");
    }
    Ok(warn(bind(&listen)?))
}

fn warn(bound: Bound) -> Bound {
    if let Some(error) = &bound.link_error {
        let hint = error.hint();
        tracing::warn!(%error, hint, "no link under home: only callers that know the socket find it");
    }
    bound
}
