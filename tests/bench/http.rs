//! A client that costs as little as it can: a blocking socket, prepared bytes, one buffer.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use compactd_tests::harness::PATIENCE;

/// A request as bytes.
pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    request("GET", path, b"")
}

#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn new(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// The same buffer on a new connection.
    pub(crate) fn again(&mut self, socket: &Path) {
        self.stream = UnixStream::connect(socket).unwrap();
    }

    /// Sends a request and reads its answer: the status and the body.
    pub(crate) fn ask(&mut self, request: &[u8]) -> (u16, &[u8]) {
        // An answer can be larger than the socket's buffers, but none starts before its request
        // was read whole.
        self.stream.write_all(request).unwrap();
        let mut filled = 0;
        let mut end = None;
        loop {
            if self.buffer.len() < filled + 65_536 {
                self.buffer.resize((filled + 65_536) * 2, 0);
            }
            let got = self.stream.read(&mut self.buffer[filled..]).unwrap();
            assert!(got > 0, "the connection was closed");
            filled += got;
            if end.is_none() {
                let head = self.buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n");
                end = head.map(|head| (head + 4, head + 4 + length(&self.buffer[..head])));
            }
            if let Some((start, end)) = end
                && filled >= end
            {
                let status = std::str::from_utf8(&self.buffer[9..12]).unwrap().parse().unwrap();
                return (status, &self.buffer[start..end]);
            }
        }
    }

    pub(crate) fn json(&mut self, request: &[u8]) -> serde_json::Value {
        let (status, body) = self.ask(request);
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(body));
        serde_json::from_slice(body).unwrap()
    }
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |length| length.trim().parse().unwrap())
}
