//! Runs the real binary in a home of its own, against a daemon that a test makes up.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod rollout;

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

pub const ONE: &str = "3f2a91c0-1111-4000-8000-000000000001";
pub const TWO: &str = "3f2b0000-2222-4000-8000-000000000002";

pub const TRANSCRIPT: &[u8] = include_bytes!("../../sample/session.jsonl");

/// Puts the binary elsewhere. Another process copies: a file that this one has open for writing
/// cannot be run, and a child of another test would keep it open for a moment.
pub fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_compactctl")).arg(to).status().unwrap();
    assert!(copied.success());
}

/// A home without anything, and the binary in it.
pub struct Home {
    dir: TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A session of Claude Code with this id.
    pub fn session(&self, id: &str) -> PathBuf {
        self.put(&format!(".claude/projects/-w/{id}.jsonl"), TRANSCRIPT)
    }

    /// The binary with nothing of our own environment.
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_compactctl")), args)
    }

    pub fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env_clear().env("HOME", self.path()).current_dir(self.path());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// A daemon at the place that callers try first.
    pub fn daemon(
        &self,
        answer: impl Fn(&str, &str) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Fake {
        let dir = self.path().join(".local/state/compactd");
        std::fs::create_dir_all(&dir).unwrap();
        Fake::at(&dir.join("api.sock"), answer)
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard output, of a run that went well.
    #[track_caller]
    pub fn good(&self) -> &str {
        assert_eq!(self.status, 0, "{self:?}");
        &self.out
    }

    /// A failure with a message and a hint that hold these words, and no data.
    #[track_caller]
    pub fn fails(&self, status: i32, message: &str, hint: &str) {
        assert_eq!((self.status, self.out.as_str()), (status, ""), "{self:?}");
        let line = |label: &str| {
            self.err.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_default()
        };
        assert!(line("error: ").contains(message), "{self:?}");
        assert!(line("hint: ").contains(hint), "{self:?}");
        // Lower case, but for the name of a variable.
        let mut letters = line("error: ").chars();
        let is_sentence = letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_some_and(char::is_lowercase);
        assert!(!is_sentence && !line("error: ").ends_with('.'), "{self:?}");
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.good()).unwrap()
    }
}

/// A thread that answers on a socket. It ends with the process.
pub struct Fake {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Answers each request that `answer` knows (`GET /path?query`, body), others with 404.
    pub fn at(
        path: &Path,
        answer: impl Fn(&str, &str) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &log, &answer);
            }
        });
        Self { asked }
    }

    /// The requests so far, with their bodies.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: UnixStream,
    log: &Mutex<Vec<String>>,
    answer: &impl Fn(&str, &str) -> Option<(u16, String)>,
) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let (head, body) = loop {
        match stream.read(&mut buffer) {
            // A caller that only looked whether somebody listens.
            Ok(0) | Err(_) => return,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse().unwrap());
        if body.len() == length {
            break (head.to_owned(), body.to_owned());
        }
    };
    assert!(head.contains("\r\nCompactd-Protocol: 1"), "{head}");
    let request = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    log.lock().unwrap().push(format!("{request} {body}").trim_end().to_owned());
    let (status, body) = answer(&request, &body)
        .unwrap_or_else(|| (404, refusal("not_found", "no such route", "see the routes")));
    let answer = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // The caller may have gone.
    let _gone = stream.write_all(answer.as_bytes());
}

pub fn refusal(code: &str, message: &str, hint: &str) -> String {
    format!(
        r#"{{"error":{{"code":"{code}","message":"{message}","hint":"{hint}"}},"request_id":"r"}}"#
    )
}

/// The golden answers of v1.
pub fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/api/v1").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// An answer of `/v1/sessions` with these ids.
pub fn session_list(ids: &[&str]) -> String {
    let items: Vec<String> = ids
        .iter()
        .map(|id| {
            format!(
                r#"{{"id":"{id}","host":"claude","path":"/p/{id}.jsonl","cwd":"/w/api","size_bytes":1,
                "indexed_bytes":1,"lines":1,"messages":64,"results":3,
                "updated_at":"2026-11-30T08:16:33Z","state":"indexed"}}"#
            )
        })
        .collect();
    format!(r#"{{"sessions":[{}]}}"#, items.join(","))
}

/// A daemon with two sessions.
pub fn two_sessions(request: &str, body: &str) -> Option<(u16, String)> {
    let (method, target) = request.split_once(' ')?;
    let path = target.split('?').next()?;
    if method == "GET" && path == "/v1/status" {
        let text = golden("status.json").replace("\"bulk_queue\": 5", "\"bulk_queue\": 0");
        return Some((200, text));
    }
    if method == "GET" && path == "/v1/stats" {
        return Some((200, golden("stats.json")));
    }
    if path == "/v1/sessions" {
        return Some((200, session_list(&[ONE, TWO])));
    }
    let (id, rest) = path.strip_prefix("/v1/sessions/")?.split_once('/')?;
    if ![ONE, TWO].contains(&id) {
        let message = format!("no session {id} is known");
        return Some((
            404,
            refusal("session_unknown", &message, "`compactctl sessions` lists them"),
        ));
    }
    match (method, rest) {
        ("GET", "explain") => Some((200, golden("explain.json"))),
        ("GET", "pins") => Some((200, r#"{"pins":[]}"#.to_owned())),
        ("POST", "pins") => Some((200, format!(r#"{{"pins":[{body}]}}"#))),
        ("DELETE", "pins") => Some((200, r#"{"pins":[]}"#.to_owned())),
        _ => None,
    }
}
