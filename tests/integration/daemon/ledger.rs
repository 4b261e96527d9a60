//! The ledger of passes and what the hooks say and hear about them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use compactd_tests::harness::{Claude, Client, Daemon, Home, Process, eventually};
use serde_json::{Value, json};

use super::{decided, id};

/// A session of which much can go, its file, and the number of its first compaction's results.
struct Work {
    id: String,
    file: PathBuf,
    session: Claude,
}

impl Work {
    fn new(home: &Home, number: u32) -> Self {
        let id = id(number);
        let file = home.claude(&id);
        let mut session = Claude::new(&id);
        home.put(&file, session.prompt("You must keep port 48213. Go.").work(12).take());
        Self { id, file, session }
    }

    fn compact(&self, client: &Client, trigger: &str) -> Value {
        client.compact(&self.session.request(&self.file, trigger))
    }

    /// A request that asks for more than the rules can give.
    fn escalate(&self, client: &Client) -> Value {
        let mut request = self.session.request(&self.file, "auto");
        request["threshold"] = json!(100);
        let answer = client.compact(&request);
        assert_eq!(answer["outcome"], "escalate", "{answer}");
        answer
    }

    /// The host writes down that a compaction happened.
    fn boundary(&mut self, home: &Home) {
        home.append(&self.file, self.session.boundary().take());
    }

    fn hook(&self, client: &Client, event: &str, more: &Value) -> (u16, String) {
        let mut input = json!({"session_id": self.id, "transcript_path": self.file,
            "hook_event_name": event});
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        let body = json!({"input": input, "env": {}});
        let answer = client.post(&format!("/v1/hooks/claude/{event}"), &body);
        (answer.status, String::from_utf8(answer.body).unwrap())
    }

    fn silent(&self, client: &Client, event: &str, more: &Value) {
        assert_eq!(self.hook(client, event, more), (204, String::new()), "{event} {more}");
    }

    fn started(&self, client: &Client) -> Option<String> {
        let (status, body) = self.hook(client, "SessionStart", &json!({"source": "compact"}));
        if status == 204 {
            return None;
        }
        let json: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(json.as_object().unwrap().len(), 1, "{json}");
        Some(json["systemMessage"].as_str().unwrap().to_owned())
    }

    fn passes(&self, client: &Client) -> Vec<Value> {
        let list = client.get(&format!("/v1/sessions/{}/passes", self.id)).good();
        list["passes"].as_array().unwrap().clone()
    }

    fn pass(&self, client: &Client, number: &str) -> Value {
        client.get(&format!("/v1/sessions/{}/passes/{number}", self.id)).good()
    }

    fn report(&self, client: &Client, number: u64, report: &Value) -> Value {
        client.post(&format!("/v1/sessions/{}/passes/{number}", self.id), report).good()
    }

    fn on_disk(&self, home: &Home, number: u64) -> PathBuf {
        home.join(format!(".local/state/compactd/passes/claude-{}/{number}.json", self.id))
    }
}

#[test]
fn a_pass_is_kept_as_it_was_decided_over_a_restart() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    assert_eq!(work.passes(&daemon.client), [] as [Value; 0]);
    let missing = daemon.client.get(&format!("/v1/sessions/{}/passes/last", work.id));
    assert_eq!(missing.error(), (404, "pass_unknown".to_owned()));
    let explain = daemon.client.explain(&work.id, "");
    let answer = work.compact(&daemon.client, "manual");
    let check = |client: &Client, state: &str| {
        let pass = work.pass(client, "last");
        assert_eq!(pass, work.pass(client, "1"));
        assert_eq!((&pass["number"], &pass["trigger"]), (&json!(1), &json!("manual")));
        assert_eq!((&pass["outcome"], &pass["state"]), (&json!("apply"), &json!(state)));
        assert_eq!(pass["counters"], answer["counters"]);
        assert_eq!(decided(&pass), decided(&explain), "every result with its rule and call");
        for (kept, shown) in
            pass["results"].as_array().unwrap().iter().zip(explain["results"].as_array().unwrap())
        {
            for field in ["reason", "tool", "chars"] {
                assert_eq!(kept[field], shown[field], "{field}");
            }
        }
        assert_eq!(work.passes(client).len(), 1);
    };
    check(&daemon.client, "answered");
    let report = json!({"outcome": "applied", "kept": 12, "tokens_before": 52_000,
        "tokens_after": 31_000, "millis": 6.3});
    let item = work.report(&daemon.client, 1, &report);
    assert_eq!((&item["state"], &item["report"]), (&json!("applied"), &report));
    assert_eq!(work.report(&daemon.client, 1, &report), item, "told twice");
    check(&daemon.client, "applied");
    daemon.stop();
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    check(&daemon.client, "applied");
    // The client shows it first, with and without a daemon.
    let short = &work.id[..8];
    daemon.stop();
    let ran = home.compactctl(&["explain", short]);
    assert!(ran.out.starts_with("pass 1, manual, "), "{ran:?}");
    assert!(ran.out.contains(": applied; 52k → 31k tokens in 6.3 ms\n"), "{ran:?}");
    assert!(ran.out.contains("\nnow: "), "{ran:?}");
    let json = home.compactctl(&["explain", short, "--json"]).json();
    assert_eq!(json["pass"]["number"], 1);
    assert_eq!(json["totals"], explain["totals"]);
    let now = home.compactctl(&["explain", short, "--now", "--json"]).json();
    assert_eq!(now, explain);
    let only = home.compactctl(&["explain", short, "--pass", "last", "--json"]).json();
    assert_eq!(only, json["pass"]);
    let none = home.compactctl(&["explain", short, "--pass", "7"]);
    assert_eq!(none.code, Some(1));
    assert!(
        none.err.contains("error: session ") && none.err.contains(" has no pass 7"),
        "{none:?}"
    );
}

