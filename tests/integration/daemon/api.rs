//! Pins, metrics, and the description of the API.

use std::collections::BTreeSet;

use compactd_api::routes;
use compactd_tests::harness::{Claude, Daemon, Home};
use regex::Regex;
use serde_json::{Value, json};

use super::{decided, id};

fn rule_of(explain: &Value, id: &str) -> (String, String) {
    let results = explain["results"].as_array().unwrap();
    let result = results.iter().find(|result| result["id"] == id).unwrap();
    let text = |field: &str| result[field].as_str().unwrap().to_owned();
    (text("decision"), text("rule"))
}

#[test]
fn pins_hold_over_a_restart() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Go.").work(12).take());
    let pins = format!("/v1/sessions/{one}/pins");
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&one);
    let before = daemon.client.explain(&one, "");
    let gone: Vec<String> = decided(&before)
        .iter()
        .filter(|decided| decided[1] == "drop")
        .map(|decided| decided[0].as_str().unwrap().to_owned())
        .collect();
    assert!(gone.len() > 3, "{before}");
    let read = gone.iter().find(|id| id.starts_with("toolu_read")).unwrap().clone();
    assert_eq!(daemon.client.get(&pins).good(), json!({"pins": []}));
    let set = daemon.client.post(&pins, &json!({"id": read})).good();
    assert_eq!(set, json!({"pins": [{"id": read}]}));
    // A file may be named as the session would: relative to where it runs.
    let set = daemon.client.post(&pins, &json!({"file": "src/part1.rs"})).good();
    assert_eq!(set["pins"][1], json!({"file": "/work/app/src/part1.rs"}), "{set}");
    let check = |daemon: &Daemon| {
        daemon.client.indexed(&one);
        let explain = daemon.client.explain(&one, "");
        let pinned = ("keep".to_owned(), "pinned".to_owned());
        assert_eq!(rule_of(&explain, &read), pinned);
        assert_ne!(explain, before);
        let answer = daemon.client.compact(&session.request(&file, "manual"));
        let ids: BTreeSet<&str> = answer["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|made| made["id"].as_str().unwrap())
            .collect();
        assert!(!ids.contains(read.as_str()) && !ids.is_empty(), "{ids:?}");
        let offline = home.offline(&file, &[]);
        assert_eq!(explain, offline, "the offline client knows the pins too");
        // Every read of the pinned file stays.
        for row in explain["results"].as_array().unwrap() {
            let number = row["id"].as_str().unwrap().trim_start_matches("toolu_read");
            if let Ok(at) = number.parse::<usize>()
                && ((at - 1) / 5) % 3 == 1
            {
                assert_eq!(row["decision"], "keep", "{row}");
            }
        }
        let details = daemon.client.get(&format!("/v1/sessions/{one}")).good();
        assert_eq!(details["pins"], 2);
    };
    check(&daemon);
    daemon.stop();
    let daemon = Daemon::start(&home);
    check(&daemon);
    let left = daemon.client.delete(&pins, &json!({"id": read})).good();
    assert_eq!(left["pins"].as_array().unwrap().len(), 1);
    assert_eq!(
        daemon.client.delete(&pins, &json!({"file": "src/part1.rs"})).good()["pins"],
        json!([])
    );
    assert_eq!(daemon.client.explain(&one, ""), before);
    let nonsense = [json!({}), json!({"id": ""}), json!({"id": "a", "file": "b"}), json!([])];
    for pin in nonsense {
        assert_eq!(daemon.client.post(&pins, &pin).error().0, 400, "{pin}");
    }
    // The session is not in memory, so where it runs is not known yet.
    daemon.stop();
    let daemon = Daemon::start_with(&home, |settings| settings.index.recent_days = 0);
    let set = daemon.client.post(&pins, &json!({"file": "src/part2.rs"})).good();
    assert_eq!(set["pins"], json!([{"file": "/work/app/src/part2.rs"}]));
    assert_eq!(
        daemon.client.delete(&pins, &json!({"file": "src/part2.rs"})).good()["pins"],
        json!([])
    );
    // Pins that cannot be read are told, never overwritten, and no pass goes over them.
    let path = home.join(format!(".local/state/compactd/pins/claude-{one}.json"));
    std::fs::write(&path, "{ broken").unwrap();
    assert_eq!(daemon.client.get(&pins).status, 500);
    assert_eq!(daemon.client.post(&pins, &json!({"id": "x"})).status, 500);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ broken");
    let answer = daemon.client.post("/v1/compact", &session.request(&file, "manual"));
    let decides =
        answer.status == 200 && !answer.json()["decisions"].as_array().unwrap().is_empty();
    assert!(!decides, "a pass could take what the person wants kept");
    daemon.stop();
}

