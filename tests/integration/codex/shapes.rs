//! The shapes of rollout records, as the fixtures say what the host takes: is it still so?
//!
//! What is taken is tried all at once, since one item that is not would void its whole record.
//! What is refused needs a resume each: of the values of a field, the first one is tried.

use std::fs;
use std::path::PathBuf;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::{
    AppServer, Codex, Kind, Responses, Step, rollout, wire,
};
use serde_json::{Map, Value, json};

const PROMPT: &str = "an-old-prompt";
const CANARY: &str = "kept-one";
/// Resumes in one server: each thread stays in its memory.
const RESUMES_MAX: usize = 100;

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// A table of the fixtures.
fn table(name: &str) -> Map<String, Value> {
    let path = format!("{}/fixtures/codex-shapes/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// One change of a table's item: the value at a place; `None` takes the place away.
struct Change<'a> {
    place: &'a str,
    name: &'a str,
    value: Option<&'a Value>,
}

impl Change<'_> {
    fn of(&self, item: &Value) -> Value {
        let mut item = item.clone();
        let (parent, key) = self.place.rsplit_once('/').unwrap();
        match (self.value, item.pointer_mut(parent).unwrap()) {
            (Some(value), _) => *item.pointer_mut(self.place).unwrap() = value.clone(),
            (None, Value::Object(object)) => drop(object.remove(key)),
            (None, Value::Array(list)) => drop(list.remove(key.parse().unwrap())),
            (None, other) => panic!("{}: {other}", self.place),
        }
        item
    }
}

/// What the host did with the values of a field: the changes it took, and those it refused.
fn changes<'a>(
    table: &'a Map<String, Value>,
    item: &Value,
    place: &'a str,
    list: &Value,
) -> [Vec<Change<'a>>; 2] {
    let of = |key: &str| list.get(key).and_then(Value::as_str).unwrap_or_default();
    let taken = format!("{} {} {}", list.as_str().unwrap_or_default(), of("taken"), of("changed"));
    let values = table["values"].as_object().unwrap().iter();
    // A whole number beyond 64 bits is a double by the time it is written here.
    let values = values.filter(|(name, _)| *name != "huge");
    let values = values.map(|(name, value)| Change { place, name, value: Some(value) });
    let all = std::iter::once(Change { place, name: "missing", value: None }).chain(values);
    let all = all.filter(|change| change.value != item.pointer(place));
    let (yes, no) = all.partition(|change| taken.split(' ').any(|name| name == change.name));
    [yes, no]
}

/// Every field of an item of a table, with [`changes`].
fn fields<'a>(
    table: &'a Map<String, Value>,
    entry: &'a Value,
) -> impl Iterator<Item = [Vec<Change<'a>>; 2]> {
    let fields = entry.get("fields").and_then(Value::as_object).into_iter().flatten();
    fields.map(move |(place, list)| changes(table, &entry["item"], place, list))
}

/// A thread with one turn, and forks of it.
struct Stage {
    _home: Home,
    api: Responses,
    host: Codex,
    server: Option<AppServer>,
    source: PathBuf,
    records: Vec<Value>,
    forks: usize,
}

/// What became of a fork.
#[derive(Debug)]
struct Outcome {
    /// Why it was not resumed.
    refused: Option<String>,
    /// The items that were sent before the new prompt.
    sent: Vec<Value>,
    /// The tokens that the host read from the rollout.
    tokens: Option<i64>,
}

impl Outcome {
    fn has(&self, text: &str) -> bool {
        self.sent.iter().any(|item| wire::text(item) == text)
    }

    /// Was the fork's `compacted` taken?
    fn is_fork(&self) -> bool {
        self.refused.is_none() && self.has(CANARY) && !self.has(PROMPT)
    }

    /// How often the environment was told.
    fn contexts(&self) -> usize {
        self.sent
            .iter()
            .filter(|item| wire::text(item).starts_with("<environment_context>"))
            .count()
    }
}

impl Stage {
    fn new() -> Option<Self> {
        let binary = codex()?;
        let (home, api) = (Home::new(), Responses::start([Step::text("Done.")]));
        let host = Codex::new(&binary, &home, &api);
        let mut server = host.app_server();
        let thread = server.new_thread(&json!({}));
        server.turn(&thread, PROMPT);
        server.finish();
        let source = host.rollout(&thread);
        let records = rollout::records(&source);
        Some(Self { _home: home, api, host, server: None, source, records, forks: 0 })
    }

    /// The initial context of the source, as it would be kept.
    fn context(&self) -> Vec<Value> {
        rollout::payloads(&self.records, "response_item").into_iter().take(2).collect()
    }

    /// A sound fork that keeps this.
    fn fork(&self, history: &[Value]) -> Vec<Value> {
        let last = |kind: &str| rollout::payloads(&self.records, kind).pop().unwrap();
        let usage = json!({"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0,
            "reasoning_output_tokens": 0, "total_tokens": 500});
        let info = json!({"total_token_usage": usage, "last_token_usage": usage});
        let added = [
            (
                "compacted",
                json!({"message": "", "window_number": 1, "replacement_history": history}),
            ),
            ("world_state", last("world_state")),
            ("turn_context", last("turn_context")),
            ("event_msg", json!({"type": "token_count", "info": info, "rate_limits": null})),
        ];
        let mut records = self.records.clone();
        for (kind, payload) in added {
            let ordinal = records.len();
            records.push(json!({"timestamp": "2026-11-30T08:00:00.000Z", "ordinal": ordinal,
                "type": kind, "payload": payload}));
        }
        records
    }

