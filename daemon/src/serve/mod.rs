//! Serving the API on a Unix socket: making or adopting the socket, accepting, limits, errors, drain.
//!
//! ```text
//! activation  a socket from systemd, and talking back to it
//! bind        our own socket: private folder, lock, stale sockets, the link under HOME
//! take        one or the other
//! accept      connections: who may, how many, how long
//! layers      around each request: id, span, protocol, panics, one shape for all errors
//! body        reading JSON within limits
//! tasks       work that outlives its request
//! ```
//!
//! axum's own `serve` is not used: it sets no header time-out, so that half a header holds up the
//! shutdown for ever.

mod accept;
pub mod activation;
mod bind;
mod body;
mod error;
mod folder;
mod layers;
mod lock;
mod seldom;
mod signals;
mod take;
mod tasks;

#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests_accept;
#[cfg(test)]
mod tests_bind;
#[cfg(test)]
mod tests_layers;

pub use accept::{Options, Unfinished, serve};
pub use bind::{Bound, SocketGuard, adopt, bind};
pub use body::{BODY_TIMEOUT, Body, RawBody};
pub use error::{ApiError, BindError, FolderProblem};
pub use layers::{Observer, RequestId, apply};
pub use signals::signals;
pub use take::{TakeError, take_socket};
pub use tasks::{Tasks, hide_panic_messages};
