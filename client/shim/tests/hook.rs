//! Runs the real binary against sockets and fake daemons. Each test has a HOME of its own, and
//! nothing sleeps: what must happen is waited for with a deadline.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, also in its helpers"
)]

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(20);
const INPUT: &str = r#"{ "hook_event_name" : "PreCompact", "prompt":"é \"x\"\ud83d" }"#;

/// The shim in a folder of its own: beside the built one may lie a real daemon, which it would
/// start. A second name for the same file, since a copy could still be open for writing when another
/// test's child is made.
fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("shim-alone-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("compactd-hook");
        fs::hard_link(env!("CARGO_BIN_EXE_compactd-hook"), &program).unwrap();
        program
    });
    &PROGRAM
}

/// A scratch HOME, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cdh-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn state(&self) -> PathBuf {
        self.0.join(".local/state/compactd")
    }

    fn listen(&self) -> UnixListener {
        fs::create_dir_all(self.state()).unwrap();
        UnixListener::bind(self.state().join("api.sock")).unwrap()
    }

    /// The shim with nothing in its environment but this HOME, and no daemon to start.
    fn shim(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env_clear()
            .env("HOME", &self.0)
            .env("COMPACTD_HOOK_START", "0")
            .env("COMPACTD_HOOK_DEBUG", self.0.join("debug"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The outcome of each run so far.
    fn outcomes(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("debug")).unwrap_or_default();
        text.lines().map(|line| line.split_once("outcome=").unwrap().1.to_owned()).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Waits for the result of `work`, which may block.
fn within_patience<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()).ok());
    receiver.recv_timeout(PATIENCE).expect("in time")
}

fn run(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).ok();
    finish(child)
}

fn finish(child: Child) -> Output {
    within_patience(move || child.wait_with_output().unwrap())
}

#[track_caller]
fn assert_silent(output: &Output) {
    assert_eq!(output.status.code(), Some(0));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], &b""[..]));
}

struct Request {
    head: String,
    body: Vec<u8>,
}

fn read_request(stream: &mut UnixStream) -> Request {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.split_once("Content-Length: ").unwrap().1.split_once("\r\n").unwrap().0;
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    Request { head, body }
}

/// Answers one request with these bytes, then closes.
fn serve(listener: UnixListener, answer: Vec<u8>) -> Receiver<Request> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = read_request(&mut stream);
        stream.write_all(&answer).ok();
        sender.send(request).ok();
    });
    receiver
}

fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn the_input_goes_out_and_the_answer_comes_back_exactly() {
    let home = Home::new();
    let requests = serve(home.listen(), ok(b"{\"a\":\n 1}\0\xff\n\n"));
    let before = SystemTime::now();
    let mut shim = home.shim(&["claude", "PreCompact"]);
    let output = run(shim.env("SECRET_TOKEN", "canary"), INPUT.as_bytes());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"{\"a\":\n 1}\0\xff\n\n");
    assert_eq!(output.stderr, b"");
    let request = requests.recv_timeout(PATIENCE).unwrap();
    let body = format!("{{\"input\":{INPUT},\"env\":{{}}}}");
    assert_eq!(String::from_utf8(request.body).unwrap(), body);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "POST /v1/hooks/claude/PreCompact HTTP/1.1\r\nHost: compactd\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\
         Compactd-Protocol: 1\r\nCompactd-Shim: {version}\r\nCompactd-Until: ",
        body.len()
    );
    // Until when the answer is read, by the system's clock: some time within the deadline from now.
    let until = request.head.strip_prefix(&expected).and_then(|rest| rest.strip_suffix("\r\n\r\n"));
    let until = UNIX_EPOCH + Duration::from_millis(until.unwrap().parse().unwrap());
    let ahead = until.duration_since(before).unwrap();
    assert!(until < SystemTime::now() + Duration::from_millis(1_500), "{ahead:?}");
    assert_eq!(home.outcomes(), ["answered"]);
    let report = fs::read_to_string(home.0.join("debug")).unwrap();
    assert!(report.contains(&format!(" in_bytes={} out_bytes=13 ", INPUT.len())), "{report}");
}

