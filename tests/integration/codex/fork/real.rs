//! Real rollouts, of old versions and odd ones too, if there are some: a folder of transcripts in
//! `COMPACTD_CORPORA`. Each is forked and resumed by the host, or refused with a reason.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use compactd_tests::harness::Home;
use compactd_tests::harness::host::codex;
use compactd_tests::harness::host::codex::wire::plain;
use compactd_tests::harness::host::codex::{Codex, Kind, Responses, Step, rollout};
use serde_json::Value;

use super::kit::{Fork, compactctl};

#[test]
fn every_one_forks_or_is_refused_with_a_reason() {
    let Some(codex) = codex() else { return };
    let Some(corpora) = std::env::var_os("COMPACTD_CORPORA").map(PathBuf::from) else {
        println!("skipped: COMPACTD_CORPORA names no folder of transcripts");
        return;
    };
    let (home, api) = (Home::new(), Responses::start([]));
    let host = Codex::new(&codex, &home, &api);
    let mut files: Vec<PathBuf> =
        fs::read_dir(corpora.join("codex")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut forked = 0;
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy();
        let source = home.join(name.trim_end_matches(".zst"));
        fs::write(&source, with_our_provider(file)).unwrap();
        let output = compactctl(&home, &host, &["fork", source.to_str().unwrap(), "--json"]);
        if !output.status.success() {
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.starts_with("error: ") && said.contains("\nhint: "), "{said}");
            println!("{name}: {}", said.lines().next().unwrap_or_default());
            continue;
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = |key: &str| answer[key].as_u64().unwrap();
        let (before, after) = (number("tokens_before"), number("tokens_after"));
        assert!(after <= before, "{name}");
        println!("{name}: {before} -> {after} tokens, {} freed", before - after);
        let fork = Fork {
            thread: answer["thread_id"].as_str().unwrap().into(),
            path: answer["path"].as_str().unwrap().into(),
            answer,
        };
        goes_on(&host, &fork);
        forked += 1;
    }
    // The rest are files that the host itself could not go on with.
    assert!(forked * 10 >= files.len() * 8, "{forked} of {} files", files.len());
}

/// The host makes one request, with the whole history of the fork in one piece.
#[track_caller]
fn goes_on(host: &Codex, fork: &Fork) {
    let history: Vec<Value> = fork.history().iter().map(bare).collect();
    host.api().script([Step::text("resumed")]);
    let run = host.resume(&fork.thread, "Go on.").good();
    assert_eq!(run.kinds(), [Kind::Turn], "{}", fork.path.display());
    let sent: Vec<Value> = run.last().input().iter().map(bare).collect();
    let is_whole = sent.windows(history.len()).any(|window| window == history);
    assert!(is_whole, "{}: the history was not sent as it is", fork.path.display());
    // Old versions kept no world state: then the host says its initial context once more.
    let records = rollout::records(&fork.path);
    let has_world = records.iter().any(|record| record["type"] == "world_state");
    assert!(has_world || sent.len() > history.len() + 1);
}

/// An item without what the host leaves out or fills in with nothing.
fn bare(item: &Value) -> Value {
    let mut item = plain(item);
    if let Some(fields) = item.as_object_mut() {
        fields.retain(|key, value| !value.is_null() && key != "id");
    }
    item
}

/// The lines of a rollout, as if it were of the provider that the tests have.
fn with_our_provider(file: &Path) -> String {
    let mut text = String::new();
    let file = fs::File::open(file).unwrap();
    zstd::Decoder::new(file).unwrap().read_to_string(&mut text).unwrap();
    text.replacen(r#""model_provider":"openai""#, r#""model_provider":"mock""#, 1)
}
