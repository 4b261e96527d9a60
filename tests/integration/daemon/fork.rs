//! `POST /v1/fork` on a running daemon: what is asked for, what is refused, and what is left behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use compactd_core::hash::hash;
use compactd_tests::harness::{Claude, Client, Codex, Daemon, Home, eventually, files};
use serde_json::{Value, json};

use super::{id, id_of};

/// Every file below the host's folder by its hash.
fn tree(home: &Home) -> BTreeMap<PathBuf, u64> {
    let bytes = |path: PathBuf| fs::read(&path).ok().map(|bytes| (path, hash(&bytes)));
    files(&home.join(".codex")).into_iter().filter_map(bytes).collect()
}

/// A thread of which most may go, and its file.
fn thread(home: &Home, number: u32, searches: usize) -> (String, PathBuf) {
    let id = id(number);
    let file = home.codex(&id);
    let used: Vec<String> = (10..20).map(|at| format!("unused_name_{at}_0")).collect();
    let mut rollout = Codex::new(&id);
    rollout.prompt("Look around.").searches(searches);
    // These are used after all: only a budget takes them.
    home.put(&file, rollout.say(&format!("I saw {}.", used.join(", "))).take());
    (id, file)
}

/// Forks what is named: one file more, and no other is touched.
#[track_caller]
fn forked(home: &Home, client: &Client, request: &Value) -> Value {
    let before = tree(home);
    let answer = client.post("/v1/fork", request).good();
    let mut after = tree(home);
    assert!(after.remove(Path::new(answer["path"].as_str().unwrap())).is_some(), "{answer}");
    assert_eq!(after, before);
    answer
}

/// Asks for what cannot be had: nothing is written.
#[track_caller]
fn refused(home: &Home, client: &Client, request: &Value) -> (u16, String, Value) {
    let before = tree(home);
    let answer = client.post("/v1/fork", request);
    let (status, code) = answer.error();
    assert_eq!(tree(home), before);
    (status, code, answer.json()["error"].clone())
}

