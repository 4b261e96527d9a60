//! `POST /v1/compact`: the same decisions as explained, and everything around them.

use std::fs;

use compactd_api::{HOST_BODY_MAX, IDS_MAX};
use compactd_core::record::Host;
use compactd_tests::harness::{Claude, Daemon, Home, fixtures};
use compactd_tests::session::{Kind, session};
use serde_json::{Value, json};

use super::{assert_as_explained, decided, id, id_of, request_of};

/// Settings under which short sessions have something to decide.
fn eager(settings: &mut compactd_api::settings::Settings) {
    settings.rules.recent_results = 0;
    settings.rules.pin_last = 0;
    settings.rules.generic_above = 2;
    settings.rules.rerunnable_chars = 20;
}

#[test]
fn decisions_are_as_explained_on_recorded_sessions() {
    let mut decisions = 0;
    let home = Home::new();
    let files = ["native-compact", "rewrite-safe", "auto-compact", "interactive-rewrite"]
        .into_iter()
        .flat_map(|name| home.recorded_claude(name))
        .collect::<Vec<_>>();
    let mut cases = vec![(home, files)];
    for case in ["classic", "native-fork", "revert-segment", "code-mode", "legacy", "subagent"] {
        let home = Home::new();
        let files = home.recorded_codex(case);
        cases.push((home, files));
    }
    for (home, files) in &cases {
        let daemon = Daemon::start_with(home, eager);
        let ids: Vec<String> = files.iter().map(|file| id_of(file)).collect();
        daemon.client.known(&ids);
        for item in daemon.client.sessions() {
            let (id, path) = (item["id"].as_str().unwrap(), item["path"].as_str().unwrap());
            decisions += assert_as_explained(&daemon.client, id, path);
        }
    }
    assert!(decisions > 50, "{decisions}");
}

#[test]
fn decisions_are_as_explained_on_generated_sessions() {
    let home = Home::new();
    let mut files = Vec::new();
    for seed in 0..12_u32 {
        let host = if seed % 2 == 0 { Host::Claude } else { Host::Codex };
        let id = id(seed);
        let file = if host == Host::Claude { home.claude(&id) } else { home.codex(&id) };
        let mut text = session(host, Kind::Odd, u64::from(seed), 150).lines.join(&b'\n');
        text.push(b'\n');
        home.put(&file, text);
        files.push((id, file));
    }
    let daemon = Daemon::start_with(&home, eager);
    let mut decisions = 0;
    for (id, file) in &files {
        daemon.client.indexed(id);
        decisions += assert_as_explained(&daemon.client, id, file.to_str().unwrap());
    }
    assert!(decisions > 200, "{decisions}");
}

#[test]
fn rows_of_one_message_have_one_ordinal() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    session.prompt("Look at both.");
    let input = json!({"command": "git status"});
    // The rows of the first message are apart: a result stands between its two calls.
    session.call_in("msg_a", "toolu_1", "Bash", &input).result("toolu_1", "one");
    session.call_in("msg_a", "toolu_2", "Bash", &input).result("toolu_2", "two");
    session.call_in("msg_b", "toolu_3", "Bash", &input).result("toolu_3", "three");
    home.put(&file, session.take());
    let daemon = Daemon::start(&home);
    let mut request = session.request(&file, "auto");
    request["rows"].as_array_mut().unwrap().push(json!({"row": "unheard-of", "role": "user"}));
    request["rows"].as_array_mut().unwrap().push(json!({"role": "user", "ids": ["toolu_9"]}));
    request["rows"].as_array_mut().unwrap().push(json!({"role": "assistant", "ids": ["toolu_8"]}));
    let answer = daemon.client.compact(&request);
    let ordinals = answer["ordinals"].as_array().unwrap();
    let [prompt, call_1, result_1, call_2, result_2, call_3, _, none, unknown, _] = &ordinals[..]
    else {
        panic!("{answer}")
    };
    assert_eq!(call_1, call_2, "one message: {answer}");
    assert_eq!(result_1, result_2, "its results are one message too: {answer}");
    assert!(prompt.is_u64() && call_1.is_u64() && prompt != call_1 && call_1 != call_3, "{answer}");
    assert_eq!((none, unknown), (&Value::Null, &Value::Null));
    assert_eq!(answer["unknown"], json!(["toolu_9", "toolu_8"]));
    // The order of the request is the order of the answer, whatever it is.
    request["rows"].as_array_mut().unwrap().reverse();
    let reversed = daemon.client.compact(&request);
    let backwards: Vec<&Value> = reversed["ordinals"].as_array().unwrap().iter().rev().collect();
    assert_eq!(backwards, ordinals.iter().collect::<Vec<_>>());
}

