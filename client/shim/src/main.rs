//! The program that a host runs for each hook: stdin → the daemon's socket → stdout.
//!
//! It owns nothing but the transport and three promises: it always exits 0, it ends within its
//! deadline (1.5 s; `deadline` names the one exception), and it prints either the daemon's whole
//! answer or nothing at all. Everything that decides something lives in the daemon. See `README.md`
//! for the protocol, the environment and the build that is meant to be installed (static, profile
//! `hook`).
#![forbid(unsafe_code)]

mod answer;
mod deadline;
mod environment;
mod input;
mod report;
mod request;
mod scan;
mod socket;
mod start;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use deadline::Deadline;
use environment::Environment;
use report::Report;
use request::Route;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What an empty pipe takes without blocking.
const PIPE_BYTES: usize = 64 * 1024;
const HELP: &str = "\
Usage: compactd-hook [HOST [EVENT]]

Hands the hook input on stdin to the compactd daemon and prints its answer.
HOST is claude or codex, EVENT a hook event such as PreCompact; what is left
out is taken from the input. Always exits 0 and prints nothing on failure.
";

fn main() {
    // Runs before any unwinding or abort, so that no build profile can end in another status.
    std::panic::set_hook(Box::new(|_| deadline::leave()));
    let started = Instant::now();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|first| first.to_str()) {
        Some("--help" | "-h") => print(HELP.as_bytes()),
        Some("--version" | "-V") => print(format!("compactd-hook {VERSION}\n").as_bytes()),
        _ => {
            let environment = Environment::read();
            let report = Report::new(started, environment.debug.clone());
            let deadline = Deadline::new(started, environment.timeout, report.clone());
            report.finish(run(&arguments, &environment, &deadline, &report));
        }
    }
}

/// Does the whole exchange and names how it ended, for the report only.
fn run(
    arguments: &[OsString],
    environment: &Environment,
    deadline: &Deadline,
    report: &Report,
) -> &'static str {
    let Some(mut route) = Route::parse(arguments) else { return "bad arguments" };
    let input = match input::read(deadline) {
        Ok(input) => input,
        Err(error) if error.kind() == ErrorKind::TimedOut => return "deadline",
        Err(_) => return "unusable input",
    };
    report.input_bytes(input.len());
    let is_object = input.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !route.complete(if is_object { &input } else { b"" }, environment.has_plugin_root) {
        return "no event";
    }
    if route.is_tool_of_root(&input) {
        return "not for the daemon";
    }
    let stream = match socket::connect(environment) {
        Ok(stream) => stream,
        Err(socket::Miss::Unusable) => return "unusable socket",
        Err(socket::Miss::Absent) => return start::start(environment),
    };
    let mut stream = Timed { stream, deadline };
    let input = if is_object { input.as_slice() } else { b"null" };
    if request::send(&mut stream, &route, input, &environment.json, deadline.wall_millis()).is_err()
    {
        return "not sent";
    }
    let body = match answer::read(&mut stream) {
        Ok(body) => body,
        Err(reason) => return reason,
    };
    if body.len() > PIPE_BYTES && deadline.watch().is_err() {
        return "no watchdog";
    }
    report.output_bytes(body.len());
    print(&body);
    "answered"
}

/// The connection, each step of which ends with the deadline.
struct Timed<'a> {
    stream: UnixStream,
    deadline: &'a Deadline,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.deadline.remaining()?))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.deadline.remaining()?))?;
        self.stream.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to stdout without its line buffer, in one call as a rule. A broken stdout is nobody's
/// business.
fn print(bytes: &[u8]) {
    if let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() {
        File::from(stdout).write_all(bytes).ok();
    }
}
