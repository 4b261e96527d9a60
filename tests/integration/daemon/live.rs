//! Sessions in the hosts' folders: found, followed, and explained as the offline client does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactd::sessions::Sessions;
use compactd::stats::Stats;
use compactd::store::Store;
use compactd_core::settings::Settings;
use compactd_tests::harness::{
    Claude, Client, Codex, Daemon, Home, eventually, eventually_is, fixtures,
};
use compactd_transcript::Roots;
use serde_json::Value;

use super::{id, id_of};

/// That the daemon says of a session what the offline client says of its file.
#[track_caller]
fn assert_as_offline(home: &Home, client: &Client, path: &Path) -> usize {
    let id = id_of(path);
    let item = client.indexed(&id);
    assert_eq!(item["path"], path.to_str().unwrap());
    assert_eq!(item["size_bytes"], fs::metadata(path).unwrap().len());
    let mut results = 0;
    for profile in ["standard", "reference"] {
        for history in ["context", "whole"] {
            let offline = home.offline(path, &["--profile", profile, "--history", history]);
            let query = format!("?profile={profile}&history={history}");
            assert_eq!(client.explain(&id, &query), offline, "{} {query}", path.display());
            if history == "context" {
                let counted = offline["results"].as_array().unwrap().len();
                assert_eq!(item["results"], counted, "{}", path.display());
                assert_eq!(item["messages"], offline["messages"], "{}", path.display());
                assert_eq!(item["lines"], offline["lines"], "{}", path.display());
            }
            results += offline["results"].as_array().unwrap().len();
        }
    }
    results
}

#[test]
fn recorded_sessions_of_claude_are_known_as_offline() {
    let home = Home::new();
    let mut files = Vec::new();
    for name in fs::read_dir(fixtures("claude-code")).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        if !name.contains('.') && name != "hook-payloads" {
            files.extend(home.recorded_claude(&name));
        }
    }
    let daemon = Daemon::start(&home);
    let mut results = 0;
    for file in &files {
        results += assert_as_offline(&home, &daemon.client, file);
    }
    assert!(files.len() >= 8 && results > 100, "{} {results}", files.len());
    assert_eq!(daemon.client.sessions().len(), files.len());
    let agent = files.iter().find(|file| file.to_str().unwrap().contains("subagents")).unwrap();
    let item = daemon.client.session(&id_of(agent)).unwrap();
    assert_eq!(item["agent"], id_of(agent));
    let session = agent.ancestors().nth(2).unwrap().file_name().unwrap().to_str().unwrap();
    let details = daemon.client.get(&format!("/v1/sessions/{}", id_of(agent))).good();
    assert_eq!(details["parent"], session);
}

#[test]
fn recorded_threads_of_codex_are_known_as_offline() {
    let mut results = 0;
    let mut lineages = 0;
    for case in fs::read_dir(fixtures("codex")).unwrap() {
        let case = case.unwrap().file_name().into_string().unwrap();
        if case.contains('.') || case == "hooks" {
            continue;
        }
        let home = Home::new();
        let files = home.recorded_codex(&case);
        let daemon = Daemon::start(&home);
        // Of several files of one thread the newest is its present.
        let current = |file: &&PathBuf| {
            files.iter().rfind(|other| id_of(other) == id_of(file)) == Some(*file)
        };
        let threads: Vec<&PathBuf> = files.iter().filter(current).collect();
        for file in &threads {
            results += assert_as_offline(&home, &daemon.client, file);
            let text = fs::read_to_string(file).unwrap();
            if text.lines().next().unwrap().contains("\"history_base\":{") {
                lineages += 1;
                let own = text.lines().count() as u64;
                let lines = daemon.client.explain(&id_of(file), "")["lines"].as_u64().unwrap();
                assert!(lines > own, "{case}: the history counts too: {lines} of {own}");
                let details = daemon.client.get(&format!("/v1/sessions/{}", id_of(file))).good();
                assert!(details.get("problem").is_none(), "{details}");
            }
        }
        assert_eq!(daemon.client.sessions().len(), threads.len(), "{case}");
    }
    assert!(results > 200 && lineages >= 2, "{results} {lineages}");
}

#[test]
fn a_segment_that_comes_later_continues_its_thread() {
    let home = Home::new();
    let away = Home::new();
    let files = away.recorded_codex("revert-segment");
    let there = |file: &Path| home.join(file.strip_prefix(away.path()).unwrap());
    let (segment, before): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| file.to_str().unwrap().contains('_'));
    for file in &before {
        home.put(&there(file), fs::read(file).unwrap());
    }
    let daemon = Daemon::start(&home);
    for file in &before {
        assert_as_offline(&home, &daemon.client, &there(file));
    }
    let segment = there(segment[0]);
    home.put(&segment, fs::read(away.join(segment.strip_prefix(home.path()).unwrap())).unwrap());
    eventually_is("the thread has its new file", &segment.to_str().map(Value::from), || {
        daemon.client.session(&id_of(&segment)).map(|item| item["path"].clone())
    });
    assert_as_offline(&home, &daemon.client, &segment);
}