#[test]
fn the_allow_list_is_escaped_and_nothing_else_leaves() {
    let home = Home::new();
    let requests = serve(home.listen(), ok(b"x"));
    let mut shim = home.shim(&["codex", "Stop"]);
    shim.env("ANTHROPIC_API_KEY", "canary").env("COMPACT_PLUS", "canary");
    let not_utf8 = OsString::from_vec(b"/\xff\"\\\x01\n".to_vec());
    shim.env("CODEX_HOME", not_utf8).env("COMPACT_PLUS_TWO_PASS", "1").env("PATH", "/bin:é");
    run(&mut shim, b"{}");
    let body = requests.recv_timeout(PATIENCE).unwrap().body;
    let mut body = String::from_utf8(body).unwrap();
    // The order is the environment's.
    for part in [
        "\"CODEX_HOME\":\"/\u{fffd}\\\"\\\\\\u0001\\u000a\"",
        "\"COMPACT_PLUS_TWO_PASS\":\"1\"",
        "\"PATH\":\"/bin:é\"",
    ] {
        assert!(body.contains(part), "{part} in {body}");
        body = body.replace(part, "");
    }
    assert_eq!(body, "{\"input\":{},\"env\":{,,}}");
}

#[test]
fn host_and_event_may_come_from_the_input() {
    let home = Home::new();
    let requests = serve(home.listen(), ok(b"x"));
    let input = br#"{"a":{"hook_event_name":"No"},"transcript_path":"/s/rollout-1.jsonl","hook_event_name":"PostCompact"}"#;
    assert_eq!(run(&mut home.shim(&[]), input).stdout, b"x");
    let head = requests.recv_timeout(PATIENCE).unwrap().head;
    assert!(head.starts_with("POST /v1/hooks/codex/PostCompact HTTP/1.1\r\n"), "{head}");
}

#[test]
fn a_tool_call_of_a_root_thread_of_codex_connects_to_nothing() {
    let home = Home::new();
    let requests = serve(home.listen(), ok(b"x"));
    let root = br#"{"session_id":"a","tool_input":{"agent_id":"b"},"agent_id":""}"#;
    for event in ["PreToolUse", "PostToolUse"] {
        let output = run(&mut home.shim(&["codex", event]), root);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
    }
    assert_eq!(home.outcomes(), ["not for the daemon"; 2]);
    // The listener takes one request only: it is this one.
    let agent = br#"{"session_id":"a","agent_id":"b"}"#;
    assert_eq!(run(&mut home.shim(&["codex", "PostToolUse"]), agent).stdout, b"x");
    let head = requests.recv_timeout(PATIENCE).unwrap().head;
    assert!(head.starts_with("POST /v1/hooks/codex/PostToolUse HTTP/1.1\r\n"), "{head}");
}

#[test]
fn an_input_that_is_no_object_is_null() {
    for input in [&b"hello"[..], b"", b"[1]", b" \n", b"\xff\xfe"] {
        let home = Home::new();
        let requests = serve(home.listen(), ok(b"x"));
        assert_eq!(run(&mut home.shim(&["claude", "Stop"]), input).stdout, b"x");
        assert_eq!(requests.recv_timeout(PATIENCE).unwrap().body, b"{\"input\":null,\"env\":{}}");
    }
    let home = Home::new();
    let _listener = home.listen();
    assert_silent(&run(&mut home.shim(&["claude"]), b"hello"));
    assert_eq!(home.outcomes(), ["no event"]);
}