#[test]
fn cuts_lie_between_characters() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    session.prompt("Go.");
    let mut texts = std::collections::BTreeMap::new();
    for at in 0..40_usize {
        // The cut falls at every place of an emoji of several scalars.
        let text = "x".repeat(at) + &"👩‍👩‍👧‍👦é\u{301}🦀".repeat(60);
        let id = format!("toolu_{at}");
        session.bash(&id, "git status", &text);
        texts.insert(id, text);
    }
    home.put(&file, session.take());
    let daemon = Daemon::start_with(&home, |settings| {
        settings.rules.recent_results = 1_000;
        settings.rules.pin_last = 0;
        settings.rules.rerunnable_chars = 33;
    });
    let answer = daemon.client.compact(&session.request(&file, "manual"));
    let explain = daemon.client.explain(&one, "");
    let mut cuts = 0;
    for made in answer["decisions"].as_array().unwrap() {
        let id = made["id"].as_str().unwrap();
        let text = &texts[id];
        assert_eq!(made["chars"], text.chars().count(), "{made}");
        let Some(cut) = made["cut_utf16"].as_u64() else { continue };
        let units: Vec<u16> = text.encode_utf16().collect();
        let kept = String::from_utf16(&units[..usize::try_from(cut).unwrap()]);
        let kept = kept.unwrap_or_else(|_| panic!("inside a pair: {made}"));
        assert!(text.starts_with(&kept) && kept.chars().count() >= 33, "{made}");
        let removed = text.chars().count() - kept.chars().count();
        assert_eq!(made["removed"], removed, "{made}");
        let result =
            explain["results"].as_array().unwrap().iter().find(|result| result["id"] == id);
        let left = result.unwrap()["left"].as_str().unwrap();
        assert!(left.starts_with(&kept), "{left} {kept}");
        cuts += 1;
    }
    assert!(cuts >= 30, "{cuts}");
}

#[test]
fn twenty_thousand_ids_fit_through_the_hosts_door() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    session.prompt("Go.");
    for at in 0..IDS_MAX / 2 {
        session.read(
            &format!("toolu_01{at:022}"),
            &format!("/work/app/src/part{}.rs", at % 50),
            &format!("fn part_{at}() {{}}\n{}", "// nothing to see\n".repeat(14)),
        );
    }
    home.put(&file, session.take());
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, session.lines());
    let request = session.request(&file, "auto");
    let body = request.to_string();
    assert!(body.chars().count() < HOST_BODY_MAX, "{}", body.len());
    let answer = daemon.client.post("/v1/compact", &request);
    assert!(answer.body.len() < HOST_BODY_MAX, "{}", answer.body.len());
    let answer = answer.good();
    assert!(answer.get("unknown").is_none());
    assert_eq!(answer["ordinals"].as_array().unwrap().len(), session.named().len());
    assert_eq!(answer["counters"]["results"], IDS_MAX / 2);
    let dropped = answer["counters"]["dropped"].as_u64().unwrap();
    assert!(dropped > 9_000, "nearly all may go: {dropped}");
    assert_eq!(answer["decisions"].as_array().unwrap().len() as u64, dropped);
    let mut more = request;
    more["rows"].as_array_mut().unwrap().push(json!({"role": "user", "ids": ["one_more"]}));
    let refused = daemon.client.post("/v1/compact", &more);
    assert_eq!(refused.error(), (413, "too_many_ids".to_owned()));
}