/// Real sessions, where this machine has them.
#[test]
fn real_sessions_are_known_as_offline() {
    let Some(corpora) = std::env::var_os("COMPACTD_CORPORA").map(PathBuf::from) else {
        println!("skipped: COMPACTD_CORPORA is not set");
        return;
    };
    let home = Home::new();
    let mut files = Vec::new();
    for host in ["claude", "codex"] {
        let Ok(entries) = fs::read_dir(corpora.join(host)) else { continue };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort_by_key(|path| fs::metadata(path).unwrap().len());
        for path in
            paths.iter().filter(|path| path.to_str().unwrap().ends_with(".jsonl.zst")).step_by(3)
        {
            let packed = fs::read(path).unwrap();
            let mut text = zstd::decode_all(packed.as_slice()).unwrap();
            if text.len() > 4 << 20 {
                continue;
            }
            if !text.ends_with(b"\n") {
                text.push(b'\n');
            }
            let id = id(u32::try_from(files.len()).unwrap());
            let file = if host == "claude" { home.claude(&id) } else { home.codex(&id) };
            home.put(&file, text);
            files.push(file);
        }
    }
    if files.is_empty() {
        eprintln!("no real sessions on this machine");
        return;
    }
    let daemon = Daemon::start(&home);
    let results: usize =
        files.iter().map(|file| assert_as_offline(&home, &daemon.client, file)).sum();
    assert!(results > 500, "{results}");
}

#[test]
fn appended_and_torn_lines_show_up() {
    let home = Home::new();
    let (one, thread) = (id(1), id(2));
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Look at the cart.").work(2).take());
    let rollout = home.codex(&thread);
    let mut codex = Codex::new(&thread);
    home.put(&rollout, codex.shell("call_1", "ls", "src").take());
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, session.lines());
    daemon.client.has_lines(&thread, 3);
    for _ in 0..5 {
        home.append(&file, session.work(1).take());
        let item = daemon.client.has_lines(&one, session.lines());
        assert_eq!(item["indexed_bytes"], fs::metadata(&file).unwrap().len());
    }
    // Torn in two writes, inside a character.
    let before = session.lines();
    let line = session.bash("toolu_torn", "git log", "é🦀".repeat(40).as_str()).take().into_bytes();
    let at = line.iter().rposition(|byte| *byte & 0xC0 == 0x80).unwrap() - 1;
    home.append(&file, &line[..at]);
    // The call is whole, its result is torn.
    let item = daemon.client.has_lines(&one, before + 1);
    let size = fs::metadata(&file).unwrap().len();
    assert!(item["indexed_bytes"].as_u64().unwrap() < size);
    eventually_is("the size is known", &Some(size.into()), || {
        daemon.client.session(&one).map(|item| item["size_bytes"].clone())
    });
    home.append(&file, &line[at..]);
    daemon.client.has_lines(&one, before + 2);
    assert_as_offline(&home, &daemon.client, &file);
    home.append(&rollout, codex.shell("call_2", "git status", &"M a\n".repeat(99)).take());
    daemon.client.has_lines(&thread, 5);
    assert_as_offline(&home, &daemon.client, &rollout);
    assert_eq!(daemon.client.stats()["rebuilds"], 0);
}

#[test]
fn a_request_sees_what_was_appended_just_before() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Go.").work(1).take());
    // Nothing is noticed by itself: no watcher's event is waited for.
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, session.lines());
    for round in 0..50 {
        let id = format!("toolu_now{round}");
        home.append(&file, session.bash(&id, "true", "done").take());
        let answer = daemon.client.compact(&session.request(&file, "auto"));
        assert!(answer.get("unknown").is_none(), "{round}: {answer}");
        assert!(answer["ordinals"].as_array().unwrap().iter().all(Value::is_u64), "{answer}");
    }
}

#[test]
fn new_files_and_folders_appear() {
    let home = Home::new();
    // Not even the hosts' folders are there at the start.
    let daemon = Daemon::start(&home);
    assert!(daemon.client.sessions().is_empty());
    let (one, two, thread) = (id(1), id(2), id(3));
    let mut session = Claude::new(&one);
    home.put(&home.claude(&one), session.prompt("One.").work(1).take());
    daemon.client.has_lines(&one, session.lines());
    let mut codex = Codex::new(&thread);
    home.put(&home.codex(&thread), codex.shell("call_1", "ls", "src").take());
    daemon.client.has_lines(&thread, 3);
    let mut session = Claude::new(&two);
    let other = home.join(format!(".claude/projects/-other-project/{two}.jsonl"));
    home.put(&other, session.prompt("Two.").work(2).take());
    daemon.client.has_lines(&two, session.lines());
    let mut agent = Claude::new(&one);
    home.put(&home.agent(&one, "a0b1"), agent.prompt("Sub.").work(1).take());
    daemon.client.has_lines("a0b1", agent.lines());
    // A whole folder that is moved in.
    let three = id(4);
    let mut session = Claude::new(&three);
    let aside = home.join(format!("aside/{three}.jsonl"));
    home.put(&aside, session.prompt("Three.").work(1).take());
    let moved = home.join(".claude/projects/-moved-in");
    fs::rename(home.join("aside"), &moved).unwrap();
    home.put(&aside, "");
    home.remove(&aside);
    daemon.client.has_lines(&three, session.lines());
    assert_eq!(daemon.client.sessions().len(), 5);
}