/// The newest compacted history of a rollout, as text.
fn history(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines().rfind(|line| line.contains(r#""type":"compacted""#)).unwrap().to_owned()
}

#[test]
fn by_id_and_by_the_beginning_of_one() {
    let home = Home::new();
    let [file] = home.recorded_codex("classic").try_into().unwrap();
    let recorded = id_of(&file);
    let (made, _) = thread(&home, 1, 30);
    let daemon = Daemon::start(&home);
    let client = &daemon.client;
    for (source, wanted) in [(&recorded, &*recorded), (&recorded, "01a22bab"), (&made, "00000001-")]
    {
        let answer = forked(&home, client, &json!({"session": wanted}));
        assert_eq!(answer["source"]["thread_id"], **source);
        assert_eq!(answer["dry_run"], false);
        assert!(answer["counters"]["dropped"].as_u64().unwrap() > 0, "{answer}");
        // It can be asked about at once.
        let fork = answer["thread_id"].as_str().unwrap();
        let known = client.get(&format!("/v1/sessions/{fork}")).good();
        assert_eq!((&known["path"], &known["compaction"]), (&answer["path"], &json!(1)), "{known}");
        let lines = fs::read_to_string(answer["path"].as_str().unwrap()).unwrap().lines().count();
        assert_eq!(answer["records"], lines);
        let again = forked(&home, client, &json!({"session": fork}));
        assert_eq!(again["source"]["thread_id"], fork);
        assert_eq!(again["counters"]["dropped"], 0, "{again}");
    }
    // The beginning of a fork's id is the beginning of its time: now there are many.
    let (status, code, error) = refused(&home, client, &json!({"session": "0"}));
    assert_eq!((status, &*code), (404, "session_unknown"));
    assert!(error["message"].as_str().unwrap().contains("sessions have an id"), "{error}");
    assert_eq!(error["hint"], "give more of the id");
}

#[test]
fn a_look_a_budget_and_pins() {
    let home = Home::new();
    let (id, _) = thread(&home, 1, 40);
    let daemon = Daemon::start(&home);
    let client = &daemon.client;
    client.indexed(&id);
    let before = tree(&home);
    let look = client.post("/v1/fork", &json!({"session": id, "dry_run": true})).good();
    assert_eq!(tree(&home), before);
    assert_eq!(look["dry_run"], true);
    let rules = forked(&home, client, &json!({"session": id}));
    for field in ["counters", "tokens_before", "tokens_after", "items", "records", "level"] {
        assert_eq!(look[field], rules[field], "{field}");
    }
    let tokens = |answer: &Value| answer["tokens_after"].as_u64().unwrap();
    let budget = tokens(&rules) - 500;
    let further = forked(&home, client, &json!({"session": id, "budget": budget}));
    assert!(tokens(&further) <= budget, "{further}");
    assert_eq!((&further["over_target"], &rules["level"]), (&json!(false), &json!("rules")));
    assert_ne!(further["level"], "rules");
    let reference = forked(&home, client, &json!({"session": id, "profile": "reference"}));
    assert!(reference["items"].as_u64() < rules["items"].as_u64(), "there calls go too");

    assert!(!history(rules["path"].as_str().unwrap()).contains("unused_name_3_7"));
    drop(client.post(&format!("/v1/sessions/{id}/pins"), &json!({"id": "call_3"})).good());
    for wish in [json!({}), json!({"budget": 1}), json!({"profile": "reference"})] {
        let mut request = json!({"session": id});
        request.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
        let pinned = forked(&home, client, &request);
        let history = history(pinned["path"].as_str().unwrap());
        assert!(history.contains("unused_name_3_7"), "{request}");
        assert!(!history.contains("unused_name_4_7"), "{request}");
    }
    // Pins that cannot be read are no pins that may be passed over.
    let pins = home.join(format!(".local/state/compactd/pins/codex-{id}.json"));
    fs::write(&pins, "{ broken").unwrap();
    let (status, ..) = refused(&home, client, &json!({"session": id}));
    assert_eq!(status, 500);
}

#[test]
fn what_is_refused_leaves_nothing() {
    let home = Home::new();
    let (codex, _) = thread(&home, 1, 3);
    let claude = id(2);
    home.put(&home.claude(&claude), Claude::new(&claude).prompt("Go.").work(2).take());
    let odd = id(3);
    let mut rollout = Codex::new(&odd);
    let mut text = rollout.prompt("Look around.").searches(3).take();
    text.push_str(
        r#"{"timestamp":"t","type":"response_item","payload":{"type":"telepathy","thought":"private"}}"#,
    );
    text.push('\n');
    home.put(&home.codex(&odd), text);
    let daemon = Daemon::start(&home);
    let client = &daemon.client;
    client.known(&[codex.clone(), claude.clone(), odd.clone()]);
    for (request, status, code) in [
        (json!({"session": codex, "profile": "wild"}), 400, "profile_unknown"),
        (json!({"session": "no/id"}), 400, "invalid_id"),
        (json!({"session": codex, "budget": -1}), 400, "invalid_json"),
        (json!({}), 400, "invalid_json"),
        (json!({"session": claude}), 404, "session_unknown"),
        (json!({"session": "ffffffff"}), 404, "session_unknown"),
        (json!({"session": odd}), 422, "fork_refused"),
        (json!({"session": odd, "dry_run": true}), 422, "fork_refused"),
    ] {
        let (found, named, error) = refused(&home, client, &request);
        assert_eq!((found, &*named), (status, code), "{request}");
        let said = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
        assert!(!said("message").is_empty() && !said("hint").is_empty(), "{error}");
        if code == "fork_refused" {
            assert!(said("message").starts_with("item 7 of the history (line 9 of"), "{error}");
            assert!(!error.to_string().contains("private"), "{error}");
        }
    }
    assert_eq!(client.get("/v1/fork").status, 405);
}

#[test]
fn a_folder_in_the_way_is_told_with_its_path() {
    let home = Home::new();
    let (id, _) = thread(&home, 1, 3);
    // Forks go below the year in which they are made.
    let source = home.codex(&id);
    let there = home.join(".codex/archived_sessions").join(source.file_name().unwrap());
    home.rename(&source, &there);
    fs::remove_dir_all(home.join(".codex/sessions")).unwrap();
    fs::write(home.join(".codex/sessions"), "in the way").unwrap();
    let daemon = Daemon::start(&home);
    daemon.client.known(std::slice::from_ref(&id));
    let (status, code, error) = refused(&home, &daemon.client, &json!({"session": id}));
    assert_eq!((status, &*code), (422, "fork_refused"));
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("cannot make the folder ") && message.contains("/.codex/sessions/"),
        "{error}"
    );
}

#[test]
fn a_caller_that_goes_away_leaves_a_whole_fork_or_none() {
    let home = Home::new();
    let (id, source) = thread(&home, 1, 1_500);
    let daemon = Daemon::start(&home);
    daemon.client.known(std::slice::from_ref(&id));
    let body = json!({"session": id}).to_string();
    let head = "POST /v1/fork HTTP/1.1\r\nHost: compactd\r\nContent-Type: application/json\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let others = || {
        let mut files = tree(&home);
        files.remove(&source);
        files.into_keys().collect::<Vec<_>>()
    };
    // It goes when the fork is begun.
    eventually("a fork is begun", || (!others().is_empty()).then_some(()));
    drop(stream);
    daemon.stop();
    let [path] = others().try_into().unwrap();
    assert!(path.extension().is_some_and(|extension| extension == "jsonl"), "{}", path.display());
    let last = fs::read_to_string(&path).unwrap();
    assert!(last.ends_with('\n') && last.lines().last().unwrap().contains("token_count"));
    let look = home.compactctl(&["fork", path.to_str().unwrap(), "--dry-run", "--json"]);
    assert_eq!(look.json()["counters"]["dropped"], 0);
}
