//! The hooks of Codex: what an agent gets behind a compaction, once for each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use compactd_api::settings::OnManualCompact;
use compactd_tests::harness::{Client, Codex, Daemon, Home, Process, eventually, files, fixtures};
use serde_json::{Value, json};

use super::id;

/// A thread of Codex, and the hooks that its host runs.
struct Thread {
    id: String,
    /// The session that its hooks name: its own but for a sub-agent.
    root: String,
    file: PathBuf,
    rollout: Codex,
}

impl Thread {
    fn new(home: &Home, number: u32) -> Self {
        let id = id(number);
        let file = home.codex(&id);
        let mut rollout = Codex::new(&id);
        let said = "You must never touch port 48213. Fix the importer.";
        home.put(&file, rollout.prompt(said).shell("call_1", "ls", "src").take());
        Self { root: id.clone(), id, file, rollout }
    }

    fn agent_of(home: &Home, number: u32, root: &Self) -> Self {
        Self { root: root.id.clone(), ..Self::new(home, number) }
    }

    fn input(&self, event: &str, more: &Value) -> Value {
        let mut input = json!({"session_id": self.root, "transcript_path": self.file,
            "cwd": "/work/app", "hook_event_name": event, "model": "gpt-5.5"});
        if self.root != self.id {
            input["agent_id"] = json!(self.id);
            input["agent_type"] = json!("default");
        }
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        input
    }

    fn hook(&self, client: &Client, event: &str, more: &Value) -> Option<Value> {
        let body = json!({"input": self.input(event, more), "env": {}});
        let answer = client.post(&format!("/v1/hooks/codex/{event}"), &body);
        match answer.status {
            204 => None,
            200 => Some(serde_json::from_slice(&answer.body).unwrap()),
            status => panic!("{status}"),
        }
    }

    /// The text that a hook injects.
    fn gets(&self, client: &Client, event: &str, more: &Value) -> Option<String> {
        let answer = self.hook(client, event, more)?;
        let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned();
        let output = json!({"hookEventName": event, "additionalContext": text});
        assert_eq!(answer, json!({"hookSpecificOutput": output}));
        Some(text)
    }

    fn starts(&self, client: &Client, source: &str) -> Option<String> {
        self.gets(client, "SessionStart", &json!({"source": source}))
    }

    fn prompts(&self, client: &Client) -> Option<String> {
        self.gets(client, "UserPromptSubmit", &json!({"prompt": "Go on."}))
    }

    fn before(&self, client: &Client, trigger: &str) {
        assert_eq!(self.hook(client, "PreCompact", &json!({"trigger": trigger})), None);
    }

    /// A compaction with both of its hooks.
    fn compacts(&mut self, home: &Home, client: &Client) {
        self.before(client, "auto");
        self.record(home);
        assert_eq!(self.hook(client, "PostCompact", &json!({"trigger": "auto"})), None);
    }

    fn record(&mut self, home: &Home) {
        let again = "You must never touch port 48213. Go on.";
        let after = self.rollout.compacted("Summary.").prompt(again);
        home.append(&self.file, after.take());
    }

    fn details(&self, client: &Client) -> Value {
        client.get(&format!("/v1/sessions/{}", self.id)).good()
    }

    fn recovery(&self, client: &Client) -> Value {
        self.details(client)["recovery"].clone()
    }
}

fn recovery(compaction: u64, state: &str) -> Value {
    json!({"compaction": compaction, "state": state})
}

#[track_caller]
fn is_text(text: Option<String>, number: u64) {
    let text = text.expect("a text");
    let head = format!("# Record kept by compactd: before compaction {number} of this thread\n");
    assert!(text.starts_with(&head), "{text}");
    assert_eq!(text.matches("# Record kept").count(), 1, "{text}");
    assert!(text.contains("facts, not orders"), "{text}");
    assert!(text.contains("You must never touch port 48213."), "{text}");
    assert!(!text.contains("Keep these exactly"), "{text}");
    assert!(text.ends_with("can be had back with `compactctl recall CALL_ID`."), "{text}");
}

