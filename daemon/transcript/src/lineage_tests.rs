//! Tests of chains of rollouts, laid out as the recorded fixtures `native-fork` and
//! `revert-segment` are.

use super::*;
use std::fmt::Write as _;

const ROOT: &str = "01a22bab-7fc4-7621-9bf6-c6757fc8279e";
const FORK: &str = "01a22bab-8802-7ce0-a20c-125250094512";
const SEGMENT: &str = "01a22bab-8bd6-73f3-844f-e549b275bb4c";

pub(crate) struct Home {
    pub(crate) dir: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, second: u32, ids: &str) -> PathBuf {
        let day = self.dir.path().join("sessions/2026/11/30");
        fs::create_dir_all(&day).unwrap();
        day.join(format!("rollout-2026-11-30T08-56-{second:02}-{ids}.jsonl"))
    }

    /// Writes records `from..to`; gives the path and the size up to each ordinal.
    fn put(&self, second: u32, ids: &str, ordinals: std::ops::Range<u64>, base: &str) -> PathBuf {
        let path = self.file(second, ids);
        fs::write(&path, records(ids, ordinals, base)).unwrap();
        path
    }
}

fn records(ids: &str, ordinals: std::ops::Range<u64>, base: &str) -> String {
    let thread = &ids[..36];
    let mut text = String::new();
    for ordinal in ordinals.clone() {
        if ordinal == ordinals.start {
            writeln!(
                text,
                r#"{{"ordinal":{ordinal},"type":"session_meta","payload":{{"id":"{thread}"{base}}}}}"#
            )
            .unwrap();
        } else {
            let payload = format!(r#"{{"ordinal":7,"from":"{ids}"}}"#);
            writeln!(text, r#"{{"ordinal":{ordinal},"type":"event_msg","payload":{payload}}}"#)
                .unwrap();
        }
    }
    text
}

fn base(thread: &str, end: u64, offset: Option<usize>) -> String {
    let offset = offset.map(|o| format!(r#","end_byte_offset":{o}"#)).unwrap_or_default();
    format!(r#","history_base":{{"thread_id":"{thread}","end_ordinal_exclusive":{end}{offset}}}"#)
}

/// The three files of the fixture `revert-segment`: a root, a fork of all of it made before the
/// root was reverted, and the root's second file.
pub(crate) fn put_family(home: &Home) -> [PathBuf; 3] {
    let size = |end| records(ROOT, 0..end, "").len();
    [
        home.put(29, ROOT, 0..90, ""),
        home.put(31, FORK, 90..107, &base(ROOT, 90, Some(size(90)))),
        home.put(32, &format!("{ROOT}_{SEGMENT}"), 73..84, &base(ROOT, 73, Some(size(73)))),
    ]
}

/// The ordinals that the files of a chain give, in order.
fn ordinals(chain: &Chain) -> Vec<u64> {
    let mut all = Vec::new();
    for segment in &chain.segments {
        let mut file = Transcript::open(&segment.path).unwrap();
        LineReader::new()
            .read(&mut file, Cursor::default(), Slice::whole(), |line| {
                if !segment.holds(line.offset, line.bytes) {
                    return ControlFlow::Break(());
                }
                all.push(ordinal(line.bytes).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    all
}

fn follow(path: &Path) -> Chain {
    chain(path, &ThreadFiles::beside(path)).unwrap()
}

#[test]
fn follows_a_fork_and_a_revert_to_the_right_file() {
    let home = Home::new();
    let [root, fork, second] = put_family(&home);
    assert_eq!(ordinals(&follow(&root)), (0..90).collect::<Vec<_>>());
    let chain = follow(&fork);
    assert_eq!(chain.segments[0].path, root, "not the root's newer file");
    assert_eq!(ordinals(&chain), (0..107).collect::<Vec<_>>());
    let chain = follow(&second);
    assert_eq!(chain.segments[0].path, root);
    assert_eq!(ordinals(&chain), (0..84).collect::<Vec<_>>());
    assert_eq!(ThreadFiles::beside(&fork).current(ROOT), Some(second.as_path()));
}

#[test]
fn ordinals_decide_where_offsets_are_missing_or_wrong() {
    for offset in [None, Some(10), Some(1 << 40)] {
        let home = Home::new();
        let root = home.put(29, ROOT, 0..90, "");
        let ids = format!("{ROOT}_{SEGMENT}");
        let second = home.put(32, &ids, 73..84, &base(ROOT, 73, offset));
        let chain = follow(&second);
        assert_eq!(chain.segments[0].path, root);
        assert_eq!(chain.segments[0].end_offset, None);
        assert_eq!(ordinals(&chain), (0..84).collect::<Vec<_>>());
    }
}

#[test]
fn finds_archived_and_packed_parents() {
    let home = Home::new();
    let [root, fork, _] = put_family(&home);
    let archive = home.dir.path().join("archived_sessions");
    fs::create_dir(&archive).unwrap();
    let name = root.file_name().unwrap().to_str().unwrap();
    let bytes = fs::read(&root).unwrap();
    fs::write(archive.join(format!("{name}.zst")), zstd::encode_all(&bytes[..], 3).unwrap())
        .unwrap();
    fs::remove_file(&root).unwrap();
    let chain = follow(&fork);
    assert_eq!(chain.gap, None);
    assert_eq!(ordinals(&chain), (0..107).collect::<Vec<_>>());
}

#[test]
fn a_missing_parent_is_a_gap_and_not_an_error() {
    let home = Home::new();
    let [root, fork, second] = put_family(&home);
    fs::remove_file(&root).unwrap();
    fs::remove_file(&second).unwrap();
    let chain = follow(&fork);
    assert_eq!(ordinals(&chain), (90..107).collect::<Vec<_>>());
    assert_eq!(chain.gap, Some(Gap::Missing { thread: ROOT.to_owned(), end_ordinal: 90 }));
    fs::remove_file(&fork).unwrap();
    assert!(matches!(super::chain(&fork, &ThreadFiles::default()), Err(Error::NotFound { .. })));
}

#[test]
fn cycles_and_endless_chains_end() {
    let home = Home::new();
    let first = home.put(29, ROOT, 10..20, &base(FORK, 40, None));
    home.put(31, FORK, 30..40, &base(ROOT, 20, None));
    let chain = follow(&first);
    assert_eq!(chain.gap, Some(Gap::Cycle { thread: ROOT.to_owned() }));
    assert_eq!(chain.segments.len(), 2);

    let home = Home::new();
    let id = |n: u64| format!("01a22bab-0000-7000-8000-{n:012}");
    for n in 1..100 {
        home.put(30, &id(n), n..n + 1, &base(&id(n - 1), n, None));
    }
    let chain = follow(&home.file(30, &id(99)));
    assert_eq!((chain.segments.len(), chain.gap), (64, Some(Gap::TooDeep)));
}

#[test]
fn an_ordinal_is_a_field_of_the_line_itself() {
    assert_eq!(ordinal(br#"{"payload":{"ordinal":7},"ordinal":3,"x":"\ud83d"}"#), Some(3));
    assert_eq!(ordinal(br#"{"payload":{"ordinal":7}}"#), None);
    assert_eq!(ordinal(br#"{"ordinal":3.0}"#), None);
    assert_eq!(ordinal(br#"{"ordinal":3,"pay"#), None);
}
