//! Reads stdin to its end, within a bound of size and time.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::deadline::Deadline;

/// The daemon's own limit for a body; a hook input is a few hundred bytes as a rule.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Large enough that the allocator maps fresh zero pages, of which only those read into are
/// ever touched.
const FIRST_BYTES: usize = 256 * 1024;
/// How long to wait for a host that has not written yet: from the first to the last step.
const FIRST_WAIT: Duration = Duration::from_micros(50);
const LAST_WAIT: Duration = Duration::from_millis(2);

/// The whole of stdin. Over the bound it is an error, but stdin is still drained, so that the
/// host does not get a broken pipe.
pub(crate) fn read(deadline: &Deadline) -> io::Result<Vec<u8>> {
    // A File has no buffer of its own, unlike Stdin.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let kind = stdin.metadata()?.file_type();
    if kind.is_file() {
        return read_to_end(&mut stdin, deadline);
    }
    if !kind.is_fifo() && !kind.is_socket() {
        deadline.watch()?;
        return read_to_end(&mut stdin, deadline);
    }
    // The switch works on every kind of descriptor, only the type that offers it is a socket's.
    let switch = UnixStream::from(OwnedFd::from(stdin.try_clone()?));
    switch.set_nonblocking(true)?;
    let input = read_to_end(&mut stdin, deadline);
    switch.set_nonblocking(false).ok();
    input
}

fn read_to_end(stdin: &mut File, deadline: &Deadline) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; FIRST_BYTES];
    let mut length = 0;
    let mut wait = FIRST_WAIT;
    loop {
        if length == buffer.len() && length <= MAX_BYTES {
            buffer.resize((length * 4).min(MAX_BYTES + 1), 0);
        }
        let at = if length > MAX_BYTES { 0 } else { length };
        match stdin.read(&mut buffer[at..]) {
            Ok(0) => break,
            Ok(read) if length <= MAX_BYTES => length += read,
            Ok(_) => _ = deadline.remaining()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(wait.min(deadline.remaining()?));
                wait = (wait * 2).min(LAST_WAIT);
            }
            Err(error) => return Err(error),
        }
    }
    if length > MAX_BYTES {
        return Err(ErrorKind::FileTooLarge.into());
    }
    buffer.truncate(length);
    Ok(buffer)
}