#[test]
fn cut_replaced_and_deleted_files_are_followed() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    let first = session.prompt("Go.").work(2).take();
    let first_lines = session.lines();
    home.put(&file, &first);
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, first_lines);
    home.append(&file, session.work(2).take());
    daemon.client.has_lines(&one, session.lines());
    home.truncate(&file, first.len() as u64);
    daemon.client.has_lines(&one, first_lines);
    assert_as_offline(&home, &daemon.client, &file);
    let mut other = Claude::new(&one);
    home.replace(&file, other.prompt("Another beginning.").work(3).take());
    daemon.client.has_lines(&one, other.lines());
    assert_as_offline(&home, &daemon.client, &file);
    // Rewritten in place, as long as before.
    let text = fs::read_to_string(&file).unwrap().replace("git status", "git_status");
    home.put(&file, text);
    eventually("the rewritten file is read", || {
        let explain = daemon.client.explain(&one, "");
        (explain == home.offline(&file, &[])).then_some(())
    });
    assert!(daemon.client.stats()["rebuilds"].as_u64().unwrap() >= 3);
    home.remove(&file);
    eventually_is("it is forgotten", &None, || daemon.client.session(&one));
    let gone = daemon.client.get(&format!("/v1/sessions/{one}/explain"));
    assert_eq!(gone.error(), (404, "session_unknown".to_owned()));
    home.put(&file, other.prompt("Back.").take());
    daemon.client.has_lines(&one, 1);
}

#[test]
fn a_file_that_is_deleted_and_made_anew_at_once_stays_known() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Go.").take());
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, 1);
    for round in 0..40 {
        let mut session = Claude::new(&one);
        let text = session.prompt("Again.").work(1 + round % 3).take();
        home.remove(&file);
        home.put(&file, text);
        daemon.client.has_lines(&one, session.lines());
    }
}

/// The follower tells of a new file and of one that is gone on two ways: either may come first.
#[test]
fn a_late_word_of_a_file_that_is_gone_forgets_no_new_one() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    home.put(&file, Claude::new(&one).prompt("Go.").take());
    let roots = Roots::new([home.join(".claude")], []);
    let sessions =
        Sessions::new(roots, Settings::default(), Store::default(), Arc::new(Stats::default()));
    assert!(sessions.at_path(&file).is_some());
    sessions.gone(&file);
    assert!(sessions.find(&one).is_some());
    home.remove(&file);
    sessions.gone(&file);
    assert!(sessions.find(&one).is_none());
}

#[test]
fn moved_and_archived_files_keep_their_index() {
    let home = Home::new();
    let (one, thread) = (id(1), id(2));
    let mut session = Claude::new(&one);
    home.put(&home.claude(&one), session.prompt("Go.").work(2).take());
    let mut codex = Codex::new(&thread);
    let rollout = home.codex(&thread);
    home.put(&rollout, codex.shell("call_1", "ls", "src").take());
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, session.lines());
    daemon.client.has_lines(&thread, 3);
    let archived = home.join(".codex/archived_sessions").join(rollout.file_name().unwrap());
    home.rename(&rollout, &archived);
    let moved = home.join(format!(".claude/projects/-elsewhere/{one}.jsonl"));
    home.rename(&home.claude(&one), &moved);
    for (id, path) in [(&thread, &archived), (&one, &moved)] {
        eventually_is("it is at its new place", &path.to_str().map(Value::from), || {
            daemon.client.session(id).map(|item| item["path"].clone())
        });
        assert_as_offline(&home, &daemon.client, path);
    }
    home.append(&archived, codex.shell("call_2", "ls", "src").take());
    daemon.client.has_lines(&thread, 5);
    home.append(&moved, session.work(1).take());
    daemon.client.has_lines(&one, session.lines());
    assert_as_offline(&home, &daemon.client, &archived);
    assert_as_offline(&home, &daemon.client, &moved);
}

#[test]
fn packed_rollouts_are_read() {
    let home = Home::new();
    let thread = id(2);
    let mut codex = Codex::new(&thread);
    let rollout = home.codex(&thread);
    for at in 0..30 {
        codex.shell(&format!("call_{at}"), "git status", &format!("M src/{at}.rs\n").repeat(60));
    }
    let text = codex.take();
    home.put(&rollout, &text);
    let plain = home.offline(&rollout, &[]);
    let packed = rollout.with_extension("jsonl.zst");
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&thread, 61);
    // As the host packs: the new file is whole, then the old one goes.
    home.put(&packed, zstd::encode_all(text.as_bytes(), 3).unwrap());
    home.remove(&rollout);
    eventually_is("the packed file is known", &packed.to_str().map(Value::from), || {
        daemon.client.session(&thread).map(|item| item["path"].clone())
    });
    daemon.client.has_lines(&thread, 61);
    assert_eq!(daemon.client.explain(&thread, ""), plain);
}
