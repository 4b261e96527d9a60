//! Tests of the line reader, alone and together with file identity against a model.

use super::*;
use crate::identity::{Change, Identity, compare};
use proptest::prelude::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s.jsonl")
    }
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Reads to the end in slices; gives the lines and the sum of what the calls did.
fn read_on(path: &Path, from: Cursor, slice: Slice) -> (Vec<(u64, Vec<u8>)>, Progress) {
    let (mut reader, mut file) = (LineReader::new(), Transcript::open(path).unwrap());
    let (mut lines, mut sum) = (Vec::new(), Progress { cursor: from, ..Progress::default() });
    loop {
        let step = reader
            .read(&mut file, sum.cursor, slice, |line| {
                lines.push((line.offset, line.bytes.to_vec()));
                ControlFlow::Continue(())
            })
            .unwrap();
        sum.lines += step.lines;
        sum.too_long += step.too_long;
        (sum.cursor, sum.torn_bytes) = (step.cursor, step.torn_bytes);
        if !step.has_more {
            return (lines, sum);
        }
    }
}

fn split(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut lines = Vec::new();
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if let Some(line) = line.strip_suffix(b"\n") {
            lines.push((offset as u64, line.to_vec()));
        }
        offset += line.len();
    }
    lines
}

#[test]
fn gives_complete_lines_and_resumes_at_the_torn_one() {
    let scratch = Scratch::new();
    append(&scratch.path(), b"one\n\n{\"a\":1}");
    let (lines, progress) = read_on(&scratch.path(), Cursor::default(), Slice::whole());
    assert_eq!(lines, [(0, b"one".to_vec()), (4, Vec::new())]);
    assert_eq!((progress.cursor, progress.torn_bytes), (Cursor::at(5), 7));
    append(&scratch.path(), b",\nfour\n");
    let (lines, progress) = read_on(&scratch.path(), progress.cursor, Slice::whole());
    assert_eq!(lines, [(5, b"{\"a\":1},".to_vec()), (14, b"four".to_vec())]);
    assert_eq!((progress.cursor, progress.torn_bytes), (Cursor::at(19), 0));
}

#[test]
fn gives_the_torn_line_only_when_asked_and_stays_before_it() {
    let scratch = Scratch::new();
    append(&scratch.path(), b"one\ntw");
    let (lines, progress) = read_on(&scratch.path(), Cursor::default(), Slice::whole().with_torn());
    assert_eq!(lines, [(0, b"one".to_vec()), (4, b"tw".to_vec())]);
    assert_eq!(progress.cursor, Cursor::at(4));
}

#[test]
fn a_slice_ends_with_a_line_and_a_break_too() {
    let scratch = Scratch::new();
    append(&scratch.path(), b"one\ntwo\nthree\n");
    let (mut reader, mut file) = (LineReader::new(), Transcript::open(&scratch.path()).unwrap());
    let go = |_: Line<'_>| ControlFlow::Continue(());
    let step = reader.read(&mut file, Cursor::default(), Slice::of(5), go).unwrap();
    assert_eq!((step.lines, step.cursor, step.has_more), (2, Cursor::at(8), true));
    let stop = |_: Line<'_>| ControlFlow::Break(());
    let step = reader.read(&mut file, Cursor::default(), Slice::whole(), stop).unwrap();
    assert_eq!((step.lines, step.cursor, step.has_more), (1, Cursor::at(4), true));
}

#[test]
fn a_line_over_the_limit_is_counted_and_never_held() {
    let scratch = Scratch::new();
    let huge = vec![b'x'; MAX_LINE_BYTES * 2];
    let whole = |path: &Path, cursor, slice| {
        let (lines, progress) = read_on(path, cursor, slice);
        (lines.len(), progress)
    };
    append(&scratch.path(), b"one\n");
    append(&scratch.path(), &huge);
    let (lines, torn) = whole(&scratch.path(), Cursor::default(), Slice::of(1 << 20));
    assert_eq!((lines, torn.too_long, torn.cursor.offset), (1, 0, 4));
    assert_eq!(torn.torn_bytes, huge.len() as u64);
    append(&scratch.path(), &huge);
    append(&scratch.path(), b"\ntwo\n");
    let (lines, rest) = whole(&scratch.path(), torn.cursor, Slice::of(1 << 20));
    assert_eq!((lines, rest.too_long), (1, 1));
    assert_eq!(rest.cursor, Cursor::at(9 + 2 * huge.len() as u64));
    let (lines, all) = whole(&scratch.path(), Cursor::default(), Slice::whole());
    assert_eq!((lines, all.too_long), (2, 1));
}