#[test]
fn the_client_asks_a_real_daemon_for_passes() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let other = Work::new(&home, 2);
    let daemon = Process::start(&home, &[]);
    for work in [&work, &other] {
        daemon.client.indexed(&work.id);
    }
    let _answer = work.compact(&daemon.client, "manual");
    let explained = home.compactctl(&["explain", &work.id]);
    assert!(explained.out.starts_with("pass 1, manual, "), "{explained:?}");
    let only = home.compactctl(&["explain", &work.id, "--pass", "1"]);
    assert!(explained.out.starts_with(&only.out) && only.code == Some(0), "{only:?}");
    let json = home.compactctl(&["explain", &work.id, "--json"]).json();
    assert_eq!(json["pass"]["number"], 1);
    let json = home.compactctl(&["explain", &other.id, "--json"]).json();
    assert_eq!(json["pass"], Value::Null);
    let now = home.compactctl(&["explain", &other.id, "--now"]);
    assert_eq!(home.compactctl(&["explain", &other.id]).out, now.out);
    let focus = home.compactctl(&["focus", &work.id]);
    assert!(focus.out.contains("\"You must keep port 48213. Go.\""), "{focus:?}");
    daemon.stop();
    let offline = home.compactctl(&["focus", &work.id]);
    assert_eq!(offline.out, focus.out, "with and without a daemon");
    assert_eq!(
        home.compactctl(&["focus", &work.id, "--json"]).json()["focus"],
        focus.out.trim_end()
    );
}

#[test]
fn an_answered_compaction_is_told_once_in_both_orders() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let empty = json!({"trigger": "manual", "compact_summary": ""});
    for (number, start_first) in [(1, false), (2, true)] {
        let mut work = Work::new(&home, number);
        daemon.client.indexed(&work.id);
        let answer = work.compact(&daemon.client, "manual");
        let counters = &answer["counters"];
        let mut told = Vec::new();
        if start_first {
            told.extend(work.started(&daemon.client));
        }
        work.silent(&daemon.client, "PostCompact", &empty);
        work.silent(&daemon.client, "PostCompact", &empty);
        told.extend(work.started(&daemon.client));
        told.extend(work.started(&daemon.client));
        work.boundary(&home);
        told.extend(work.started(&daemon.client));
        assert_eq!(told.len(), 1, "{told:?}");
        let sums = format!(
            "compactd: kept {}, cut {}, dropped {} of {} tool results, ",
            counters["kept"], counters["truncated"], counters["dropped"], counters["results"]
        );
        assert!(told[0].starts_with(&sums), "{told:?}");
        let more = format!("compactctl explain {} · one back: compactctl recall ID", &work.id[..8]);
        assert!(told[0].ends_with(&more) && !told[0].contains('\n'), "{told:?}");
        assert_eq!(work.pass(&daemon.client, "last")["state"], "applied");
        // What comes late changes nothing any more.
        work.report(&daemon.client, 1, &json!({"outcome": "applied", "kept": 3}));
        assert_eq!(work.started(&daemon.client), None);
        let details = daemon.client.get(&format!("/v1/sessions/{}", work.id)).good();
        assert_eq!((&details["boundaries"], &details["compaction"]), (&json!(1), &json!(1)));
        // The host's next compaction, in which nobody asked us.
        work.silent(&daemon.client, "SessionStart", &json!({"source": "resume"}));
        work.boundary(&home);
        assert_eq!(work.started(&daemon.client), None);
    }
    daemon.stop();
}

