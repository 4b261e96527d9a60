//! Work that a scripted model does: files in the host's working folder, and the steps that look at
//! them and change them.

use std::fmt::Write as _;

use serde_json::json;

use super::setup::Host;
use super::step::{Call, Step};

/// Results of one round of [`long_work`].
pub(super) const ROUND_RESULTS: usize = 5;
/// Rounds at the end whose results are too recent for the rules.
pub(super) const ROUNDS_RECENT: usize = 2;

/// A long piece of work, and what the rules make of it.
#[derive(Debug)]
pub struct LongWork {
    /// The model's part; the last step is a text, so that the turn ends.
    pub steps: Vec<Step>,
    /// Ids of all calls, in order.
    pub calls: Vec<String>,
    /// Results that a compaction at the end of the work removes: nothing in them was used later, or
    /// a later read shows the same.
    pub removed: Vec<String>,
    /// Results that it keeps: the model named what they say, or they are the newest read of a file.
    pub kept: Vec<String>,
}

/// Some source text: 40 short functions whose names nobody says.
#[must_use]
pub fn source(name: &str) -> String {
    let mut text = format!("\"\"\"Part {name}.\"\"\"\n");
    for number in 0..40 {
        write!(text, "def {name}_part_{number}(value):\n    return value + {number}\n\n").unwrap();
    }
    text
}

/// A log of 20 lines, one of which has a name that the model says later: [`incident`].
pub(super) fn log(name: &str) -> String {
    let mut text = String::new();
    for line in 0..20 {
        writeln!(text, "{line:02} request of {name} took {} ms", line * 7 % 10).unwrap();
    }
    writeln!(text, "20 {} was seen", incident(name)).unwrap();
    text
}

pub(super) fn incident(name: &str) -> String {
    format!("incident_{name}")
}

/// `rounds` times the same work on files of its own, in two API messages with parallel calls:
///
/// | call | what becomes of its result at the end of the work |
/// | --- | --- |
/// | `grep` in a file | removed: unreferenced |
/// | read of a file's beginning | removed: superseded by the next read |
/// | `sort` of a log | kept: the model says what stands in it |
/// | read of the whole file | kept: it stands in for the read before it |
/// | edit of the file | removed: unreferenced |
///
/// Of the two newest rounds everything is kept, except the read that was superseded, of which
/// nothing is promised. `name` keeps the ids and files of several pieces of work in one session
/// apart; it is letters and digits.
#[must_use]
pub fn long_work(host: &Host, name: &str, rounds: usize) -> LongWork {
    let mut work =
        LongWork { steps: Vec::new(), calls: Vec::new(), removed: Vec::new(), kept: Vec::new() };
    for round in 0..rounds {
        let part = format!("{name}{round}");
        let file = host.put(&format!("src/{part}.py"), source(&part));
        let log = host.put(&format!("logs/{part}.log"), log(&part));
        let id = |what: &str| format!("toolu_{part}_{what}");
        let (grep, head, sort) = (id("grep"), id("head"), id("sort"));
        let (whole, edit) = (id("whole"), id("edit"));
        work.steps.push(
            Step::tools([
                Call::new("Bash", json!({"command": format!("grep -n def {}", file.display())}))
                    .id(&grep),
                Call::new("Read", json!({"file_path": file, "limit": 30})).id(&head),
                Call::new("Bash", json!({"command": format!("sort {}", log.display())})).id(&sort),
            ])
            .say("Looking at the next one."),
        );
        let change = json!({"file_path": file, "old_string": "return value + 39\n",
            "new_string": "return value + 40\n"});
        work.steps.push(
            Step::tools([
                Call::new("Read", json!({"file_path": file})).id(&whole),
                Call::new("Edit", change).id(&edit),
            ])
            .say(&format!("That is {}; mending it.", incident(&part))),
        );
        if round + ROUNDS_RECENT < rounds {
            work.removed.extend([&grep, &head, &edit].map(Clone::clone));
        } else {
            work.kept.extend([&grep, &edit].map(Clone::clone));
        }
        work.kept.extend([&sort, &whole].map(Clone::clone));
        work.calls.extend([grep, head, sort, whole, edit]);
    }
    work.steps.push(Step::text("All of it is mended."));
    debug_assert_eq!(work.calls.len(), rounds * ROUND_RESULTS);
    work
}

/// A small picture, as a PNG file: 2 by 2 points.
pub const PICTURE: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x02\x00\x00\x00\x02\x08\x02\x00\x00\x00\xfd\xd4\x9as\x00\x00\x00\x10IDATx\xdac\xf8\xcf\x00\x04\xff\x19 \x14\x00\x1b\xf2\x03\xfd>\x97]\xa4\x00\x00\x00\x00IEND\xaeB`\x82";