#[test]
fn a_root_thread_gets_its_text_once_for_each_compaction() {
    let home = Home::new();
    let mut thread = Thread::new(&home, 1);
    let daemon = Daemon::start(&home);
    let client = &daemon.client;
    client.indexed(&thread.id);
    assert_eq!(thread.starts(client, "startup"), None);
    assert_eq!(thread.prompts(client), None);
    assert_eq!(thread.recovery(client), Value::Null);
    // An attempt that comes to nothing uses up no number.
    thread.before(client, "manual");
    assert_eq!(thread.recovery(client), recovery(1, "kept"));
    assert_eq!(thread.prompts(client), None);
    assert_eq!(thread.recovery(client), Value::Null);
    // Before a turn of a session that was just resumed.
    thread.compacts(&home, client);
    assert_eq!(thread.recovery(client), recovery(1, "pending"));
    assert_eq!(thread.starts(client, "resume"), None);
    is_text(thread.starts(client, "compact"), 1);
    assert_eq!(thread.recovery(client), recovery(1, "delivered"));
    assert_eq!(thread.starts(client, "compact"), None);
    assert_eq!(thread.prompts(client), None);
    // Without the hook that comes first, the prompt.
    thread.compacts(&home, client);
    assert_eq!(thread.hook(client, "PreToolUse", &json!({"tool_name": "Bash"})), None);
    is_text(thread.prompts(client), 2);
    assert_eq!(thread.starts(client, "compact"), None);
    assert_eq!(thread.details(client)["compaction"], 2);
    // Nobody was asked before the third: there is nothing to say.
    thread.record(&home);
    assert_eq!(thread.starts(client, "compact"), None);
    assert_eq!(thread.prompts(client), None);
    // Two without a turn between: both, at the first occasion.
    thread.compacts(&home, client);
    thread.compacts(&home, client);
    let both = thread.starts(client, "compact").unwrap();
    for number in [4, 5] {
        assert_eq!(both.matches(&format!("before compaction {number} of")).count(), 1, "{both}");
    }
    assert_eq!(thread.starts(client, "compact"), None);
    assert_eq!(thread.recovery(client), recovery(5, "delivered"));
}

#[test]
fn a_sub_agent_gets_its_own_at_its_next_tool_call() {
    let home = Home::new();
    let root = Thread::new(&home, 1);
    let mut agent = Thread::agent_of(&home, 2, &root);
    let daemon = Daemon::start(&home);
    let client = &daemon.client;
    assert_eq!(agent.hook(client, "SubagentStart", &json!({})), None);
    client.indexed(&agent.id);
    assert_eq!(agent.gets(client, "PreToolUse", &json!({})), None);
    agent.compacts(&home, client);
    // Not the root's, whatever it does.
    assert_eq!(root.starts(client, "compact"), None);
    assert_eq!(root.prompts(client), None);
    is_text(agent.gets(client, "PreToolUse", &json!({"tool_name": "Bash"})), 1);
    assert_eq!(agent.gets(client, "PostToolUse", &json!({"tool_name": "Bash"})), None);
    agent.compacts(&home, client);
    is_text(agent.gets(client, "PostToolUse", &json!({"tool_name": "Bash"})), 2);
    let stop = json!({"transcript_path": root.file, "agent_transcript_path": agent.file});
    assert_eq!(agent.hook(client, "SubagentStop", &stop), None);
    assert_eq!(agent.recovery(client), recovery(2, "delivered"));
    assert_eq!(root.recovery(client), Value::Null);
}

#[test]
fn a_daemon_that_starts_again_delivers_still_and_once() {
    let home = Home::new();
    let mut thread = Thread::new(&home, 1);
    let daemon = Process::start(&home, &[]);
    daemon.client.indexed(&thread.id);
    thread.before(&daemon.client, "auto");
    // Killed, not stopped: what matters is on disk.
    daemon.kill();
    thread.record(&home);
    let folder = home.join(format!(".local/state/compactd/recovery/codex-{}", thread.id));
    let mode = |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("."), mode("1.md"), mode("thread.json")), (0o700, 0o600, 0o600));
    let daemon = Process::start(&home, &[]);
    is_text(thread.starts(&daemon.client, "compact"), 1);
    daemon.kill();
    let daemon = Process::start(&home, &[]);
    assert_eq!(thread.starts(&daemon.client, "compact"), None);
    assert_eq!(thread.prompts(&daemon.client), None);
    assert_eq!(thread.recovery(&daemon.client), recovery(1, "delivered"));
    daemon.stop();
}

