//! Reads the answer: a whole `200` with a `Content-Length`, or a reason to print nothing.

use std::io::{ErrorKind, Read};

const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// See `input::FIRST_BYTES`; holds a usual answer (30 KB) in one read.
const FIRST_BYTES: usize = 256 * 1024;

/// The body, exactly as long as announced. It does not wait for the connection's end.
pub(crate) fn read(mut from: impl Read) -> Result<Vec<u8>, &'static str> {
    let mut buffer = vec![0; FIRST_BYTES];
    let mut length = 0;
    // Where the body starts and ends, once the head is complete.
    let mut body: Option<(usize, usize)> = None;
    loop {
        if let Some((start, end)) = body.filter(|(_, end)| length >= *end) {
            buffer.truncate(end);
            buffer.drain(..start);
            return Ok(buffer);
        }
        match from.read(&mut buffer[length..]) {
            Ok(0) => return Err("truncated answer"),
            Ok(read) => length += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err("deadline");
            }
            Err(_) => return Err("broken answer"),
        }
        if body.is_none() {
            let seen = &buffer[..length];
            if let Some(head_bytes) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                let body_bytes = body_length(&seen[..head_bytes])?;
                let end = head_bytes + 4 + body_bytes;
                body = Some((head_bytes + 4, end));
                if end > buffer.len() {
                    buffer.resize(end, 0);
                }
            } else if length > MAX_HEAD_BYTES {
                return Err("garbage answer");
            }
        }
    }
}

/// The announced length of a `200`. Chunked bodies are not understood: the daemon sends none.
fn body_length(head: &[u8]) -> Result<usize, &'static str> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let status = lines.next().unwrap_or_default();
    if !status.starts_with(b"HTTP/1.") || status.get(8) != Some(&b' ') {
        return Err("garbage answer");
    }
    match status.get(9..).and_then(|rest| rest.split(|byte| *byte == b' ').next()) {
        Some(b"200") => {}
        Some(b"204") => return Err("nothing to say"),
        _ => return Err("refused"),
    }
    let mut length = None;
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':').ok_or("garbage answer")?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err("chunked answer");
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = str::from_utf8(value)
                .ok()
                .filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
            let value: usize = digits.and_then(|text| text.parse().ok()).ok_or("garbage answer")?;
            if length.replace(value).is_some_and(|other| other != value) {
                return Err("garbage answer");
            }
        }
    }
    length.filter(|length| *length <= MAX_BODY_BYTES).ok_or("no usable length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_or_nothing() {
        let ok = |text: &str| read(text.as_bytes()).map(|body| String::from_utf8(body).unwrap());
        assert_eq!(ok("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").unwrap(), "hi");
        assert_eq!(ok("HTTP/1.1 200\r\nA: b:c\r\nContent-Length:0\r\n\r\n").unwrap(), "");
        assert_eq!(ok("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi and more").unwrap(), "hi");
        for bad in [
            "",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
            "HTTP/1.1 200 OK\r\n\r\nhi",
            "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "SSH-2.0-x\r\n\r\n",
        ] {
            assert!(ok(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_head_without_end_is_given_up() {
        assert_eq!(read(&[b'x'; MAX_HEAD_BYTES + 1][..]), Err("garbage answer"));
        assert_eq!(read(std::io::repeat(b'x')), Err("garbage answer"));
    }
}
