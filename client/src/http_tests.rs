use super::*;

/// Gives one byte at a time, as a slow peer does.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
        buffer[0] = *first;
        self.0 = rest;
        Ok(1)
    }
}

fn both(text: &str) -> Result<Response, Failure> {
    let slow = read(&mut Slow(text.as_bytes()));
    let fast = read(&mut text.as_bytes());
    if let (Ok(slow), Ok(fast)) = (&slow, &fast) {
        assert_eq!(slow, fast);
    }
    assert_eq!(slow.is_ok(), fast.is_ok());
    slow
}

#[test]
fn every_framing() {
    for (text, status, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc", 200, "ab"),
        ("HTTP/1.1 404 Not Found\r\n\r\nto the end", 404, "to the end"),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            200,
            "abcde",
        ),
    ] {
        let answer = both(text).unwrap();
        assert_eq!((answer.status, &*answer.body), (status, body.as_bytes()), "{text}");
    }
}

#[test]
fn what_is_cut_off_or_no_http_fails() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Len",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        "",
    ] {
        assert!(matches!(both(text), Err(Failure::Io(_))), "{text}");
    }
    for text in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        assert!(matches!(both(text), Err(Failure::Shape(_))), "{text}");
    }
}

#[test]
fn a_silent_peer_times_out() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let request = Request { method: "GET", target: "/v1/status", body: None };
    let error = send(ours, Path::new("/s"), request, Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error, HttpError::Timeout { .. }), "{error}");
}

#[test]
fn a_request_says_what_it_carries() {
    let request = Request { method: "POST", target: "/v1/x", body: Some(b"{}") };
    let text = String::from_utf8(encode(request)).unwrap();
    assert!(text.starts_with("POST /v1/x HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("Compactd-Protocol: 1\r\n") && text.contains("Content-Length: 2\r\n"));
    assert!(text.ends_with("\r\n\r\n{}"));
}
