//! As much of HTTP/1.1 as one request over a Unix socket needs, blocking, with a deadline.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use compactd_api::{PROTOCOL, PROTOCOL_HEADER};

const HEAD_MAX: usize = 64 * 1024;
const BODY_MAX: usize = 512 * 1024 * 1024;
const HEADERS_MAX: usize = 64;
const STEP: usize = 64 * 1024;

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`, `POST`, `DELETE`.
    pub method: &'a str,
    /// Path with query.
    pub target: &'a str,
    /// JSON, if there is a body.
    pub body: Option<&'a [u8]>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Why no whole answer came.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It took too long.
    #[error("no answer from the daemon at {} within {} s", socket.display(), after.as_secs())]
    Timeout {
        /// Where it listens.
        socket: PathBuf,
        /// How long was waited.
        after: Duration,
    },
    /// The connection broke.
    #[error("lost the daemon at {}", socket.display())]
    Broken {
        /// Where it listens.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What listens there does not speak HTTP as we know it.
    #[error("what listens at {} is not compactd: {reason}", socket.display())]
    Malformed {
        /// Where it listens.
        socket: PathBuf,
        /// How that shows.
        reason: &'static str,
    },
}

impl HttpError {
    /// A next step.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => {
                "it may be busy: try again, and look into its log if it stays so"
            }
            Self::Broken { .. } => "it may have stopped: see `compactctl status`",
            Self::Malformed { .. } => {
                "set COMPACTD_SOCKET to the socket of your daemon, or unset it"
            }
        }
    }
}

/// Why reading an answer failed, before it is known where from.
#[derive(Debug)]
enum Failure {
    Io(io::Error),
    Shape(&'static str),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Sends one request over a fresh connection and reads the answer.
///
/// # Errors
/// The answer did not come whole within `limit`.
pub fn send(
    stream: UnixStream,
    socket: &Path,
    request: Request<'_>,
    limit: Duration,
) -> Result<Response, HttpError> {
    let mut timed = Timed { stream, deadline: Instant::now() + limit };
    // A daemon that refuses early (full, too large) answers before it has read all.
    let written = timed.write_all(&encode(request));
    let answer = read(&mut timed).map_err(|failure| match (failure, written) {
        (Failure::Io(_), Err(error)) => Failure::Io(error),
        (failure, _) => failure,
    });
    let socket = socket.to_path_buf();
    answer.map_err(|failure| match failure {
        Failure::Io(error) if is_timeout(&error) => HttpError::Timeout { socket, after: limit },
        Failure::Io(source) => HttpError::Broken { socket, source },
        Failure::Shape(reason) => HttpError::Malformed { socket, reason },
    })
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn encode(request: Request<'_>) -> Vec<u8> {
    let Request { method, target, body } = request;
    let mut bytes = format!(
        "{method} {target} HTTP/1.1\r\nHost: compactd\r\nConnection: close\r\n\
         {PROTOCOL_HEADER}: {PROTOCOL}\r\n"
    )
    .into_bytes();
    if let Some(body) = body {
        let head = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        bytes.extend_from_slice(head.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.unwrap_or_default());
    bytes
}

/// A stream whose every wait ends at one deadline.
struct Timed {
    stream: UnixStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Nothing,
    Length(usize),
    Chunked,
    ToTheEnd,
}

struct Head {
    status: u16,
    framing: Framing,
    bytes: usize,
}

fn read(from: &mut impl Read) -> Result<Response, Failure> {
    let mut buffer = Buffer { from, bytes: Vec::with_capacity(STEP), at: 0 };
    loop {
        let head = loop {
            if let Some(head) = parse_head(buffer.rest())? {
                break head;
            }
            if buffer.rest().len() > HEAD_MAX {
                return Err(Failure::Shape("its answer has no end of headers"));
            }
            buffer.need()?;
        };
        buffer.at += head.bytes;
        if (100..200).contains(&head.status) {
            continue;
        }
        let body = match head.framing {
            Framing::Nothing => Vec::new(),
            Framing::Length(length) => buffer.take(length)?,
            Framing::Chunked => buffer.chunks()?,
            Framing::ToTheEnd => {
                while buffer.fill()? {}
                buffer.rest().to_vec()
            }
        };
        return Ok(Response { status: head.status, body });
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Failure> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let parsed =
        response.parse(bytes).map_err(|_| Failure::Shape("its answer does not look like HTTP"))?;
    let httparse::Status::Complete(length) = parsed else { return Ok(None) };
    let status = response.code.unwrap_or_default();
    let mut framing =
        if matches!(status, 204 | 304) { Framing::Nothing } else { Framing::ToTheEnd };
    for header in response.headers.iter() {
        if framing != Framing::ToTheEnd {
            break;
        }
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let length =
                std::str::from_utf8(header.value).ok().and_then(|value| value.parse().ok());
            framing =
                Framing::Length(length.ok_or(Failure::Shape("its answer has no sensible length"))?);
        }
    }
    Ok(Some(Head { status, framing, bytes: length }))
}

/// What came and was not used yet.
struct Buffer<'a, R> {
    from: &'a mut R,
    bytes: Vec<u8>,
    at: usize,
}

impl<R: Read> Buffer<'_, R> {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> Result<bool, Failure> {
        if self.rest().len() > BODY_MAX {
            return Err(Failure::Shape("its answer is too large"));
        }
        let old = self.bytes.len();
        self.bytes.resize(old + STEP, 0);
        let read = loop {
            match self.from.read(self.bytes.get_mut(old..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.bytes.truncate(old + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }

    fn need(&mut self) -> Result<(), Failure> {
        if self.fill()? {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Failure> {
        if length > BODY_MAX {
            return Err(Failure::Shape("its answer is too large"));
        }
        while self.rest().len() < length {
            self.need()?;
        }
        let taken = self.rest().get(..length).unwrap_or_default().to_vec();
        self.at += length;
        Ok(taken)
    }

    fn chunks(&mut self) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        loop {
            let (skip, length) = loop {
                match httparse::parse_chunk_size(self.rest()) {
                    Ok(httparse::Status::Complete(found)) => break found,
                    Ok(httparse::Status::Partial) => self.need()?,
                    Err(_) => return Err(Failure::Shape("a part of its answer has no length")),
                }
            };
            self.at += skip;
            if length == 0 {
                return Ok(body);
            }
            let length =
                usize::try_from(length).ok().filter(|length| body.len() + length <= BODY_MAX);
            let length = length.ok_or(Failure::Shape("its answer is too large"))?;
            body.append(&mut self.take(length)?);
            self.take(2)?;
        }
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
