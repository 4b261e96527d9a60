//! Forks without a host: what the rules decide is what stands in the new history, item for item; what
//! stays keeps its bytes; twice is once; the source is as it was.

use std::fs;
use std::path::{Path, PathBuf};

use compactd_core::escalate::{Held, Occasion, Sizes, Verdict, escalate};
use compactd_core::index::{History, Index};
use compactd_core::record::codex;
use compactd_core::record::json;
use compactd_core::record::{Host, Item};
use compactd_core::rules::{Pins, Profile};
use compactd_core::settings::Settings;
use compactd_fork::{Error, Options, fork};
use compactd_tests::apply::{apply_escalated, normalised};
use compactd_tests::harness::{Home, fixtures};
use compactd_tests::session::{Rng, session};
use serde_json::{Value, json};

use crate::kit::{Case, seeds};

const THREAD: &str = "01a22bab-3f13-7243-b3b3-97275892478f";

fn options(settings: &Settings, pins: &Pins, budget: Option<u64>) -> Options {
    Options {
        home: PathBuf::from("/nowhere"),
        profile: Profile::Standard,
        settings: settings.clone(),
        pins: pins.clone(),
        budget,
        threshold: None,
        dry_run: false,
        in_place: None,
    }
}

/// The items of the model-visible history, as written, by the shortest way there is.
fn history(lines: &[Vec<u8>]) -> Vec<Value> {
    let mut items = Vec::new();
    for line in lines {
        let Ok(record) = serde_json::from_slice::<Value>(line) else { continue };
        match record["type"].as_str() {
            Some("response_item") => items.push(record["payload"].clone()),
            Some("compacted") => {
                if let Some(kept) = record["payload"]["replacement_history"].as_array() {
                    items.clone_from(kept);
                }
            }
            _ => {}
        }
    }
    items
}

fn lines(path: &Path) -> Vec<Vec<u8>> {
    fs::read(path)
        .unwrap()
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// What an item says: calls with their inputs, results with their text, words.
fn said(item: &Value) -> Vec<String> {
    let text = item.to_string();
    let row = json::value(&text).and_then(|raw| codex::item(raw).ok());
    let parts = row.into_iter().flat_map(|row| row.items);
    parts
        .map(|part| match part {
            Item::Text(text) => text.into_owned(),
            Item::Call(call) => format!("{} {:?}", call.id, call.leaves),
            Item::Result(result) => format!("{} {}", result.id, result.text),
            Item::Opaque => "opaque".to_owned(),
        })
        .collect()
}

/// A session that a host could have written, and its file.
fn source(home: &Home, seed: u64, steps: usize) -> (PathBuf, Vec<Vec<u8>>) {
    let session = session(Host::Codex, compactd_tests::session::Kind::Plain, seed, steps);
    let mut records: Vec<Value> =
        session.lines.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect();
    for record in &mut records {
        record["timestamp"] = "2026-11-30T00:00:00.000Z".into();
        let kind = record["payload"]["type"].as_str().unwrap_or_default().to_owned();
        // Old versions wrote objects here, which the host does not take any more.
        if record["payload"]["output"].is_object() {
            let output = &record["payload"]["output"];
            let text = output["content"].as_str().or(output["output"].as_str());
            record["payload"]["output"] =
                text.map_or_else(|| output.to_string(), str::to_owned).into();
        }
        // What the generator leaves out, the host wants.
        if kind == "custom_tool_call" && !record["payload"]["input"].is_string() {
            record["payload"]["input"] = "".into();
        }
    }
    records[0]["payload"] = json!({ "id": THREAD, "session_id": THREAD, "cwd": "/work/app",
        "timestamp": "t", "originator": "test", "cli_version": "0.171.0" });
    let lines: Vec<Vec<u8>> =
        records.iter().map(|record| record.to_string().into_bytes()).collect();
    let path = home.codex(THREAD);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.join(&b'\n')).unwrap();
    (path, lines)
}

