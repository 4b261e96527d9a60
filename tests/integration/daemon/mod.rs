//! The daemon as its callers see it: in this process for nearly all, as the real binary where the
//! process itself matters.

mod api;
mod codex_hooks;
mod equality;
mod fork;
mod hostile;
mod ledger;
mod life;
mod live;
mod memory;
mod recall;
mod shim;

use std::path::Path;

use compactd_tests::harness::Client;
use serde_json::{Value, json};

/// A session id with this number.
fn id(number: u32) -> String {
    format!("{number:08x}-1111-4000-8000-000000000001")
}

/// The id by which the daemon knows a transcript.
fn id_of(path: &Path) -> String {
    let name = path.file_stem().unwrap().to_str().unwrap();
    match name.strip_prefix("rollout-") {
        Some(rest) => rest["2026-11-30T08-56-12-".len()..][..36].to_owned(),
        None => name.strip_prefix("agent-").unwrap_or(name).to_owned(),
    }
}

/// What is decided of each result: of an explanation, and of an answer to a compaction.
fn decided(explain: &Value) -> Vec<Value> {
    explain["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| json!([result["id"], result["decision"], result["rule"], result["call"]]))
        .collect()
}

/// The ids of an explanation as the rows of a request: each call, then its result.
fn request_of(explain: &Value, transcript: &str, trigger: &str) -> Value {
    let rows: Vec<Value> = explain["results"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|result| {
            [
                json!({"role": "assistant", "ids": [result["id"]]}),
                json!({"role": "user", "ids": [result["id"]], "chars": result["chars"]}),
            ]
        })
        .collect();
    json!({"host": explain["host"], "session": explain["session"], "transcript": transcript,
        "trigger": trigger, "rows": rows})
}

/// That a compaction decides what the explanation says.
#[track_caller]
fn assert_as_explained(client: &Client, id: &str, transcript: &str) -> usize {
    let mut count = 0;
    for profile in ["standard", "reference"] {
        let explain = client.explain(id, &format!("?profile={profile}"));
        let mut request = request_of(&explain, transcript, "manual");
        request["profile"] = json!(profile);
        let answer = client.compact(&request);
        let expected: Vec<Value> =
            decided(&explain).into_iter().filter(|decided| decided[1] != "keep").collect();
        let got: Vec<Value> = answer["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|made| json!([made["id"], made["decision"], made["rule"], made["call"]]))
            .collect();
        assert_eq!(got, expected, "{id} {profile}");
        let chars: Vec<&Value> = explain["results"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|result| result["decision"] != "keep")
            .map(|result| &result["chars"])
            .collect();
        let totals: Vec<&Value> =
            answer["decisions"].as_array().unwrap().iter().map(|made| &made["chars"]).collect();
        assert_eq!(totals, chars, "{id} {profile}");
        assert!(answer.get("unknown").is_none(), "{id} {profile}: {answer}");
        let sums = (&answer["counters"]["results"], &answer["counters"]["dropped"]);
        assert_eq!(sums, (&explain["totals"]["results"], &explain["totals"]["dropped"]), "{id}");
        count += expected.len();
    }
    count
}