#[test]
fn what_the_caller_holds_for_an_error_is_kept() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Go.").work(12).take());
    let daemon = Daemon::start(&home);
    let mut request = session.request(&file, "auto");
    let answer = daemon.client.compact(&request);
    let first = answer["decisions"][0]["id"].clone();
    let row = request["rows"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .find(|row| row["role"] == "user" && row["ids"] == json!([first]));
    row.unwrap()["is_error"] = json!(true);
    let kept = daemon.client.compact(&request);
    let ids = |answer: &Value| -> Vec<Value> {
        answer["decisions"].as_array().unwrap().iter().map(|made| made["id"].clone()).collect()
    };
    assert_eq!(ids(&kept), ids(&answer)[1..]);
    let count = |answer: &Value| answer["counters"]["kept"].as_u64().unwrap();
    assert_eq!(count(&kept), count(&answer) + 1);
}

#[test]
fn outcomes() {
    let home = Home::new();
    let (one, two) = (id(1), id(2));
    let (small, large) = (home.claude(&one), home.claude(&two));
    let mut session = Claude::new(&one);
    home.put(&small, session.prompt("Go.").bash("toolu_1", "true", "ok").take());
    let mut work = Claude::new(&two);
    home.put(&large, work.prompt("Go.").work(12).take());
    let daemon = Daemon::start(&home);
    let ask = |request: &Value| daemon.client.compact(request);
    for (trigger, outcome) in
        [("manual", "skip"), ("plugin", "skip"), ("auto", "escalate"), ("precompute", "skip")]
    {
        let answer = ask(&session.request(&small, trigger));
        assert_eq!(answer["outcome"], outcome, "{trigger}: {answer}");
        assert_eq!(answer["decisions"], json!([]));
        assert!(answer["reason"].is_string(), "{answer}");
    }
    for (trigger, outcome) in [("manual", "apply"), ("auto", "apply"), ("precompute", "skip")] {
        let answer = ask(&work.request(&large, trigger));
        assert_eq!(answer["outcome"], outcome, "{trigger}: {answer}");
        assert_eq!(answer["decisions"].as_array().unwrap().is_empty(), outcome == "skip");
    }
    let compactions = daemon.client.stats()["compactions"].clone();
    assert_eq!(compactions, json!({"apply": 2, "skip": 4, "escalate": 1, "unready": 0}));
}