/// Forks and holds the result against a pass that is applied to the lines by other means.
fn check(
    path: &Path,
    lines: &[Vec<u8>],
    settings: &Settings,
    pins: &Pins,
    budget: Option<u64>,
) -> Result<bool, Error> {
    let before = fs::read(path).unwrap();
    let made = fork(path, &options(settings, pins, budget))?;
    assert_eq!(fs::read(path).unwrap(), before, "the source has changed");
    let own = self::lines(Path::new(&made.path));
    let new = history(&own);

    let lines = normalised(Host::Codex, lines);
    let mut index = Index::new(Host::Codex, settings);
    for line in &lines {
        index.apply(line, 0);
    }
    index.settle();
    let pass = index.pass(History::Context, Profile::Standard, pins);
    let sizes = Sizes {
        // With what has a size beside its text.
        tokens: Some(made.tokens_before),
        window: Some(u64::MAX),
        budget,
        ..Sizes::of(index.ratio(), pass.chars())
    };
    let escalation = escalate(&pass, &Held::whole(&pass), &sizes, Occasion::default());
    let wanted = match escalation.verdict {
        Verdict::Skip => history(&lines),
        Verdict::Apply | Verdict::Escalate => {
            history(&apply_escalated(Host::Codex, &lines, &pass, &escalation))
        }
    };
    let wanted: Vec<Vec<String>> =
        wanted.iter().map(said).filter(|said| !said.is_empty()).collect();
    let found: Vec<Vec<String>> = new.iter().map(said).filter(|said| !said.is_empty()).collect();
    // The host puts in an output where one is missing, and so does the fork.
    let is_added = |said: &Vec<String>| said.iter().any(|text| text.ends_with(" aborted"));
    let found: Vec<&Vec<String>> = found.iter().filter(|said| !is_added(said)).collect();
    let wanted: Vec<&Vec<String>> = wanted.iter().filter(|said| !is_added(said)).collect();
    let differs = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
    assert_eq!((differs, found.len()), (None, wanted.len()));

    // Items in which nothing went are the source's own bytes.
    let bytes = String::from_utf8(before).unwrap();
    let text = |line: &Vec<u8>| String::from_utf8_lossy(line).into_owned();
    let newest = |line: &String| line.contains("\"type\":\"compacted\"");
    let compacted = own.iter().rev().map(text).find(newest).unwrap();
    let whole = json::value(&compacted).unwrap();
    let items = whole.member("payload").unwrap().member("replacement_history").unwrap();
    for item in items.elements() {
        let is_ours = item.get().contains("by compactd: ") || item.get().contains("\"aborted\"");
        assert!(is_ours || bytes.contains(item.get()), "{}", item.get());
    }

    // Twice is once.
    let again = fork(Path::new(&made.path), &options(settings, pins, budget))?;
    let second = history(&self::lines(Path::new(&again.path)));
    let differs = |(a, b): (&Value, &Value)| (a != b).then(|| format!("{a}\n{b}"));
    assert_eq!(second.iter().zip(&new).find_map(differs), None, "a second fork changed something");
    assert_eq!(second.len(), new.len());
    let gone = made.counters;
    Ok(gone.dropped + gone.truncated + gone.inputs + gone.texts > 0)
}

#[test]
fn generated_threads() {
    let (mut forked, mut pruned, mut refused) = (0, 0, Vec::new());
    for seed in seeds(150) {
        let case = Case::new(seed * 5 + 3, 60, None);
        let mut rng = Rng::new(seed);
        let home = Home::new();
        let (path, lines) = source(&home, seed, 10 + rng.below(60));
        let budget = rng.chance(40).then(|| 1 + rng.below(4_000) as u64);
        match check(&path, &lines, &case.settings, &case.pins, budget) {
            Ok(has_gone) => {
                forked += 1;
                pruned += u32::from(has_gone);
            }
            Err(error) => refused.push(format!("seed {seed}: {error}")),
        }
    }
    println!(
        "{forked} forked, {pruned} of them pruned, {} refused\n{}",
        refused.len(),
        refused.join("\n")
    );
    assert!(forked > 75 && pruned > 50, "{}", refused.join("\n"));
}

#[test]
fn recorded_threads() {
    let mut forked = 0;
    for name in [
        "classic",
        "code-mode",
        "compacted-local",
        "compacted-remote",
        "legacy",
        "subagent",
        "native-fork",
        "revert-segment",
    ] {
        let home = Home::new();
        copy(&fixtures("codex").join(name), &home.join(".codex"));
        let mut files = Vec::new();
        walk(&home.join(".codex"), &mut files);
        for path in files {
            let made = fork(&path, &options(&Settings::default(), &Pins::default(), None));
            let made = made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let records = lines(Path::new(&made.path));
            assert_eq!(made.records, records.len() as u64);
            let again =
                fork(Path::new(&made.path), &options(&Settings::default(), &Pins::default(), None))
                    .unwrap();
            assert_eq!(
                history(&lines(Path::new(&again.path))),
                history(&records),
                "{}",
                path.display()
            );
            forked += 1;
        }
    }
    assert!(forked >= 10);
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::create_dir_all(to).unwrap();
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}
