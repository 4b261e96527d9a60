//! Tests of reading a whole session from a path.

use super::*;
use crate::lineage::tests::{Home, put_family};
use std::fs;

const CLAUDE: &str = r#"{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"x"}}"#;

fn put(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> std::path::PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn load(path: &Path, limit: Option<usize>) -> Result<(Loaded, Vec<String>), Error> {
    let mut lines = Vec::new();
    let keep = |_, _, line: &[u8]| lines.push(String::from_utf8_lossy(line).into_owned());
    let loaded = for_each_line(path, limit, keep)?;
    Ok((loaded, lines))
}

#[test]
fn loads_a_loose_file_with_a_torn_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = put(dir.path(), "my copy.jsonl", format!("{CLAUDE}\n{CLAUDE}\n{{\"ty"));
    let (loaded, lines) = load(&path, None).unwrap();
    assert_eq!((loaded.place.host, loaded.place.key.as_str()), (Host::Claude, "my copy"));
    assert_eq!((lines.len(), loaded.lines, loaded.is_torn), (3, 3, true));
    let (loaded, lines) = load(&path, Some(1)).unwrap();
    assert_eq!((lines, loaded.is_torn), (vec![CLAUDE.to_owned()], false));
    assert_eq!(load(&path, Some(0)).unwrap().0.lines, 0);
}

#[test]
fn loads_the_whole_history_of_a_codex_thread() {
    let home = Home::new();
    let [_, fork, second] = put_family(&home);
    let (loaded, lines) = load(&fork, None).unwrap();
    assert_eq!((loaded.place.host, lines.len(), loaded.segments.len()), (Host::Codex, 107, 2));
    assert_eq!(load(&second, None).unwrap().1.len(), 84);
    assert_eq!(load(&second, Some(80)).unwrap().1, load(&second, None).unwrap().1[..80]);
}

#[test]
fn a_history_without_its_beginning_still_loads() {
    let home = Home::new();
    let [root, fork, second] = put_family(&home);
    fs::remove_file(root).unwrap();
    fs::remove_file(second).unwrap();
    let (loaded, lines) = load(&fork, None).unwrap();
    assert_eq!(lines.len(), 17);
    assert!(loaded.gap.unwrap().to_string().contains("missing"));
}

#[test]
fn says_what_is_wrong_with_other_files() {
    let dir = tempfile::tempdir().unwrap();
    let reason = |name: &str, bytes: &[u8]| match load(&put(dir.path(), name, bytes), None) {
        Err(Error::NotATranscript { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason("a.jsonl", b""), "it is empty");
    assert_eq!(reason("b.jsonl", b"a\0b"), "it holds binary data");
    assert_eq!(reason("c.jsonl", b"# notes\nmore\n"), "its lines are no JSON objects");
    assert_eq!(reason("d.jsonl", b"{\"a\":1}\n"), "no line is a record of Claude Code or Codex");
    assert!(matches!(load(dir.path(), None), Err(Error::IsDirectory { .. })));
    assert!(matches!(load(&dir.path().join("x"), None), Err(Error::NotFound { .. })));
    let torn = put(dir.path(), "e.jsonl.zst", b"\x28\xb5\x2f\xfdrubbish");
    assert!(matches!(load(&torn, None), Err(Error::Zstd { .. })));
}

#[test]
fn an_untypical_file_in_its_place_belongs_to_the_host() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("projects/-w")).unwrap();
    let path = put(dir.path(), "projects/-w/s.jsonl", "");
    let (loaded, _) = load(&path, None).unwrap();
    assert_eq!((loaded.place.host, loaded.place.key.as_str()), (Host::Claude, "s"));
    put(dir.path(), "projects/-w/s.jsonl", "{\"type\":\"mode\"}\n");
    assert_eq!(load(&path, None).unwrap().1.len(), 1);
}