#[test]
fn beyond_the_rules() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    let found = "src/cart.rs:7: let widget_total = cart_total_sum;\n".repeat(60);
    let said = format!("It is cart_total_sum. {}", "I go on with it now. ".repeat(40));
    session.prompt("Go.").bash("toolu_grep", "grep -rn sum src | sort", &found).say(&said);
    home.put(&file, session.work(12).take());
    let daemon = Daemon::start(&home);
    let ask = |trigger: &str, more: &[(&str, Value)]| {
        let mut request = session.request(&file, trigger);
        for (name, value) in more {
            request[name] = value.clone();
        }
        daemon.client.compact(&request)
    };
    let number = |answer: &Value, name: &str| answer["counters"][name].as_u64().unwrap();
    let plain = ask("auto", &[]);
    let (before, after) = (number(&plain, "tokens_before"), number(&plain, "tokens_after"));
    assert!(before > after + 1_000, "{plain}");
    assert!(plain["counters"].get("budget").is_none() && plain["level"] == "rules", "{plain}");
    // 60% of the window, 90% of the threshold, whichever is less: what is left must fit.
    let window = |tokens: u64, window: u64| json!({"tokens": tokens, "window": window});
    let (fits, tight) = (|left: u64| left * 10 / 6 + 2, |left: u64| left * 10 / 6 - 2);
    for (usage, threshold, level) in [
        (window(before, fits(after)), json!(null), "rules"),
        (window(before, tight(after)), json!(null), "more"),
        (window(before, fits(after)), json!(after), "more"),
        (json!(null), json!(after * 10 / 9 + 2), "rules"),
        (json!(null), json!(after), "more"),
        (json!({"tokens": 999_999}), json!(null), "rules"),
        // What the host counts beside the messages stays.
        (window(before + 500, fits(after + 500)), json!(null), "rules"),
        (window(before + 500, tight(after + 500)), json!(null), "more"),
        // At most a quarter of the window of it.
        (window(999_999, fits(after) * 2), json!(null), "rules"),
    ] {
        for trigger in ["auto", "manual"] {
            let answer =
                ask(trigger, &[("usage", usage.clone()), ("threshold", threshold.clone())]);
            let at = format!("{trigger} {usage} {threshold}: {answer}");
            assert_eq!(answer["level"] == "rules", level == "rules", "{at}");
            assert_eq!(answer["outcome"] == "escalate", answer["level"] == "summary", "{at}");
            assert_eq!(answer["reason"].is_string(), level == "more", "{at}");
            let over = answer["decisions"].as_array().unwrap().iter();
            let over = over.filter(|made| made["rule"] == "over_budget").count();
            assert!(
                (answer["level"] != "cuts" || over > 0) && (level == "more" || over == 0),
                "{at}"
            );
            let tokens = usage["tokens"].as_u64().unwrap_or(before);
            assert_eq!(number(&answer, "tokens_before"), tokens);
            let gone = before - number(&plain, "tokens_after");
            let goes = tokens - number(&answer, "tokens_after");
            assert!(if level == "rules" { goes == gone } else { goes > gone }, "{at}");
            assert!(level == "rules" || over == 1, "{at}");
        }
    }
    let last = ask("auto", &[("threshold", json!(100))]);
    assert_eq!(last["outcome"], "escalate", "{last}");
    assert_eq!(last["decisions"].as_array().unwrap().len(), 19, "{last}");
    let first = &last["decisions"][0];
    assert_eq!((&first["id"], &first["rule"]), (&json!("toolu_grep"), &json!("over_budget")));
    assert_eq!(first["cut_utf16"], 200);
    // The row of the request, its characters, and half of them.
    let chars = said.chars().count();
    assert_eq!(last["texts"], json!([[3, chars, chars / 2]]));
}

#[test]
fn a_sub_agent_has_its_own_file() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Go.").bash("toolu_main", "true", "ok").take());
    let mut agent = Claude::new(&one);
    // Not known yet: the request itself leads to it.
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(&one, session.lines());
    home.put(&home.agent(&one, "a0b1"), agent.prompt("Sub.").work(12).take());
    let mut request = agent.request(&file, "auto");
    request["agent"] = json!("a0b1");
    let answer = daemon.client.compact(&request);
    assert!(answer.get("unknown").is_none(), "{answer}");
    assert!(!answer["decisions"].as_array().unwrap().is_empty());
    let mut request = session.request(&file, "auto");
    request["agent"] = json!("a0b1");
    assert_eq!(daemon.client.compact(&request)["unknown"], json!(["toolu_main", "toolu_main"]));
    request["agent"] = json!("nobody");
    let refused = daemon.client.post("/v1/compact", &request);
    assert_eq!(refused.error(), (404, "session_unknown".to_owned()));
}

