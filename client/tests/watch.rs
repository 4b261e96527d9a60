//! `watch` on a machine without a daemon: the sample, and a daemon of its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kit;

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kit::{Home, ONE, Ran, TWO, copy_program, session_list, two_sessions};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The binary in a folder where a test can put a `compactd` beside it.
fn program(home: &Home) -> PathBuf {
    let dir = home.path().join("bin");
    fs::create_dir_all(&dir).unwrap();
    let program = dir.join("compactctl");
    copy_program(&program);
    program
}

fn put_daemon(home: &Home, script: &str) {
    let path = home.put("bin/compactd", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn watch(home: &Home) -> Ran {
    let program = program(home);
    // A shell script needs a few programs.
    let mut command = home.command_of(&program, &["watch"]);
    Ran::of(command.env("PATH", "/usr/bin:/bin").output().unwrap())
}

#[test]
fn a_new_machine_sees_the_sample() {
    let home = Home::new();
    let ran = home.run(&["watch"]);
    let out = ran.good();
    let first = "no session of Claude Code or Codex on this machine yet: this is a sample\n";
    assert!(out.starts_with(first) && out.contains("25 results, "), "{ran:?}");
    assert!(ran.err.is_empty(), "{ran:?}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing is written");
}

#[test]
fn no_program_to_start_is_told() {
    let home = Home::new();
    home.session(ONE);
    watch(&home).fails(1, "there is no compactd beside", "cargo build");
}

#[test]
fn a_daemon_that_ends_at_once_is_told_with_its_words() {
    let home = Home::new();
    home.session(ONE);
    put_daemon(&home, "echo 'error: the disk is full' >&2; exit 1");
    let ran = watch(&home);
    ran.fails(1, "compactd ended at its start (exit status: 1): error: the disk is full", "run `");
}

#[test]
fn its_own_daemon_is_ended_at_the_end() {
    let home = Home::new();
    home.session(ONE);
    let dir = home.path().join(".local/state/compactd");
    // It says where its socket is by a link, as the real one does, and notes that it was told to end.
    put_daemon(
        &home,
        &format!(
            "mkdir -p {dir}; sleep 600 & child=$!\n\
             trap 'echo ended > {home}/ended; kill $child; exit 0' TERM\n\
             ln -s {home}/real.sock {dir}/api.sock; wait $child",
            dir = dir.display(),
            home = home.path().display()
        ),
    );
    let _answers = kit::Fake::at(&home.path().join("real.sock"), two_sessions);
    let ran = watch(&home);
    assert!(ran.good().contains("a daemon that runs as long as this view"), "{ran:?}");
    assert_eq!(fs::read_to_string(home.path().join("ended")).unwrap(), "ended\n");
}

/// Reads what a terminal shows until it shows this.
fn read_until(terminal: &mut File, wanted: &str) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = terminal.read(&mut buffer).unwrap();
        seen.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&seen);
        if text.contains(wanted) {
            return text.into_owned();
        }
    }
}

#[test]
fn on_a_terminal_it_follows_until_ctrl_c() {
    let home = Home::new();
    let has_grown = Arc::new(AtomicBool::new(false));
    let grown = Arc::clone(&has_grown);
    let _daemon = home.daemon(move |request, body| {
        if request.starts_with("GET /v1/sessions") && !request.contains("/v1/sessions/") {
            let ids: &[&str] =
                if grown.load(Ordering::SeqCst) { &["grown-in", ONE, TWO] } else { &[ONE, TWO] };
            return Some((200, session_list(ids)));
        }
        two_sessions(&request.replace("grown-in", ONE), body)
    });
    let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&control).unwrap();
    unlockpt(&control).unwrap();
    let name = ptsname(&control, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = home.command(&["watch"]);
    command.env("COLUMNS", "100").stdout(terminal.try_clone().unwrap()).stderr(terminal);
    let mut child = command.spawn().unwrap();
    let mut screen = File::from(control);
    let first = read_until(&mut screen, "\u{1b}[J");
    assert!(first.contains("2 sessions on this machine"), "{first}");
    assert!(first.contains("\u{1b}[1m"), "a terminal has colour: {first}");
    has_grown.store(true, Ordering::SeqCst);
    let second = read_until(&mut screen, "3 sessions on this machine");
    assert!(second.contains("\u{1b}[H"), "{second}");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