#[test]
fn a_handed_over_compaction_says_why_and_the_focus_goes_out_once() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    let answer = work.escalate(&daemon.client);
    assert!(answer["focus"].as_str().unwrap().contains("port 48213"), "{answer}");
    work.report(&daemon.client, 1, &json!({"outcome": "handed_over"}));
    let auto = json!({"trigger": "auto", "custom_instructions": null});
    // The plugin handed the text over: the hook has nothing to add.
    work.silent(&daemon.client, "PreCompact", &auto);
    let told = work.started(&daemon.client).unwrap();
    let reason = answer["reason"].as_str().unwrap();
    assert!(told.contains(reason) && told.contains("host was asked for its own summary"), "{told}");
    work.silent(&daemon.client, "PostCompact", &json!({"compact_summary": "<summary>x</summary>"}));
    assert_eq!(work.started(&daemon.client), None);
    assert_eq!(work.pass(&daemon.client, "1")["state"], "handed_over");
    // The host tries again without asking: the report was about the time before.
    assert_eq!(work.hook(&daemon.client, "PreCompact", &auto).0, 200);
    // Asked again, and told again.
    let _answer = work.escalate(&daemon.client);
    work.report(&daemon.client, 1, &json!({"outcome": "handed_over"}));
    work.silent(&daemon.client, "PreCompact", &auto);
    daemon.stop();
}

#[test]
fn without_a_report_the_hook_hands_the_focus_over() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    let answer = work.escalate(&daemon.client);
    for _ in 0..2 {
        let (status, focus) = work.hook(&daemon.client, "PreCompact", &json!({"trigger": "auto"}));
        assert_eq!(status, 200);
        assert!(focus.starts_with("Keep these exactly, character for character:\n"), "{focus}");
        assert!(focus.contains("port 48213"), "{focus}");
    }
    // Nobody knows what the summary was made of.
    let told = work.started(&daemon.client).unwrap();
    let reason = answer["reason"].as_str().unwrap();
    assert!(told.contains(reason) && told.contains("the host made its own summary"), "{told}");
    assert!(!told.contains("tool results"), "{told}");
    daemon.stop();
}

#[test]
fn where_mods_are_forbidden_the_hooks_work_alone() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    let (status, focus) = work.hook(&daemon.client, "PreCompact", &json!({"trigger": "manual"}));
    assert_eq!(status, 200);
    assert!(focus.chars().count() <= 2_000 && focus.contains("48213"), "{focus}");
    // Every native compaction ends with this for no sub-agent at all.
    work.silent(&daemon.client, "SubagentStop", &json!({"agent_id": "", "agent_type": ""}));
    assert_eq!(work.started(&daemon.client), None);
    work.silent(&daemon.client, "PostCompact", &json!({"compact_summary": "text"}));
    for event in ["UserPromptSubmit", "SessionEnd", "Stop", "SubagentStop", "NeverHeardOf"] {
        work.silent(&daemon.client, event, &json!({"agent_type": "general-purpose"}));
    }
    for source in ["startup", "resume", "clear", "fork"] {
        work.silent(&daemon.client, "SessionStart", &json!({"source": source}));
    }
    // Nonsense, and a session that does not exist.
    for input in [
        json!(null),
        json!([]),
        json!({"session_id": 7}),
        json!({"session_id": "../x"}),
        json!({"session_id": "x", "transcript_path": "/nowhere.jsonl", "compact_summary": ""}),
    ] {
        for event in ["PreCompact", "PostCompact", "SessionStart", "SessionEnd"] {
            let body = json!({"input": input, "env": {}});
            assert_eq!(daemon.client.post(&format!("/v1/hooks/claude/{event}"), &body).status, 204);
        }
    }
    assert_eq!(work.passes(&daemon.client), [] as [Value; 0]);
    daemon.stop();
}