#[test]
fn what_cannot_be_served_is_refused() {
    let home = Home::new();
    let one = id(1);
    let file = home.claude(&one);
    let mut session = Claude::new(&one);
    home.put(&file, session.prompt("Go.").work(1).take());
    let outside = home.join("outside/session.jsonl");
    home.put(&outside, fs::read(&file).unwrap());
    let daemon = Daemon::start(&home);
    let error = |change: &dyn Fn(&mut Value)| {
        let mut request = session.request(&file, "auto");
        change(&mut request);
        daemon.client.post("/v1/compact", &request).error()
    };
    let unknown = home.claude(&id(9)).display().to_string();
    let refused = |status: u16, code: &str| (status, code.to_owned());
    let named = |request: &mut Value, session: &str, transcript: &str| {
        request["session"] = json!(session);
        request["transcript"] = json!(transcript);
    };
    assert_eq!(error(&|r| named(r, &id(9), &unknown)), refused(404, "session_unknown"));
    let outside = outside.display().to_string();
    assert_eq!(error(&|r| named(r, "session", &outside)), refused(403, "transcript_outside_roots"));
    let climbing = format!("{}/../../../outside/session.jsonl", file.parent().unwrap().display());
    assert_eq!(
        error(&|r| named(r, "session", &climbing)),
        refused(403, "transcript_outside_roots")
    );
    assert_eq!(
        error(&|r| named(r, "passwd", "/etc/passwd")),
        refused(403, "transcript_outside_roots")
    );
    assert_eq!(error(&|r| r["transcript"] = json!("relative.jsonl")), refused(400, "bad_request"));
    for bad in ["../x", "a/b", "", "a\nb", "a\0b", &"x".repeat(129), ".."] {
        assert_eq!(error(&|r| r["session"] = json!(bad)), refused(400, "invalid_id"), "{bad:?}");
        assert_eq!(error(&|r| r["agent"] = json!(bad)), refused(400, "invalid_id"), "{bad:?}");
    }
    assert_eq!(error(&|r| r["host"] = json!("gemini")), refused(404, "host_unknown"));
    assert_eq!(error(&|r| r["profile"] = json!("deep")), refused(400, "profile_unknown"));
    assert_eq!(error(&|r| r["rows"] = json!(7)), refused(400, "invalid_json"));
    let broken = daemon.client.send("POST", "/v1/compact", Some(b"{"));
    assert_eq!(broken.error(), refused(400, "invalid_json"));
    for (method, target, status, code) in [
        ("GET", "/v1/sessions/none", 404, "session_unknown"),
        ("GET", "/v1/sessions/none/explain", 404, "session_unknown"),
        ("GET", "/v1/sessions/none/pins", 404, "session_unknown"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/compact", 405, "method_not_allowed"),
        ("POST", "/v1/hooks/gemini/Stop", 404, "host_unknown"),
    ] {
        let body = (method == "POST").then_some(&b"{}"[..]);
        assert_eq!(daemon.client.send(method, target, body).error(), refused(status, code));
    }
    let explain = |query: &str| daemon.client.get(&format!("/v1/sessions/{one}/explain{query}"));
    assert_eq!(explain("?profile=deep").error(), refused(400, "profile_unknown"));
    assert_eq!(explain("?history=all").error().0, 400);
}

#[test]
fn the_golden_request_is_served() {
    let golden = fs::read_to_string(fixtures("api/v1").join("compact-request.json")).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    let home = Home::new();
    let session = golden["session"].as_str().unwrap();
    let mut file = Claude::new(session);
    home.put(&home.claude(session), file.prompt("Go.").work(1).take());
    let mut agent = Claude::new(session);
    agent.prompt("Go.").bash(
        "toolu_012b486d1ca4854ee1a196ec",
        "git status",
        &"M x\n".repeat(4_000),
    );
    let name = golden["agent"].as_str().unwrap();
    home.put(&home.agent(session, name), agent.take());
    let daemon = Daemon::start(&home);
    daemon.client.has_lines(name, agent.lines());
    let answer = daemon.client.compact(&golden);
    assert_eq!(answer["ordinals"].as_array().unwrap().len(), 6);
    assert_eq!(
        answer["unknown"],
        json!(["toolu_0190d7f4bc04554fa4aad4d2", "toolu_0190d7f4bc04554fa4aad4d2"])
    );
    assert_eq!(answer["protocol"], 1);
    // Fields that a newer caller sends are no error.
    let explain = daemon.client.explain(name, "");
    let mut request = request_of(&explain, "/nowhere", "auto");
    request["newer"] = json!({"field": 1});
    assert_eq!(daemon.client.post("/v1/compact", &request).status, 200);
    assert_eq!(decided(&explain).len(), 1);
}