#[test]
fn the_limit_is_exact() {
    let scratch = Scratch::new();
    for (extra, lines, too_long) in [(0, 1, 0), (1, 0, 1)] {
        let mut line = vec![b'x'; MAX_LINE_BYTES + extra];
        line.push(b'\n');
        fs::write(scratch.path(), &line).unwrap();
        let (_, progress) = read_on(&scratch.path(), Cursor::default(), Slice::whole());
        assert_eq!((progress.lines, progress.too_long), (lines, too_long));
    }
}

#[test]
fn a_buffer_that_grew_does_not_stay() {
    let scratch = Scratch::new();
    append(&scratch.path(), &vec![b'x'; 4 << 20]);
    append(&scratch.path(), b"\n");
    let mut reader = LineReader::new();
    let mut file = Transcript::open(&scratch.path()).unwrap();
    let mut length = 0;
    let keep = |line: Line<'_>| {
        length = line.bytes.len();
        ControlFlow::Continue(())
    };
    reader.read(&mut file, Cursor::default(), Slice::whole(), keep).unwrap();
    assert_eq!((length, reader.buffer.len()), (4 << 20, 0));
}

#[test]
fn a_packed_file_reads_the_same_in_slices() {
    let scratch = Scratch::new();
    let mut bytes = Vec::new();
    for number in 0..20_000 {
        bytes.extend_from_slice(format!("{{\"n\":{number}}}\n").as_bytes());
    }
    bytes.extend(vec![b'y'; 500_000]);
    bytes.extend(b"\nend\n");
    let path = scratch.dir.path().join("s.jsonl.zst");
    fs::write(&path, zstd::encode_all(&bytes[..], 3).unwrap()).unwrap();
    let (lines, progress) = read_on(&path, Cursor::default(), Slice::of(10_000));
    assert_eq!(lines, split(&bytes));
    assert_eq!(progress.cursor, Cursor::at(bytes.len() as u64));
    let (rest, _) = read_on(&path, Cursor::at(lines[19_999].0), Slice::whole());
    assert_eq!(rest, lines[19_999..]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_slices_split_at_newlines(
        parts in prop::collection::vec(
            prop_oneof![
                Just(b"\n".to_vec()),
                prop::collection::vec(any::<u8>(), 0..40),
                (1_usize..300_000).prop_map(|length| vec![b'x'; length]),
            ],
            0..12,
        ),
        max_bytes in 0_u64..400_000,
    ) {
        let scratch = Scratch::new();
        let bytes = parts.concat();
        fs::write(scratch.path(), &bytes).unwrap();
        let (lines, progress) = read_on(&scratch.path(), Cursor::default(), Slice::of(max_bytes));
        prop_assert_eq!(progress.cursor.offset + progress.torn_bytes, bytes.len() as u64);
        prop_assert_eq!(lines, split(&bytes));
    }
}

/// One thing that happens to a file, or a look at it.
#[derive(Debug, Clone)]
enum Op {
    Append(Vec<usize>),
    Torn(usize),
    EndLine,
    Cut(usize),
    Rewrite(Vec<usize>),
    ReplaceByRename(Vec<usize>),
    MoveAway,
    MoveBack,
    Delete,
    Read { max_bytes: u64 },
    ReadAll,
}

fn op() -> impl Strategy<Value = Op> {
    let lengths = || prop::collection::vec(0_usize..700, 0..5);
    prop_oneof![
        6 => lengths().prop_map(Op::Append),
        3 => (1_usize..600).prop_map(Op::Torn),
        1 => (130_000_usize..300_000).prop_map(Op::Torn),
        3 => Just(Op::EndLine),
        2 => (0_usize..3_000).prop_map(Op::Cut),
        1 => lengths().prop_map(Op::Rewrite),
        1 => lengths().prop_map(Op::ReplaceByRename),
        1 => Just(Op::MoveAway),
        1 => Just(Op::MoveBack),
        1 => Just(Op::Delete),
        4 => (0_u64..2_000).prop_map(|max_bytes| Op::Read { max_bytes }),
        6 => Just(Op::ReadAll),
    ]
}

/// The file on disk, and what should be in it.
struct Model {
    scratch: Scratch,
    content: Option<Vec<u8>>,
    away: Option<Vec<u8>>,
    serial: u64,
}

impl Model {
    /// Text that occurs nowhere else.
    fn text(&mut self, length: usize) -> Vec<u8> {
        self.serial += 1;
        let unit = format!("<{}>", self.serial);
        unit.bytes().cycle().take(length.max(unit.len())).collect()
    }

    fn lines(&mut self, lengths: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for length in lengths {
            bytes.extend(self.text(*length));
            bytes.push(b'\n');
        }
        bytes
    }

    fn add(&mut self, bytes: &[u8]) {
        append(&self.scratch.path(), bytes);
        self.content.get_or_insert_default().extend(bytes);
    }

    fn apply(&mut self, op: &Op) {
        let path = self.scratch.path();
        let aside = path.with_extension("aside");
        match op {
            Op::Append(lengths) => {
                let bytes = self.lines(lengths);
                self.add(&bytes);
            }
            Op::Torn(length) => {
                let bytes = self.text(*length);
                self.add(&bytes);
            }
            Op::EndLine => self.add(b"\n"),
            Op::Cut(bytes) => {
                if let Some(content) = &mut self.content {
                    content.truncate(content.len().saturating_sub(*bytes));
                    let file = OpenOptions::new().write(true).open(&path).unwrap();
                    file.set_len(content.len() as u64).unwrap();
                }
            }
            Op::Rewrite(lengths) | Op::ReplaceByRename(lengths) => {
                let bytes = self.lines(lengths);
                if matches!(op, Op::Rewrite(_)) {
                    fs::write(&path, &bytes).unwrap();
                } else {
                    fs::write(path.with_extension("new"), &bytes).unwrap();
                    fs::rename(path.with_extension("new"), &path).unwrap();
                }
                self.content = Some(bytes);
            }
            Op::MoveAway => {
                if let Some(content) = self.content.take() {
                    fs::rename(&path, &aside).unwrap();
                    self.away = Some(content);
                }
            }
            Op::MoveBack => {
                if let Some(content) = self.away.take() {
                    fs::rename(&aside, &path).unwrap();
                    self.content = Some(content);
                }
            }
            Op::Delete => {
                if self.content.take().is_some() {
                    fs::remove_file(&path).unwrap();
                }
            }
            Op::Read { .. } | Op::ReadAll => {}
        }
    }
}

/// Follows a path the way the daemon does.
#[derive(Default)]
struct Tail {
    reader: LineReader,
    identity: Option<Identity>,
    cursor: Cursor,
    /// Since the file was new to us.
    given: Vec<(u64, Vec<u8>)>,
}

impl Tail {
    fn forget(&mut self) {
        self.identity = None;
        self.cursor = Cursor::default();
        self.given.clear();
    }

    fn read(&mut self, path: &Path, slice: Slice) {
        loop {
            let Ok(mut file) = Transcript::open(path) else { return self.forget() };
            match self.identity.as_ref().map(|before| compare(before, &file).unwrap()) {
                None | Some(Change::Same | Change::Grown) => {}
                Some(Change::Truncated | Change::Replaced | Change::Gone) => self.forget(),
            }
            let given = &mut self.given;
            let progress = self
                .reader
                .read(&mut file, self.cursor, slice, |line| {
                    given.push((line.offset, line.bytes.to_vec()));
                    ControlFlow::Continue(())
                })
                .unwrap();
            self.cursor = progress.cursor;
            self.identity = Some(Identity::take(&file, self.cursor.offset).unwrap());
            if !progress.has_more || slice.max_bytes < u64::MAX {
                return;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whenever the file rests and was read to its end, exactly its complete lines were given
    /// since the file was new: none lost, none twice, none torn.
    #[test]
    fn every_complete_line_is_given_once_per_identity(
        program in prop::collection::vec(op(), 1..40),
    ) {
        let scratch = Scratch::new();
        let mut model = Model { scratch, content: None, away: None, serial: 0 };
        let mut tail = Tail::default();
        for op in program.iter().chain([&Op::ReadAll]) {
            model.apply(op);
            let path = model.scratch.path();
            match op {
                Op::Read { max_bytes } => tail.read(&path, Slice::of(*max_bytes)),
                Op::ReadAll => {
                    tail.read(&path, Slice::whole());
                    prop_assert_eq!(&tail.given, &split(model.content.as_deref().unwrap_or(b"")));
                }
                _ => {}
            }
        }
    }
}