#[test]
fn metrics_are_prometheus_text() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Go.").work(12).take());
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, session.lines());
    let _answer = daemon.client.compact(&session.request(&file, "auto"));
    assert_eq!(daemon.client.get("/v1/nothing").status, 404);
    let answer = daemon.client.get("/v1/metrics");
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.body).unwrap();
    let help = Regex::new(r"^# HELP ([a-z_]+) [^\n\\]+$").unwrap();
    let kind = Regex::new(r"^# TYPE ([a-z_]+) (counter|gauge|summary)$").unwrap();
    let sample = Regex::new(r#"^([a-z_]+)(\{quantile="0\.\d+"\})? (\d+)$"#).unwrap();
    let mut values = std::collections::BTreeMap::new();
    let (mut helped, mut typed) = (BTreeSet::new(), BTreeSet::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(found) = help.captures(line) {
            assert!(helped.insert(found[1].to_owned()), "twice: {line}");
        } else if let Some(found) = kind.captures(line) {
            assert!(typed.insert(found[1].to_owned()), "twice: {line}");
            assert_eq!(&found[2] == "counter", found[1].ends_with("_total"), "{line}");
        } else {
            let found = sample.captures(line).unwrap_or_else(|| panic!("no sample: {line:?}"));
            let name = &found[1];
            let family = name.strip_suffix("_count").filter(|family| typed.contains(*family));
            assert!(typed.contains(family.unwrap_or(name)), "no type: {line}");
            let key = format!("{name}{}", found.get(2).map_or("", |label| label.as_str()));
            assert!(
                values.insert(key, found[3].parse::<u64>().unwrap()).is_none(),
                "twice: {line}"
            );
        }
    }
    assert_eq!(helped, typed);
    assert_eq!(values["compactd_sessions"], 1);
    assert_eq!(values["compactd_compactions_apply_total"], 1);
    assert_eq!(values["compactd_compact_micros_count"], 1);
    assert_eq!(values["compactd_lines_read_total"], session.lines());
    assert_eq!(values["compactd_bytes_read_total"], std::fs::metadata(&file).unwrap().len());
    assert!(values["compactd_errors_total"] >= 1 && values["compactd_requests_total"] >= 3);
    daemon.stop();
}

#[test]
fn the_description_names_every_route_that_is_served() {
    let home = Home::new();
    let one = id(1);
    home.put(&home.claude(&one), Claude::new(&one).prompt("Go.").work(1).take());
    let daemon = Daemon::start(&home);
    daemon.client.indexed(&one);
    let document = daemon.client.get("/v1/openapi.json").good();
    let mut described = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "delete", "patch"] {
            if methods.get(method).is_some() {
                described.insert((method.to_uppercase(), path.clone()));
            }
        }
    }
    let named: BTreeSet<(String, String)> =
        routes::ALL.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
    assert_eq!(described, named);
    // Each is served, and no other method is.
    for path in described.iter().map(|(_, path)| path).collect::<BTreeSet<_>>() {
        let target = if path == routes::HOOK {
            routes::fill(path, &["claude", "Stop"])
        } else {
            routes::fill(path, &[&one])
        };
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let body = (method != "GET").then_some(&b"{}"[..]);
            let answer = daemon.client.send(method, &target, body);
            let is_described = described.contains(&(method.to_owned(), path.clone()));
            assert_eq!(answer.status != 405, is_described, "{method} {target}: {answer:?}");
            assert!(![404, 500].contains(&answer.status), "{method} {target}: {answer:?}");
        }
    }
    daemon.stop();
}

#[test]
fn lists_can_be_narrowed() {
    let home = Home::new();
    for number in 1..4 {
        home.put(&home.claude(&id(number)), Claude::new(&id(number)).prompt("Go.").take());
    }
    home.recorded_codex("classic");
    let daemon = Daemon::start(&home);
    compactd_tests::harness::eventually("all are indexed", || {
        let sessions = daemon.client.sessions();
        let is_done = sessions.len() == 4 && sessions.iter().all(|item| item["state"] == "indexed");
        is_done.then_some(())
    });
    let count = |query: &str| {
        let list = daemon.client.get(&format!("/v1/sessions{query}")).good();
        list["sessions"].as_array().unwrap().len()
    };
    assert_eq!((count("?host=claude"), count("?host=codex"), count("?limit=2")), (3, 1, 2));
    assert_eq!((count("?state=indexed"), count("?state=broken"), count("?newer=field")), (4, 0, 4));
    let changed: Vec<Value> =
        daemon.client.sessions().iter().map(|item| item["updated_at"].clone()).collect();
    assert!(changed.is_sorted_by(|a, b| a.as_str() >= b.as_str()), "{changed:?}");
    daemon.stop();
}
