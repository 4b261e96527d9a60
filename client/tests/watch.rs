//! `watch` on a machine without a daemon: the sample, and a daemon of its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use kit::{Home, ONE, Ran, two_sessions};

/// The binary in a folder where a test can put a `compactd` beside it.
fn program(home: &Home) -> PathBuf {
    let dir = home.path().join("bin");
    fs::create_dir_all(&dir).unwrap();
    let program = dir.join("compactctl");
    fs::copy(env!("CARGO_BIN_EXE_compactctl"), &program).unwrap();
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