#[test]
fn large_bodies_pass_both_ways() {
    for size in [30_000, 3_000_000] {
        let home = Home::new();
        let answer: Vec<u8> = (0..size).map(|at: u32| at.to_le_bytes()[0]).collect();
        let requests = serve(home.listen(), ok(&answer));
        let input = format!("{{\"prompt\":\"{}\"}}", "p".repeat(answer.len()));
        let mut child = home.shim(&["claude", "Stop"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let written = input.clone();
        thread::spawn(move || stdin.write_all(written.as_bytes()));
        assert!(finish(child).stdout == answer);
        let body = requests.recv_timeout(PATIENCE).unwrap().body;
        assert!(body == format!("{{\"input\":{input},\"env\":{{}}}}").as_bytes());
    }
}

#[test]
fn an_oversized_input_is_drained_and_not_sent() {
    let home = Home::new();
    let _listener = home.listen();
    let mut child = home.shim(&["claude", "Stop"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = thread::spawn(move || stdin.write_all(&[b'{'; 9 * 1024 * 1024]));
    assert_silent(&finish(child));
    assert!(writer.join().unwrap().is_ok(), "no broken pipe for the host");
    assert_eq!(home.outcomes(), ["unusable input"]);
}

#[test]
fn unusable_answers_print_nothing() {
    for answer in [
        &b""[..],
        b"garbage",
        b"\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 2\r\n\r\nno",
        b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\nno",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ntrunc",
        b"HTTP/1.1 200 OK\r\n\r\nno length",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    ] {
        let home = Home::new();
        let requests = serve(home.listen(), answer.to_vec());
        assert_silent(&run(&mut home.shim(&["claude", "PreCompact"]), INPUT.as_bytes()));
        requests.recv_timeout(PATIENCE).expect("the request arrived");
    }
}

#[test]
fn no_daemon_is_silent() {
    let home = Home::new();
    assert_silent(&run(&mut home.shim(&["claude", "PreCompact"]), INPUT.as_bytes()));
    drop(home.listen());
    assert_silent(&run(&mut home.shim(&["claude", "PreCompact"]), INPUT.as_bytes()));
    assert_eq!(home.outcomes(), ["no daemon", "no daemon"]);
    let mut shim = home.shim(&["claude", "PreCompact"]);
    assert_silent(&run(shim.env_remove("HOME"), INPUT.as_bytes()));
    let mut shim = home.shim(&["claude", "PreCompact"]);
    let long = format!("/{}", "s".repeat(200));
    assert_silent(&run(shim.env("COMPACTD_SOCKET", long), INPUT.as_bytes()));
    let mut shim = home.shim(&["claude", "PreCompact"]);
    assert_silent(&run(shim.env("COMPACTD_SOCKET", "/dev/null"), INPUT.as_bytes()));
    assert_eq!(home.outcomes()[2..], ["unusable socket", "unusable socket", "unusable socket"]);
}

#[test]
fn a_hanging_server_is_left_at_the_deadline() {
    let home = Home::new();
    let listener = home.listen();
    let started = Instant::now();
    let mut shim = home.shim(&["claude", "PreCompact"]);
    shim.env("COMPACTD_HOOK_TIMEOUT_MS", "100");
    // Never accepted: the kernel takes the connection and the request.
    assert_silent(&run(&mut shim, INPUT.as_bytes()));
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(100) && took < Duration::from_millis(1400), "{took:?}");
    assert_eq!(home.outcomes(), ["deadline"]);
    drop(listener);
}

#[test]
fn a_trickling_server_is_left_at_the_deadline() {
    let home = Home::new();
    let listener = home.listen();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8000000\r\n\r\n").unwrap();
        // The time-out of the read is the pause between two bytes.
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        while stream.write_all(b"x").is_ok() {
            stream.read_exact(&mut [0]).ok();
        }
    });
    let mut shim = home.shim(&["claude", "PreCompact"]);
    assert_silent(&run(shim.env("COMPACTD_HOOK_TIMEOUT_MS", "100"), INPUT.as_bytes()));
    assert_eq!(home.outcomes(), ["deadline"]);
}

#[test]
fn a_stdin_that_never_closes_is_left_at_the_deadline() {
    let home = Home::new();
    let _listener = home.listen();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    // A socket (node, bun), a pipe, and something else: a terminal's master has no end either.
    for stdin in [Stdio::from(std::os::fd::OwnedFd::from(theirs)), Stdio::from(reader)]
        .into_iter()
        .chain(fs::File::open("/dev/ptmx").map(Stdio::from))
    {
        let mut shim = home.shim(&["claude", "PreCompact"]);
        let child = shim.env("COMPACTD_HOOK_TIMEOUT_MS", "100").stdin(stdin).spawn().unwrap();
        assert_silent(&finish(child));
    }
    drop((ours, writer));
    let outcomes = home.outcomes();
    assert_eq!(outcomes[..2], ["deadline", "deadline"]);
    assert!(outcomes[2..].iter().all(|outcome| outcome != "answered"), "{outcomes:?}");
}

#[test]
fn a_late_stdin_is_waited_for() {
    let home = Home::new();
    let requests = serve(home.listen(), ok(b"x"));
    let mut child = home.shim(&["claude", "Stop"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (delay, pause) = mpsc::channel::<()>();
    thread::spawn(move || {
        for part in ["{\"a\":", "1", "}"] {
            pause.recv_timeout(Duration::from_millis(20)).ok();
            stdin.write_all(part.as_bytes()).unwrap();
        }
    });
    assert_eq!(finish(child).stdout, b"x");
    drop(delay);
    assert_eq!(requests.recv_timeout(PATIENCE).unwrap().body, b"{\"input\":{\"a\":1},\"env\":{}}");
}

#[test]
fn unknown_arguments_are_silent() {
    let home = Home::new();
    let listener = home.listen();
    for arguments in [
        &["gemini", "PreCompact"][..],
        &["--frobnicate"],
        &["claude", "../../status"],
        &["claude", "Pre Compact"],
        &["claude", "PreCompact", "x"],
    ] {
        assert_silent(&run(&mut home.shim(arguments), INPUT.as_bytes()));
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nothing connected");
}

#[test]
fn help_and_version_are_printed() {
    let home = Home::new();
    for (flag, start) in [("--help", "Usage: "), ("--version", "compactd-hook 0.")] {
        let output = run(&mut home.shim(&[flag]), b"");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
        assert!(output.stdout.starts_with(start.as_bytes()), "{flag}");
    }
}

#[test]
fn a_closed_stdout_is_ignored() {
    for size in [30_000, 300_000] {
        let home = Home::new();
        let requests = serve(home.listen(), ok(&vec![b'x'; size]));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut shim = home.shim(&["claude", "PreCompact"]);
        assert_silent(&run(shim.stdout(writer), INPUT.as_bytes()));
        requests.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn a_stdout_that_nobody_reads_is_left_at_the_deadline() {
    let home = Home::new();
    let _requests = serve(home.listen(), ok(&vec![b'x'; 3_000_000]));
    let (_reader, writer) = std::io::pipe().unwrap();
    let mut shim = home.shim(&["claude", "PreCompact"]);
    shim.stdout(writer).env("COMPACTD_HOOK_TIMEOUT_MS", "300");
    assert_silent(&run(&mut shim, INPUT.as_bytes()));
    assert_eq!(home.outcomes(), ["deadline"]);
}

#[test]
fn the_socket_is_found_in_order() {
    let home = Home::new();
    let runtime = home.0.join("run");
    fs::create_dir_all(runtime.join("compactd")).unwrap();
    let socket = runtime.join("compactd/api.sock");
    // A dangling link under HOME is passed over.
    fs::create_dir_all(home.state()).unwrap();
    symlink("/nonexistent/api.sock", home.state().join("api.sock")).unwrap();
    let _second = serve(UnixListener::bind(&socket).unwrap(), ok(b"runtime"));
    let mut shim = home.shim(&["claude", "Stop"]);
    assert_eq!(run(shim.env("XDG_RUNTIME_DIR", &runtime), b"{}").stdout, b"runtime");
    // A link under HOME is followed.
    fs::remove_file(home.state().join("api.sock")).unwrap();
    fs::remove_file(&socket).unwrap();
    symlink(&socket, home.state().join("api.sock")).unwrap();
    let _first = serve(UnixListener::bind(&socket).unwrap(), ok(b"link"));
    assert_eq!(run(&mut home.shim(&["claude", "Stop"]), b"{}").stdout, b"link");
    // What is named beats both.
    let named = home.0.join("named.sock");
    let _named = serve(UnixListener::bind(&named).unwrap(), ok(b"named"));
    let mut shim = home.shim(&["claude", "Stop"]);
    assert_eq!(run(shim.env("COMPACTD_SOCKET", &named), b"{}").stdout, b"named");
}

/// A daemon that tells through a fifo that it ran, and with what.
struct FakeDaemon {
    told: Receiver<String>,
}

impl FakeDaemon {
    fn install(home: &Home, program: &Path) -> Self {
        let fifo = home.0.join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let script = format!(
            "#!/bin/sh\necho \"args=$# by=$COMPACTD_STARTED_BY session=$CLAUDE_CODE_SESSION_ID \
             dir=$PWD\" > '{}'\n",
            fifo.display()
        );
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(program, script).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        let (sender, told) = mpsc::channel();
        thread::spawn(move || sender.send(fs::read_to_string(fifo).unwrap()));
        Self { told }
    }

    #[track_caller]
    fn assert_ran(&self) {
        let told = self.told.recv_timeout(PATIENCE).expect("the daemon ran");
        assert_eq!(told, "args=0 by=hook session= dir=/\n");
    }
}

fn starting_shim(home: &Home) -> Command {
    let mut shim = home.shim(&["claude", "PreCompact"]);
    shim.env_remove("COMPACTD_HOOK_START").env("CLAUDE_CODE_SESSION_ID", "s");
    shim
}

#[test]
fn ten_shims_start_one_daemon() {
    let home = Home::new();
    let daemon = FakeDaemon::install(&home, &home.0.join(".local/share/compactd/bin/compactd"));
    let children: Vec<_> = (0..10).map(|_| starting_shim(&home).spawn().unwrap()).collect();
    for child in children {
        assert_silent(&finish(child));
    }
    daemon.assert_ran();
    let mut outcomes = home.outcomes();
    outcomes.sort();
    let (first, others) = outcomes.split_first().unwrap();
    assert_eq!(first, "daemon started");
    assert!(others.len() == 9 && others.iter().all(|other| other == "no daemon, start locked"));
    let state = fs::metadata(home.state()).unwrap();
    assert_eq!(state.permissions().mode() & 0o777, 0o700);
    let lock = fs::metadata(home.state().join("start.lock")).unwrap();
    assert_eq!(lock.permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_old_lock_is_taken_over_and_a_new_one_is_not() {
    let home = Home::new();
    let program = home.0.join("elsewhere/my-daemon");
    let daemon = FakeDaemon::install(&home, &program);
    fs::create_dir_all(home.state()).unwrap();
    let lock = fs::File::create(home.state().join("start.lock")).unwrap();
    assert_silent(&run(starting_shim(&home).env("COMPACTD_BIN", &program), b"{}"));
    assert_eq!(home.outcomes(), ["no daemon, start locked"]);
    lock.set_modified(SystemTime::now() - Duration::from_secs(31)).unwrap();
    for outcome in ["daemon started", "no daemon, start locked"] {
        assert_silent(&run(starting_shim(&home).env("COMPACTD_BIN", &program), b"{}"));
        assert_eq!(home.outcomes().last().unwrap(), outcome);
    }
    daemon.assert_ran();
    let left: Vec<_> = fs::read_dir(home.state()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the lock is left: {left:?}");
}

#[test]
fn the_daemon_is_found_in_path() {
    let home = Home::new();
    let program = home.0.join("bin/compactd");
    let daemon = FakeDaemon::install(&home, &program);
    let path = format!("relative::{}", program.parent().unwrap().display());
    let mut shim = starting_shim(&home);
    assert_silent(&run(shim.env("PATH", path), b"{}"));
    daemon.assert_ran();
}

#[test]
fn no_daemon_is_started_where_it_must_not() {
    let home = Home::new();
    let program = home.0.join(".local/share/compactd/bin/compactd");
    let daemon = FakeDaemon::install(&home, &program);
    let check = |shim: &mut Command, outcome: &str| {
        assert_silent(&run(shim, INPUT.as_bytes()));
        assert_eq!(home.outcomes().last().unwrap(), outcome);
    };
    check(starting_shim(&home).env("COMPACTD_HOOK_START", "0"), "no daemon");
    check(starting_shim(&home).env("COMPACTD_BIN", "/nonexistent"), "no daemon, no program");
    // A state folder that is a link, or that others can write to.
    let elsewhere = home.0.join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::create_dir_all(home.state().parent().unwrap()).unwrap();
    symlink(&elsewhere, home.state()).unwrap();
    check(&mut starting_shim(&home), "no daemon, no state folder");
    fs::remove_file(home.state()).unwrap();
    fs::create_dir(home.state()).unwrap();
    fs::set_permissions(home.state(), fs::Permissions::from_mode(0o777)).unwrap();
    check(&mut starting_shim(&home), "no daemon, no state folder");
    // Something that is no socket stands in its place.
    fs::set_permissions(home.state(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(home.state().join("api.sock"), "").unwrap();
    check(&mut starting_shim(&home), "unusable socket");
    assert!(!home.state().join("start.lock").exists());
    assert!(daemon.told.try_recv().is_err());
}
