//! Threads to fork, forks, and what the host makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use compactd_core::hash::hash;
use compactd_tests::harness::host::codex::wire::{differs_from_resume, plain};
use compactd_tests::harness::host::codex::{Call, Codex, Kind, Request, Step, rollout};
use compactd_tests::harness::{Home, binaries};
use serde_json::Value;

/// What the host is told that a long session took; the first turn behind a fork has a limit below.
pub(super) const MUCH: u64 = 30_000;
pub(super) const LIMIT: u64 = 25_000;

/// The prompt behind a fork.
pub(super) const PROMPT: &str = "What is the codeword?";

/// Steps of a session in which some results are never used and others are: the model reads many
/// files, changes one, reads on, and speaks.
pub(super) fn long_work(host: &Codex) -> Vec<Step> {
    for number in 0..14 {
        let lines: Vec<String> =
            (0..40).map(|line| format!("unused_name_{number}_{line} = {line}")).collect();
        host.put(&format!("file{number}.txt"), lines.join("\n"));
    }
    host.put("note.txt", "codeword = heron_7713_quartz\n");
    let mut steps = vec![Step::shell("cat note.txt").think("look first")];
    steps.extend((0..14).map(|number| Step::shell(&format!("grep -n unused file{number}.txt"))));
    steps.push(Step::calls([Call::patch(
        "*** Update File: note.txt\n@@\n-codeword = heron_7713_quartz\n+codeword = heron_7713_quartz\n+owner = dev\n",
    )]));
    steps.push(Step::shell("cat note.txt"));
    steps.push(Step::shell("cat no_such_file.txt"));
    steps.push(Step::text("The note holds heron_7713_quartz and an owner.").tokens(MUCH));
    steps
}

/// The same in code mode, where each result holds several reads.
pub(super) fn long_code(host: &Codex) -> Vec<Step> {
    drop(long_work(host));
    let run = |commands: &[String]| {
        let runs: Vec<String> = commands
            .iter()
            .map(|command| format!("text(await tools.exec_command({{cmd: \"{command}\"}}));"))
            .collect();
        Step::code(&runs.join("\n"))
    };
    let search = |number: usize| format!("grep -n unused file{number}.txt");
    let mut steps = vec![run(&["cat note.txt".into()])];
    steps.extend((0..14).map(|number| run(&[search(number)])));
    steps.push(run(&[search(1), search(2)]));
    steps.push(Step::text("The note holds heron_7713_quartz.").tokens(MUCH));
    steps
}

/// All rollouts of a home by their hash: a fork may add one and must not change any.
pub(super) fn hashes(host: &Codex) -> BTreeMap<PathBuf, u64> {
    let all = rollout::all(&host.codex_home());
    all.into_iter().map(|path| (path.clone(), hash(&fs::read(&path).unwrap()))).collect()
}

/// `compactctl` in a home.
pub(super) fn compactctl(home: &Home, host: &Codex, arguments: &[&str]) -> Output {
    Command::new(&binaries().compactctl)
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .env("CODEX_HOME", host.codex_home())
        .output()
        .unwrap()
}

/// A fork, as `compactctl fork` tells it.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) answer: Value,
    pub(super) thread: String,
    pub(super) path: PathBuf,
}

impl Fork {
    /// Forks a thread or a rollout. No file that was there may change.
    #[track_caller]
    pub(super) fn of(home: &Home, host: &Codex, source: &str, more: &[&str]) -> Self {
        let before = hashes(host);
        let output = compactctl(home, host, &[&["fork", source, "--json"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut after = hashes(host);
        let path = PathBuf::from(answer["path"].as_str().unwrap());
        assert!(after.remove(&path).is_some(), "{answer}");
        assert_eq!(after, before, "a file that was there has changed");
        let thread = answer["thread_id"].as_str().unwrap().to_owned();
        Self { answer, thread, path }
    }

    pub(super) fn records(&self) -> Vec<Value> {
        rollout::records(&self.path)
    }

    pub(super) fn history(&self) -> Vec<Value> {
        rollout::replacement_history(&self.records()).unwrap()
    }

    pub(super) fn counter(&self, name: &str) -> u64 {
        self.answer["counters"][name].as_u64().unwrap()
    }
}

/// The refusal of a fork: what was said, and nothing was written.
#[track_caller]
pub(super) fn refusal(home: &Home, host: &Codex, source: &str) -> String {
    let before = hashes(host);
    let output = compactctl(home, host, &["fork", source, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(hashes(host), before);
    String::from_utf8(output.stderr).unwrap()
}

/// Resumes a thread for one turn, with a limit below what its source had used: the only request.
#[track_caller]
pub(super) fn only_request(host: &Codex, thread: &str) -> Arc<Request> {
    host.api().script([Step::text("resumed")]);
    let run = host.clone().compacting_at(LIMIT).resume(thread, PROMPT).good();
    assert_eq!(run.kinds(), [Kind::Turn], "the host compacted by itself");
    host.api().last_turn()
}

/// The first request behind a fork holds its history exactly, then the prompt, and the initial
/// context once.
#[track_caller]
pub(super) fn resumes(host: &Codex, fork: &Fork) -> Arc<Request> {
    let request = only_request(host, &fork.thread);
    if let Some(difference) = differs_from_resume(&request, &fork.history()) {
        panic!("{difference}");
    }
    assert_eq!(contexts(&request), 1, "the initial context is not there once");
    request
}

/// How often a request says where the model is.
pub(super) fn contexts(request: &Request) -> usize {
    let text = |item: &Value| compactd_tests::harness::host::codex::wire::text(item);
    request.input().iter().filter(|item| text(item).contains("<environment_context>")).count()
}

/// A rollout of the test's own: lines under a new id, numbered anew.
pub(super) fn write(host: &Codex, id: &str, mut records: Vec<Value>) -> PathBuf {
    for (ordinal, record) in records.iter_mut().enumerate() {
        if record.get("ordinal").is_some() {
            record["ordinal"] = ordinal.into();
        }
    }
    let meta = &mut records[0]["payload"];
    meta["id"] = id.into();
    meta["session_id"] = id.into();
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    let path = host
        .codex_home()
        .join(format!("sessions/2026/11/30/rollout-2026-11-30T08-00-00-{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.concat()).unwrap();
    path
}

/// Texts of the results in a history that are our notes, in order.
pub(super) fn notes(history: &[Value]) -> Vec<Value> {
    let is_note = |item: &&Value| item.to_string().contains(" by compactd: ");
    history.iter().filter(is_note).map(plain).collect()
}

/// The file of a path, packed as the host's own compression does it.
pub(super) fn pack(path: &Path) -> PathBuf {
    let bytes = zstd::encode_all(fs::File::open(path).unwrap(), 3).unwrap();
    let packed = path.with_extension("jsonl.zst");
    fs::write(&packed, bytes).unwrap();
    fs::remove_file(path).unwrap();
    packed
}