#[test]
fn what_cannot_be_written_down_is_not_said() {
    let home = Home::new();
    let mut thread = Thread::new(&home, 1);
    let daemon = Daemon::start(&home);
    let client = &daemon.client;
    client.indexed(&thread.id);
    thread.compacts(&home, client);
    let file = home.join(format!(".local/state/compactd/recovery/codex-{}/thread.json", thread.id));
    let kept = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("in-the-way")).unwrap();
    assert_eq!(thread.starts(client, "compact"), None);
    assert_eq!(thread.recovery(client), recovery(1, "pending"));
    fs::remove_dir_all(&file).unwrap();
    fs::write(&file, kept).unwrap();
    is_text(thread.prompts(client), 1);
}

#[test]
fn a_fork_is_asked_for_where_a_person_compacts_and_the_host_goes_on_without_one() {
    let home = Home::new();
    let mut thread = Thread::new(&home, 1);
    let daemon = Daemon::start_with(&home, |settings| {
        settings.codex.on_manual_compact = OnManualCompact::Fork;
    });
    let client = &daemon.client;
    client.indexed(&thread.id);
    let why = "nothing in the history can go: it was used later, is new, or is protected";
    let line = format!("compactd: no fork, the host compacts by itself: {why}");
    let told = thread.hook(client, "PreCompact", &json!({"trigger": "manual"}));
    assert_eq!(told, Some(json!({"systemMessage": line})));
    // Without a model there is no line to go on with; a compaction by itself is never stopped.
    let nameless = json!({"trigger": "manual", "model": "a b"});
    assert_eq!(thread.hook(client, "PreCompact", &nameless), None);
    thread.before(client, "auto");
    assert_eq!(files(&home.join(".codex/sessions")), [thread.file.clone()]);
    thread.record(&home);
    is_text(thread.starts(client, "compact"), 1);
}

#[test]
fn a_fork_that_takes_too_long_costs_nothing_else() {
    let home = Home::new();
    let mut thread = Thread::new(&home, 1);
    // So much that it is not done in time, unless the machine is a very fast one.
    let long = thread.rollout.outputs(60, 1_000_000).take();
    home.append(&thread.file, long);
    let daemon = Daemon::start_with(&home, |settings| {
        settings.codex.on_manual_compact = OnManualCompact::Fork;
    });
    let client = &daemon.client;
    client.indexed(&thread.id);
    let answer = thread.hook(client, "PreCompact", &json!({"trigger": "manual"})).unwrap();
    let said = answer["systemMessage"].as_str().unwrap();
    let others = || {
        let below = home.join(".codex/sessions");
        let mut files = files(&below);
        files.retain(|path| *path != thread.file);
        files
    };
    if answer["continue"] == false {
        assert_eq!(others().len(), 1, "{said}");
        assert_eq!(thread.recovery(client), Value::Null);
        return;
    }
    let why = "the thread is too long to be forked while the host waits";
    assert_eq!(said, format!("compactd: no fork, the host compacts by itself: {why}"));
    assert_eq!(answer, json!({"systemMessage": said}));
    // What is kept over the compaction was written meanwhile.
    assert_eq!(thread.recovery(client), recovery(1, "kept"));
    eventually("the fork is given up", || others().is_empty().then_some(()));
    thread.record(&home);
    is_text(thread.starts(client, "compact"), 1);
}

#[test]
fn no_recorded_hook_is_answered_where_nothing_was_compacted() {
    let home = Home::new();
    let thread = Thread::new(&home, 1);
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&thread.id);
    let inputs = fs::read_to_string(fixtures("codex/hooks/inputs.jsonl")).unwrap();
    let mut events = 0;
    for line in inputs.lines() {
        let input: Value = serde_json::from_str(line).unwrap();
        let event = input["hook_event_name"].as_str().unwrap();
        events += 1;
        let body = json!({"input": input, "env": {}});
        let answer = daemon.client.post(&format!("/v1/hooks/codex/{event}"), &body);
        assert_eq!(answer.status, 204, "{line}");
    }
    assert!(events > 30, "{events}");
}
