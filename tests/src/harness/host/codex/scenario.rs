//! Work that a scripted model does, with direct tools or in code mode: files in the host's working
//! folder, and the steps that look at them and change them.

use serde_json::json;

use super::super::scenario::{ROUND_RESULTS, ROUNDS_RECENT, incident, log, source};
use super::setup::{CODE_MODE, Codex, Config, DIRECT};
use super::step::{Call, Step, patch};

/// How a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tools {
    /// `exec_command` and `apply_patch`.
    Direct,
    /// One tool, `exec`, whose JavaScript calls the others.
    Code,
}

impl Tools {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Direct, Self::Code];

    /// A model that calls tools so.
    #[must_use]
    pub fn model(self) -> &'static str {
        match self {
            Self::Direct => DIRECT,
            Self::Code => CODE_MODE,
        }
    }

    /// A configuration with that model.
    #[must_use]
    pub fn config(self) -> Config {
        Config::default().model(self.model())
    }

    /// A shell command.
    #[must_use]
    pub fn shell(self, command: &str) -> Call {
        match self {
            Self::Direct => Call::shell(command),
            Self::Code => {
                let arguments = json!({"cmd": command});
                Call::code(&format!("text(await tools.exec_command({arguments}));\n"))
            }
        }
    }

    /// A change of files: what stands between the patch's first and last line.
    #[must_use]
    pub fn patch(self, body: &str) -> Call {
        match self {
            Self::Direct => Call::patch(body),
            Self::Code => {
                let patch = json!(patch(body));
                Call::code(&format!("text(await tools.apply_patch({patch}));\n"))
            }
        }
    }
}

/// A word that stands in a file of [`short_work`] and in its answers, and nowhere else.
pub const CANARY: &str = "heron-7713-quartz";
/// What [`short_work`] is asked.
pub const SHORT_PROMPT: &str = "Write a note and check it.";

/// A bit of everything, with thoughts: parallel calls, a file that is written, read, read again,
/// patched and read once more, a command that fails and an output over 8,000 characters. At its end
/// the host believes that 30,000 tokens are in use.
#[must_use]
pub fn short_work(tools: Tools) -> Vec<Step> {
    let change = format!(
        "*** Update File: note.txt\n@@\n-codeword={CANARY}\n+codeword={CANARY}\n+owner=dev\n"
    );
    let write = format!("printf 'codeword={CANARY}\\n' > note.txt; cat note.txt");
    vec![
        Step::calls([tools.shell("ls -la"), tools.shell(&write)]).think("Look first."),
        Step::calls([tools.shell("cat note.txt"), tools.shell("cat no_such_file.txt")]),
        Step::calls([tools.patch(&change)]).say("The owner is missing."),
        Step::calls([tools.shell("seq 1 2000")]),
        Step::calls([tools.shell("cat note.txt")]).think("Is it right now?"),
        Step::text(&format!("The note holds {CANARY} and an owner.")).tokens(30_000),
    ]
}

/// A long piece of work, and what the rules make of it.
#[derive(Debug)]
pub struct Work {
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

/// `rounds` times the same work on files of its own, in two responses with parallel calls, or in
/// code mode in five with one script each:
///
/// | call | what becomes of its result at the end of the work |
/// | --- | --- |
/// | `grep` in a file | removed: unreferenced |
/// | `cat` of the file | removed: superseded by the next read |
/// | `sort` of a log | kept: the model says what stands in it |
/// | `cat` of the file once more | kept: it stands in for the read before it |
/// | patch of the file | removed: unreferenced; in code mode kept: it is shorter than a note |
///
/// Of the two newest rounds everything is kept, except the read that was superseded, of which
/// nothing is promised. `name` keeps the ids and files of several pieces of work in one thread
/// apart; it is letters and digits. 9 rounds have 45 results.
#[must_use]
pub fn codex_work(host: &Codex, tools: Tools, name: &str, rounds: usize) -> Work {
    let mut work =
        Work { steps: Vec::new(), calls: Vec::new(), removed: Vec::new(), kept: Vec::new() };
    for round in 0..rounds {
        let part = format!("{name}{round}");
        let (file, logs) = (format!("src/{part}.py"), format!("logs/{part}.log"));
        host.put(&file, source(&part));
        host.put(&logs, log(&part));
        let id = |what: &str| format!("call_{part}_{what}");
        let (grep, first, sort) = (id("grep"), id("first"), id("sort"));
        let (whole, edit) = (id("whole"), id("edit"));
        let shell = |command: String, id: &str| tools.shell(&command).id(id);
        let looks = [
            shell(format!("grep -n def {file}"), &grep),
            shell(format!("cat {file}"), &first),
            shell(format!("sort {logs}"), &sort),
        ];
        // It names nothing that a result has: that would be a use of it.
        let change = format!(
            "*** Update File: {file}\n@@\n-    return value + 39\n+    return value + 40\n"
        );
        let mends = [shell(format!("cat {file}"), &whole), tools.patch(&change).id(&edit)];
        let names = format!("That is {}; mending it.", incident(&part));
        match tools {
            Tools::Direct => {
                work.steps.push(Step::calls(looks).say("Looking at the next one."));
                work.steps.push(Step::calls(mends).say(&names));
            }
            Tools::Code => {
                let calls = looks.into_iter().chain(mends);
                work.steps.extend(calls.map(|call| Step::calls([call])));
                let mends = work.steps.len() - 2;
                work.steps[mends] = work.steps[mends].clone().say(&names);
            }
        }
        let is_recent = round + ROUNDS_RECENT >= rounds;
        work.kept.extend([&sort, &whole].map(Clone::clone));
        if is_recent {
            work.kept.push(grep.clone());
        } else {
            work.removed.extend([&grep, &first].map(Clone::clone));
        }
        if is_recent || tools == Tools::Code {
            work.kept.push(edit.clone());
        } else {
            work.removed.push(edit.clone());
        }
        work.calls.extend([grep, first, sort, whole, edit]);
    }
    work.steps.push(Step::text("All of it is mended."));
    debug_assert_eq!(work.calls.len(), rounds * ROUND_RESULTS);
    work
}
