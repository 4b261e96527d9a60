//! A fork of a Codex thread, against a plain copy of its file.

use std::fmt::Write as _;
use std::path::Path;

use compactd_core::rules::{Pins, Profile};
use compactd_core::settings::Settings;
use compactd_fork::{Options, fork};
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::table::{Table, in_turn};

const THREAD: &str = "01a22bab-3f13-7243-b3b3-97275892478f";
const BYTES: usize = 30_000_000;
const ROUNDS: usize = 9;

/// A thread that searches, reads and now and then says what it saw, with the records that a host
/// writes beside each step.
fn rollout() -> String {
    let mut text = String::with_capacity(BYTES + 100_000);
    let mut ordinal = 0;
    let mut line = |text: &mut String, kind: &str, payload: &Value| {
        let record = json!({"timestamp": "2026-11-30T08:00:00.000Z", "ordinal": ordinal,
            "type": kind, "payload": payload});
        ordinal += 1;
        writeln!(text, "{record}").unwrap();
    };
    let meta = json!({"id": THREAD, "session_id": THREAD, "timestamp": "2026-11-30T08:00:00.000Z",
        "cwd": "/w", "originator": "codex_cli_rs", "cli_version": "0.171.0", "source": "cli",
        "history_mode": "paginated"});
    line(&mut text, "session_meta", &meta);
    let said = |role: &str, kind: &str, words: &str| {
        let content = json!([{"type": kind, "text": words}]);
        json!({"type": "message", "role": role, "content": content})
    };
    line(&mut text, "response_item", &said("user", "input_text", "Look around."));
    for step in 0_usize.. {
        if text.len() >= BYTES {
            break;
        }
        let call = format!("call_{step}");
        let file = format!("src/part_{}.rs", step % 97);
        let arguments = json!({"cmd": format!("rg -n handler_{} {file}", step % 89)}).to_string();
        line(
            &mut text,
            "response_item",
            &json!({"type": "function_call", "name": "exec_command",
            "arguments": arguments, "call_id": call}),
        );
        let mut output = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\n\
            Original token count: 9\nOutput:\n"
            .to_owned();
        for row in 0..40 + step % 120 {
            let name = format!("handler_{}_{row}", step % 1_009);
            writeln!(output, "{row}:    let {name} = registry.get(\"{name}\")?;").unwrap();
        }
        line(
            &mut text,
            "response_item",
            &json!({"type": "function_call_output", "call_id": call,
            "output": output}),
        );
        let item = json!({"type": "CommandExecution", "aggregated_output": output});
        line(
            &mut text,
            "event_msg",
            &json!({"type": "item_completed", "thread_id": THREAD,
            "item": item}),
        );
        if step % 5 == 4 {
            let words = format!("What matters is handler_{}_3 in {file}.", step % 1_009);
            line(&mut text, "response_item", &said("assistant", "output_text", &words));
        }
        let usage = json!({"input_tokens": 9_000, "total_tokens": 9_500});
        line(
            &mut text,
            "event_msg",
            &json!({"type": "token_count", "rate_limits": null,
            "info": {"last_token_usage": usage, "model_context_window": 258_400}}),
        );
    }
    text
}

pub(crate) fn bench(table: &mut Table) {
    let scratch = Scratch::new();
    let text = rollout();
    let name = format!("sessions/2026/11/30/rollout-2026-11-30T08-00-00-{THREAD}.jsonl");
    let source = scratch.file(&name, text.as_bytes());
    let options = Options {
        home: scratch.path().to_path_buf(),
        profile: Profile::Standard,
        settings: Settings::default(),
        pins: Pins::default(),
        budget: None,
        threshold: None,
        dry_run: false,
        in_place: None,
    };
    let look = Options { dry_run: true, ..options.clone() };
    let copy = scratch.path().join("copy");
    let forks = |options: &Options| {
        let made = fork(&source, options).unwrap();
        assert!(made.counters.dropped > 0);
        if !made.dry_run {
            std::fs::remove_file(made.path).unwrap();
        }
    };
    // Both last when they are done.
    let copies = |to: &Path| {
        std::fs::copy(&source, to).unwrap();
        std::fs::File::open(to).unwrap().sync_all().unwrap();
        std::fs::remove_file(to).unwrap();
    };
    let times = in_turn(
        ROUNDS,
        &mut [&mut || forks(&options), &mut || forks(&look), &mut || copies(&copy)],
    );
    let about = format!("fork of a rollout of {:.0} MB", text.len() as f64 / 1e6);
    table.cost(&format!("{about}, to a copy of the file"), &times[0], &times[2], "");
    table.cost(&format!("{about}, nothing written, to a copy"), &times[1], &times[2], "");
}