    /// Writes a rollout under an id of its own, and gives the id.
    fn write(&mut self, records: &[Value]) -> String {
        self.forks += 1;
        let id = format!("01a22bab-57d2-7033-a843-{:012x}", self.forks);
        let old = self.records[0]["payload"]["id"].as_str().unwrap();
        let work = self.host.work().to_str().unwrap();
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        let lines = lines.replace(old, &id).replace("@id@", &id).replace("@cwd@", work);
        let name = format!("rollout-2026-11-30T08-00-00-{id}.jsonl");
        fs::write(self.source.with_file_name(name), lines).unwrap();
        id
    }

    /// Goes on with a rollout for a turn.
    #[track_caller]
    fn resume(&mut self, records: &[Value]) -> Outcome {
        let id = self.write(records);
        if self.forks.is_multiple_of(RESUMES_MAX)
            && let Some(server) = self.server.take()
        {
            server.finish();
        }
        let server = self.server.get_or_insert_with(|| self.host.app_server());
        // Without `excludeTurns` the server also tells the tokens that it read.
        let params = json!({"threadId": id});
        if let Err(error) = server.try_call("thread/resume", &params) {
            return Outcome { refused: Some(error.to_string()), sent: Vec::new(), tokens: None };
        }
        server.turn(&id, "And now?");
        let usage = "thread/tokenUsage/updated";
        let mut told = server.messages().into_iter();
        let told = told.find(|it| it["method"] == usage && it["params"]["threadId"] == id.as_str());
        let requests = self.api.of_kind(Kind::Turn);
        let request = requests.iter().find(|request| request.thread == id).unwrap();
        let (_, sent) = request.input().split_last().unwrap();
        Outcome {
            refused: None,
            sent: sent.to_vec(),
            tokens: told.and_then(|it| it["params"]["tokenUsage"]["last"]["totalTokens"].as_i64()),
        }
    }

    /// Is a history with these items taken?
    #[track_caller]
    fn takes(&mut self, items: &[Value]) -> bool {
        let history = [&[said(CANARY)], items].concat();
        let records = self.fork(&history);
        let outcome = self.resume(&records);
        assert_eq!(outcome.refused, None);
        // Else the record is skipped, and the old conversation is there again.
        assert_ne!(outcome.has(CANARY), outcome.has(PROMPT), "{:?}", outcome.sent);
        outcome.is_fork()
    }

    /// Is a record with this payload (or this whole line) taken?
    #[track_caller]
    fn takes_record(&mut self, kind: &str, payload: &Value) -> bool {
        let mut history = self.context();
        history.push(said(CANARY));
        let mut records = self.fork(&history);
        let count = records.len();
        let at = match kind {
            "session_meta" => 0,
            "compacted" | "record" => count - 4,
            "world_state" => count - 3,
            "turn_context" => count - 2,
            _ => count - 1,
        };
        let mut payload = payload.clone();
        if kind == "world_state" && payload["state"] == json!({}) {
            payload["state"] = records[at]["payload"]["state"].clone();
        }
        let tokens = payload.pointer("/info/last_token_usage/total_tokens").and_then(Value::as_i64);
        if kind == "record" {
            records[at] = payload;
        } else {
            records[at]["payload"] = payload;
        }
        let outcome = self.resume(&records);
        match kind {
            "world_state" | "turn_context" => outcome.is_fork() && outcome.contexts() == 1,
            "token_count" => outcome.tokens.is_some() && outcome.tokens == tokens,
            _ => outcome.is_fork(),
        }
    }
}

#[test]
fn all_that_is_taken_is_taken_at_once() {
    let Some(mut stage) = Stage::new() else { return };
    let table = table("items");
    let mut items = Vec::new();
    for entry in table["items"].as_object().unwrap().values() {
        items.push(entry["item"].clone());
        for [taken, _] in fields(&table, entry) {
            items.extend(taken.iter().map(|change| change.of(&entry["item"])));
        }
    }
    let cases = table["cases"].as_array().unwrap().iter();
    items.extend(cases.filter(|case| case["host"] != "refused").map(|case| case["item"].clone()));
    // It would have the API compact.
    items.retain(|item| item["type"] != "compaction_trigger");
    assert!(items.len() > 1_000, "{}", items.len());
    assert!(stage.takes(&items));
}

#[test]
fn what_is_refused_voids_the_record() {
    let Some(mut stage) = Stage::new() else { return };
    let table = table("items");
    let mut wrong = Vec::new();
    for (name, entry) in table["items"].as_object().unwrap() {
        for [_, refused] in fields(&table, entry) {
            let Some(change) = refused.first() else { continue };
            if stage.takes(&[change.of(&entry["item"])]) {
                wrong.push(format!("{name}{} {}", change.place, change.name));
            }
        }
    }
    for case in table["cases"].as_array().unwrap() {
        if case["host"] == "refused" && stage.takes(&[case["item"].clone()]) {
            wrong.push(case["name"].to_string());
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(stage.forks > 200, "{}", stage.forks);
}

#[test]
fn records_that_are_refused_are_skipped() {
    let Some(mut stage) = Stage::new() else { return };
    let table = table("records");
    let mut wrong = Vec::new();
    for (kind, entry) in table["records"].as_object().unwrap() {
        assert!(stage.takes_record(kind, &entry["item"]), "{kind}");
        for [_, refused] in fields(&table, entry) {
            let Some(change) = refused.first() else { continue };
            if stage.takes_record(kind, &change.of(&entry["item"])) {
                wrong.push(format!("{kind}{} {}", change.place, change.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}
