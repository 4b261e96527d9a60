//! The focus text of the recorded sessions: every row that the index names is found again.

use std::path::PathBuf;

use compactd_core::focus::{MAX_CHARS, MAX_LINE_BYTES, Material};
use compactd_core::index::Index;
use compactd_core::settings::Settings;
use compactd_tests::harness::fixtures;
use compactd_transcript::Transcript;
use compactd_transcript::load::for_each_line;
use compactd_transcript::texts::{line_at, reread};

fn transcripts() -> Vec<PathBuf> {
    let mut folders = vec![fixtures("claude-code"), fixtures("codex"), fixtures("codex-tools")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".jsonl") && name != "inputs.jsonl" {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_wanted_row_is_found_again_and_the_text_fits() {
    let (mut rows, mut texts) = (0, 0);
    for path in transcripts() {
        let mut index: Option<Index> = None;
        let loaded = for_each_line(&path, None, |host, offset, line| {
            let index = index.get_or_insert_with(|| Index::new(host, &Settings::default()));
            index.apply(line, offset);
        });
        let (Some(mut index), Ok(loaded)) = (index, loaded) else { continue };
        index.settle();
        let plan = index.focus_plan();
        let files: Vec<PathBuf> =
            loaded.segments.iter().rev().map(|segment| segment.path.clone()).collect();
        let mut open: Vec<Transcript> =
            files.iter().map(|path| Transcript::open(path).unwrap()).collect();
        for wanted in &plan.rows {
            let mut material = Material::default();
            let is_found = open.iter_mut().any(|file| {
                let line = line_at(file, wanted.offset, MAX_LINE_BYTES).unwrap();
                line.is_some_and(|line| material.take(index.host(), wanted, &line))
            });
            assert!(is_found, "{}: {wanted:?}", path.display());
            rows += 1;
        }
        let text = reread(index.host(), &files, &plan).write(&plan, MAX_CHARS);
        assert_eq!(text, reread(index.host(), &files, &plan).write(&plan, MAX_CHARS));
        if let Some(text) = text {
            assert!(text.chars().count() <= MAX_CHARS, "{text}");
            texts += 1;
        }
    }
    assert!(rows > 200 && texts > 15, "{rows} rows, {texts} texts");
}
