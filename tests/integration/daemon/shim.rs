//! The real shim and the real daemon.

use std::fs;

use compactd_tests::harness::{
    Claude, Client, Codex, Home, Process, binaries, eventually, fixtures,
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use super::id;

/// A recorded hook input, about another session.
fn payload(name: &str, session: &str, transcript: &std::path::Path) -> Vec<u8> {
    let path = fixtures("claude-code/hook-payloads").join(format!("{name}.json"));
    let mut input: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    input["session_id"] = json!(session);
    input["transcript_path"] = json!(transcript);
    input.to_string().into_bytes()
}

#[test]
fn every_recorded_hook_registers_its_session_and_only_precompact_is_answered() {
    let home = Home::new();
    // Nothing is read by itself and no sweep comes: only the hook makes a session known as wanted.
    let daemon =
        Process::start(&home, &["--set", "index.recent_days=0", "--set", "watch.sweep_s=3600"]);
    let mut number = 1;
    let mut answered = 0;
    for entry in fs::read_dir(fixtures("claude-code/hook-payloads")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.starts_with("statusline") || name.starts_with("mod-") {
            continue;
        }
        let session = id(number);
        number += 1;
        let file = home.claude(&session);
        let mut writer = Claude::new(&session);
        home.put(&file, writer.prompt("Go.").work(1).take());
        let ran = home.hook(&[], &[], &payload(name, &session, &file));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
        if name.starts_with("PreCompact") {
            answered += 1;
            assert!(ran.out.starts_with("Keep these exactly"), "{name}: {}", ran.out);
        } else {
            assert_eq!(ran.out, "", "{name}");
        }
        assert!(daemon.client.session(&session).is_some(), "{name}: known at once");
        daemon.client.has_lines(&session, writer.lines());
    }
    assert!(number > 15, "{number}");
    let stats = daemon.client.stats();
    assert_eq!(answered, 2);
    assert_eq!(stats["hooks"]["silent"], number - 1 - answered, "{stats}");
    assert_eq!(stats["hooks"]["text"], answered, "{stats}");
    let thread = id(900);
    let rollout = home.codex(&thread);
    home.put(&rollout, Codex::new(&thread).shell("call_1", "ls", "src").take());
    let inputs = fs::read_to_string(fixtures("codex/hooks/inputs.jsonl")).unwrap();
    let mut input: Value = serde_json::from_str(inputs.lines().next().unwrap()).unwrap();
    input["transcript_path"] = json!(rollout);
    let ran = home.hook(&["codex"], &[("CODEX_HOME", "/x")], input.to_string().as_bytes());
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    daemon.client.has_lines(&thread, 3);
    // What is outside the roots, or nonsense, is silent too, and registers nothing.
    let known = daemon.client.sessions().len();
    let outside = home.join("elsewhere.jsonl");
    home.put(&outside, "{}\n");
    for input in [
        payload("Stop", "x", &outside),
        payload("Stop", "x", "/etc/passwd".as_ref()),
        b"no json".to_vec(),
    ] {
        let ran = home.hook(&["claude", "Stop"], &[], &input);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
    }
    assert_eq!(daemon.client.sessions().len(), known);
    daemon.stop();
}

#[test]
fn without_a_daemon_the_shim_starts_one() {
    let home = Home::new();
    let session = id(1);
    let file = home.claude(&session);
    let mut writer = Claude::new(&session);
    home.put(&file, writer.prompt("Go.").work(1).take());
    let input = payload("UserPromptSubmit", &session, &file);
    let program = binaries().compactd.to_str().unwrap();
    let env = [("COMPACTD_BIN", program), ("COMPACT_PLUS_X", "1")];
    // Several hooks at once start one daemon.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let ran = home.hook(&[], &env, &input);
                assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
            });
        }
    });
    let client = Client::new(&home.join(".local/state/compactd/api.sock"));
    let status = eventually("the daemon answers", || {
        client.try_send("GET", "/v1/status", None).map(|answer| answer.json())
    });
    let number = i32::try_from(status["pid"].as_i64().unwrap()).unwrap();
    assert!(number > 1, "{status}");
    let pid = Pid::from_raw(number).unwrap();
    // From here on it must be ended, whatever the checks say.
    let checks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        client.has_lines(&session, writer.lines());
        // Some of the four may have met it already.
        let silent = || client.stats()["hooks"]["silent"].as_u64().unwrap();
        let before = silent();
        let ran = home.hook(&[], &env, &input);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
        assert_eq!(silent(), before + 1);
        assert_eq!(client.status()["pid"], number, "still the same");
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(!environment.contains("COMPACT_PLUS_X"), "{environment}");
    }));
    kill_process(pid, Signal::TERM).unwrap();
    // It is nobody's child here: init, or nobody, takes it; a dead one is as good as gone.
    eventually("it is gone", || {
        let state = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let is_dead = state.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z'));
        (is_dead || test_kill_process(pid).is_err()).then_some(())
    });
    if let Err(failed) = checks {
        std::panic::resume_unwind(failed);
    }
}