#[test]
fn what_the_host_did_not_use_is_not_told() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    let _answer = work.compact(&daemon.client, "auto");
    // The mod ran out of time: the host runs its own compaction, and gets the focus text.
    assert_eq!(work.hook(&daemon.client, "PreCompact", &json!({"trigger": "auto"})).0, 200);
    assert_eq!(work.started(&daemon.client), None);
    assert_eq!(work.pass(&daemon.client, "last")["state"], "left");
    let explained = home.compactctl(&["explain", &work.id, "--json"]).json();
    assert_eq!(explained["pass"], Value::Null, "it did not really run");
    // The host asks again: the new answer takes the place of the old.
    let _answer = work.compact(&daemon.client, "manual");
    let passes = work.passes(&daemon.client);
    assert_eq!((passes.len(), &passes[0]["state"]), (1, &json!("answered")));
    assert_eq!(passes[0]["trigger"], "manual");
    work.silent(&daemon.client, "SessionEnd", &json!({"reason": "other"}));
    eventually("the end settles it", || {
        (work.pass(&daemon.client, "1")["state"] == "unknown").then_some(())
    });
    daemon.stop();
}

#[test]
fn a_kill_between_two_hooks_loses_and_repeats_nothing() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let empty = json!({"compact_summary": ""});
    let daemon = Process::start(&home, &[]);
    daemon.client.indexed(&work.id);
    let _answer = work.compact(&daemon.client, "manual");
    work.silent(&daemon.client, "PostCompact", &empty);
    daemon.kill();
    let daemon = Process::start(&home, &[]);
    assert!(work.started(&daemon.client).is_some());
    daemon.kill();
    let daemon = Process::start(&home, &[]);
    assert_eq!(work.started(&daemon.client), None);
    work.silent(&daemon.client, "PostCompact", &empty);
    assert_eq!(work.pass(&daemon.client, "last")["state"], "applied");
    daemon.stop();
}

#[test]
fn two_sessions_and_a_sub_agent_are_kept_apart() {
    let home = Home::new();
    let (one, two) = (Work::new(&home, 1), Work::new(&home, 2));
    let agent_file = home.agent(&one.id, "a1");
    let mut agent = Claude::new(&one.id);
    home.put(&agent_file, agent.prompt("Look.").work(12).take());
    let daemon = Daemon::start(&home);
    for id in [one.id.as_str(), two.id.as_str(), "a1"] {
        daemon.client.indexed(id);
    }
    let _answer = one.compact(&daemon.client, "manual");
    let mut request = agent.request(&one.file, "auto");
    request["agent"] = json!("a1");
    let answer = daemon.client.compact(&request);
    assert_eq!(answer["outcome"], "apply", "{answer}");
    let _answer = two.compact(&daemon.client, "auto");
    one.silent(&daemon.client, "PostCompact", &json!({"compact_summary": ""}));
    assert_eq!(two.pass(&daemon.client, "last")["state"], "answered");
    assert!(one.started(&daemon.client).is_some());
    assert!(two.started(&daemon.client).is_some());
    let report = json!({"outcome": "applied", "host": "claude", "agent": "a1"});
    assert_eq!(one.report(&daemon.client, 1, &report)["trigger"], "auto");
    let of_agent = daemon.client.get("/v1/sessions/a1/passes").good();
    assert_eq!(of_agent["passes"][0]["state"], "applied");
    for (target, status) in [
        (format!("/v1/sessions/{}/passes/9", one.id), 404),
        (format!("/v1/sessions/{}/passes/x", one.id), 400),
        (format!("/v1/sessions/{}/passes/1", id(9)), 404),
    ] {
        let body = json!({"outcome": "applied"});
        assert_eq!(daemon.client.post(&target, &body).error().0, status, "{target}");
        assert_eq!(daemon.client.get(&target).error().0, status, "{target}");
    }
    daemon.stop();
}

#[test]
fn planted_links_lead_nowhere() {
    let home = Home::new();
    let work = Work::new(&home, 1);
    let elsewhere = home.join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let base = work.on_disk(&home, 1).parent().unwrap().parent().unwrap().to_path_buf();
    std::fs::create_dir_all(base.parent().unwrap()).unwrap();
    symlink(&elsewhere, &base).unwrap();
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    let _answer = work.compact(&daemon.client, "manual");
    assert_eq!(work.passes(&daemon.client).len(), 1, "kept in memory all the same");
    assert!(!work.pass(&daemon.client, "1")["results"].as_array().unwrap().is_empty());
    daemon.stop();
    assert!(is_empty(&elsewhere));
    std::fs::remove_file(&base).unwrap();
    // The file itself: what it points to stays as it is.
    let path = work.on_disk(&home, 1);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let precious = home.join("precious");
    std::fs::write(&precious, "precious").unwrap();
    symlink(&precious, &path).unwrap();
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&work.id);
    assert_eq!(work.passes(&daemon.client).len(), 0);
    let _answer = work.compact(&daemon.client, "manual");
    assert_eq!(work.passes(&daemon.client).len(), 1);
    daemon.stop();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}
