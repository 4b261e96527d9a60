//! What a tool call does: the file it shows, the files it may write, and whether it is cheap to run
//! again. Pure tables and a small shell lexer; linear in the input.

mod class;
mod outcome;
mod patch;
mod paths;
mod reads;
mod shell;
#[cfg(test)]
mod tests;
mod writers;
mod writes;

pub use class::Class;
pub use outcome::shows_failure;
pub use paths::{last, normalise};

use std::borrow::Cow;

use crate::record::{Host, InnerCommand, Leaf};
use reads::Pattern;
use writes::Sink;

/// Commands that are cheap to run again: leading words; an option may stand anywhere behind them.
pub const RERUNNABLE: [&str; 7] =
    ["ls", "pwd", "tree", "git status", "git log", "git branch", "git diff --stat"];

/// Of all these the ones whose output is cut even if it was used later: the reference's own list.
/// The others were measured to lose too much then (`docs/rules.md` §6).
const EVEN_IF_USED: [&str; 4] = ["ls", "git status", "git log", "npm test"];

/// Test runs, cheap to run again once they pass. `npm test` also stands for `npm run test` and
/// `npm run test:unit` (so do those of pnpm, yarn and bun).
pub const RERUNNABLE_TESTS: [&str; 13] = [
    "npm test",
    "pnpm test",
    "yarn test",
    "bun test",
    "cargo test",
    "cargo nextest",
    "go test",
    "pytest",
    "python -m pytest",
    "python3 -m pytest",
    "make test",
    "npx jest",
    "npx vitest",
];

/// What a tool is for. The order is that of [`ToolKind::ALL`]; new kinds go to the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ToolKind {
    Read,
    Edit,
    Shell,
    /// A code mode script (Codex `exec`): what it ran stands in the inner commands.
    Code,
    Search,
    Web,
    Agent,
    Todo,
    Plan,
    Mcp,
    #[default]
    Other,
}

impl ToolKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Read,
        Self::Edit,
        Self::Shell,
        Self::Code,
        Self::Search,
        Self::Web,
        Self::Agent,
        Self::Todo,
        Self::Plan,
        Self::Mcp,
        Self::Other,
    ];
}

/// The files a call may write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Writes {
    #[default]
    None,
    /// Last path components, sorted.
    Names(Vec<String>),
    /// Any file.
    All,
}

impl Writes {
    /// A file of this name may be written.
    #[must_use]
    pub fn may_touch(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Names(names) => names.binary_search_by(|n| n.as_str().cmp(name)).is_ok(),
            Self::All => true,
        }
    }
}

/// A call that is cheap to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rerunnable {
    /// Only if its output shows no failure ([`shows_failure`]).
    pub needs_pass: bool,
    /// Also if its output was used later.
    pub even_if_used: bool,
}

/// What a call does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Action {
    pub kind: ToolKind,
    /// The one file it shows, normalised.
    pub read: Option<String>,
    /// Code mode: the other files that it shows.
    pub also: Vec<String>,
    /// Code mode: it may show something else beside these files.
    pub partial: bool,
    pub writes: Writes,
    pub rerunnable: Option<Rerunnable>,
    /// Code mode: the script calls other tools than shell commands.
    pub mixed: bool,
    /// Code mode: the cell of the script that this call waits for.
    pub cell: Option<String>,
    /// What kind of output it brings.
    pub class: Class,
}

impl Action {
    fn of(kind: ToolKind) -> Self {
        Self { kind, class: class::of_kind(kind), ..Self::default() }
    }
}

/// A failed call of this kind may have written all the same.
#[must_use]
pub fn writes_despite_error(kind: ToolKind) -> bool {
    matches!(kind, ToolKind::Shell | ToolKind::Code | ToolKind::Agent | ToolKind::Mcp)
}

/// The rules for tool calls, with the lists of re-runnable commands.
#[derive(Debug, Clone)]
pub struct Tools {
    rerunnable: Vec<Pattern>,
    tests: Vec<Pattern>,
}

impl Default for Tools {
    fn default() -> Self {
        Self::new::<&str>(&[], &[])
    }
}

impl Tools {
    /// The built-in lists ([`RERUNNABLE`], [`RERUNNABLE_TESTS`]) and what the person adds to them.
    #[must_use]
    pub fn new<S: AsRef<str>>(rerunnable: &[S], tests: &[S]) -> Self {
        let patterns = |built_in: &[&str], more: &[S]| {
            let built_in = built_in
                .iter()
                .filter_map(|entry| Pattern::new(entry, EVEN_IF_USED.contains(entry)));
            let more = more.iter().filter_map(|entry| Pattern::new(entry.as_ref(), true));
            built_in.chain(more).collect()
        };
        Self {
            rerunnable: patterns(&RERUNNABLE, rerunnable),
            tests: patterns(&RERUNNABLE_TESTS, tests),
        }
    }

    /// What a call does, by its tool and input.
    #[must_use]
    pub fn action(&self, host: Host, tool: &str, leaves: &[Leaf<'_>], cwd: Option<&str>) -> Action {
        let kind = kind(tool);
        let path = || {
            ["file_path", "notebook_path", "path", "filePath", "target_file"]
                .iter()
                .find_map(|key| leaf(leaves, key))
                .filter(|path| !path.is_empty())
        };
        let short = tool.rsplit("__").next().unwrap_or(tool);
        let mut out = Action::of(kind);
        match kind {
            ToolKind::Agent if host == Host::Codex && short == "wait" => {
                if let Some(cell) = leaf(leaves, "cell_id") {
                    let mixed = true; // what else the script does is not said here
                    out = Action { mixed, class: Class::None, ..Action::of(ToolKind::Code) };
                    out.cell = Some(cell.to_owned());
                }
            }
            ToolKind::Read => out.read = path().map(|path| normalise(path, cwd)),
            ToolKind::Edit if short == "apply_patch" => out.writes = patched(leaves),
            ToolKind::Edit if views(short, leaves) => {
                out = Action::of(ToolKind::Read);
                out.read = path().map(|path| normalise(path, cwd));
            }
            ToolKind::Edit => {
                out.writes =
                    path().map_or(Writes::All, |path| Writes::Names(vec![last(path).to_owned()]));
            }
            ToolKind::Mcp if edits(short) => {
                if let Some(path) = path() {
                    out.writes = Writes::Names(vec![last(path).to_owned()]);
                }
            }
            ToolKind::Shell if short == "write_stdin" => {
                let typed = leaf(leaves, "chars").unwrap_or_default();
                out.writes = self.script(&shell::parse(typed), None).writes;
                // What a session says once, it does not say again.
                out.class = Class::None;
            }
            ToolKind::Shell => {
                let script = leaves.iter().find(|leaf| leaf.depth == 0);
                if let Some(script) = script.filter(|_| host == Host::Codex && short == "exec") {
                    return code(&script.text);
                }
                let dir = ["workdir", "working_directory", "cwd"]
                    .iter()
                    .find_map(|key| leaf(leaves, key))
                    .map(|dir| normalise(dir, cwd));
                if let Some(command) = command(leaves) {
                    out = self.script(&shell::parse(&command), dir.as_deref().or(cwd));
                }
            }
            ToolKind::Search if matches!(short, "LS" | "ls") => {
                let listed = self.rerunnable.iter().any(|pattern| pattern.matches(&["ls"], false));
                out.rerunnable =
                    listed.then_some(Rerunnable { needs_pass: false, even_if_used: true });
            }
            _ => {}
        }
        out
    }

    /// What a call does in which all this ran: the call's own action and theirs as one. It shows the
    /// files that its commands show, and is cheap to run again only if one command ran and nothing
    /// else. Of what `loose` holds it is not sure that it ran in this call: of it only the writes count.
    #[must_use]
    pub fn inner(
        &self,
        outer: Action,
        ran: &[InnerCommand<'_>],
        loose: &[InnerCommand<'_>],
    ) -> Action {
        let mut sink = Sink::default();
        sink.add(&outer.writes);
        for inner in loose {
            inner.writes.iter().for_each(|path| sink.name(last(path)));
            sink.add(&self.command(inner).writes);
        }
        let mut single = None;
        let mut count = 0_usize;
        let mut classes = Vec::new();
        let mut reads: Vec<String> = Vec::new();
        let mut partial = partial_beside(&outer) || !loose.is_empty();
        for inner in ran {
            inner.writes.iter().for_each(|path| sink.name(last(path)));
            if inner.command.is_empty() {
                partial = true;
                continue;
            }
            let action = self.command(inner);
            sink.add(&action.writes);
            classes.push(action.class);
            match &action.read {
                Some(path) if reads.contains(path) => {}
                Some(path) => reads.push(path.clone()),
                None => partial = true,
            }
            single = Some(action);
            count = count.saturating_add(1);
        }
        let alone = count == 1 && loose.is_empty() && !partial_beside(&outer);
        let single = single.filter(|_| alone);
        let mut reads = reads.into_iter();
        Action {
            kind: outer.kind,
            read: reads.next().or(outer.read),
            also: reads.collect(),
            partial,
            rerunnable: single.and_then(|action| action.rerunnable).or(outer.rerunnable),
            writes: sink.finish(),
            mixed: outer.mixed,
            cell: outer.cell,
            class: if outer.mixed {
                Class::None
            } else {
                class::of_all(classes).unwrap_or(outer.class)
            },
        }
    }

    /// What a command does that the host reported.
    fn command(&self, inner: &InnerCommand<'_>) -> Action {
        let script = shell::parse(&inner.command);
        let mut action = self.script(&script, inner.cwd.as_deref());
        if let ([one], [path], true) =
            (script.commands.as_slice(), inner.reads.as_slice(), action.read.is_none())
        {
            let writes = action.writes != Writes::None || !one.redirects.is_empty();
            if !writes && !script.compound {
                action.read = Some(normalise(path, inner.cwd.as_deref()));
            }
        }
        action
    }

    fn script(&self, script: &shell::Script, cwd: Option<&str>) -> Action {
        let mut sink = Sink::default();
        writes::script(script, &mut sink, 0);
        let mut out = Action { writes: sink.finish(), ..Action::of(ToolKind::Shell) };
        out.class = class::of_script(script);
        let line = if out.writes == Writes::None { reads::line(script) } else { None };
        let Some(line) = line else { return out };
        out.read = line.read(cwd);
        if line.shortened_at_most() {
            let words = reads::canonical(&line.main.words);
            let listed = |list: &[Pattern], needs_pass: bool| {
                list.iter()
                    .filter(|pattern| pattern.matches(&words, needs_pass))
                    .map(|pattern| Rerunnable { needs_pass, even_if_used: pattern.even_if_used })
                    .max_by_key(|found| found.even_if_used)
            };
            out.rerunnable = listed(&self.rerunnable, false).or_else(|| listed(&self.tests, true));
        }
        out
    }
}

/// A script does something by itself beside the commands that are reported.
fn partial_beside(outer: &Action) -> bool {
    outer.mixed || outer.writes != Writes::None
}

fn leaf<'a>(leaves: &'a [Leaf<'_>], key: &str) -> Option<&'a str> {
    leaves
        .iter()
        .find(|leaf| leaf.string && leaf.depth <= 1 && leaf.key == key)
        .map(|leaf| &*leaf.text)
}

/// The shell text of a call: a string, or a list of arguments (depth 2) of which `bash -lc X` is X.
fn command<'a>(leaves: &'a [Leaf<'_>]) -> Option<Cow<'a, str>> {
    let named = |leaf: &&Leaf<'_>| leaf.string && matches!(&*leaf.key, "command" | "cmd");
    let mut all = leaves.iter().filter(named);
    let first = all.next()?;
    if first.depth <= 1 {
        return Some(Cow::Borrowed(&*first.text));
    }
    let argv: Vec<&str> = std::iter::once(first)
        .chain(all)
        .filter(|l| l.depth == first.depth)
        .map(|l| &*l.text)
        .collect();
    if let [shell, option, script, ..] = argv.as_slice() {
        let shell = matches!(last(shell), "bash" | "sh" | "zsh" | "dash" | "ksh");
        if shell && option.starts_with('-') && option.ends_with('c') {
            return Some(Cow::Borrowed(script));
        }
    }
    let quoted: Vec<String> =
        argv.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    Some(Cow::Owned(quoted.join(" ")))
}

fn patched(leaves: &[Leaf<'_>]) -> Writes {
    let mut sink = Sink::default();
    let mut found = false;
    for leaf in leaves {
        found |= patch::names(&leaf.text, &mut sink);
    }
    sink.all |= !found;
    sink.finish()
}

/// A code mode script by itself: its commands are reported by the host.
fn code(script: &str) -> Action {
    let calls = patch::calls(script);
    let mut sink = Sink::default();
    if calls.patch {
        sink.all |= !patch::names(script, &mut sink);
    }
    let mixed = calls.others || calls.patch;
    let class = if mixed { Class::None } else { Class::Shell };
    Action { writes: sink.finish(), mixed, class, ..Action::of(ToolKind::Code) }
}

/// `str_replace_based_edit_tool` with the command `view`.
fn views(tool: &str, leaves: &[Leaf<'_>]) -> bool {
    tool.starts_with("str_replace") && leaf(leaves, "command") == Some("view")
}

fn edits(tool: &str) -> bool {
    kind(tool) == ToolKind::Edit
}

/// The kind of a tool by its name.
#[must_use]
pub fn kind(tool: &str) -> ToolKind {
    if tool.starts_with("mcp__") {
        return ToolKind::Mcp;
    }
    match tool.rsplit("__").next().unwrap_or(tool) {
        "Read" | "NotebookRead" | "read" | "read_file" | "view" | "view_image" => ToolKind::Read,
        "Edit"
        | "Write"
        | "MultiEdit"
        | "NotebookEdit"
        | "edit"
        | "write"
        | "multiedit"
        | "apply_patch"
        | "str_replace_based_edit_tool"
        | "str_replace_editor"
        | "create_file"
        | "write_file"
        | "edit_file"
        | "str_replace" => ToolKind::Edit,
        "Bash" | "bash" | "shell" | "local_shell" | "local_shell_call" | "exec_command"
        | "exec" | "container.exec" | "shell_command" | "write_stdin" | "BashOutput"
        | "KillBash" | "KillShell" | "Monitor" | "PowerShell" => ToolKind::Shell,
        "Grep" | "Glob" | "LS" | "grep" | "glob" | "ls" | "list_dir" | "grep_files" => {
            ToolKind::Search
        }
        "WebFetch" | "WebSearch" | "web_search" | "webfetch" => ToolKind::Web,
        "Agent" | "Task" | "spawn_agent" | "send_input" | "wait_agent" | "wait" | "close_agent"
        | "resume_agent" | "SendMessage" | "send_message" | "followup_task" | "interrupt_agent"
        | "list_agents" => ToolKind::Agent,
        "TodoWrite" | "TodoRead" | "update_plan" | "TaskCreate" | "TaskUpdate" | "TaskList"
        | "TaskGet" => ToolKind::Todo,
        "ExitPlanMode" | "EnterPlanMode" | "exit_plan_mode" => ToolKind::Plan,
        _ => ToolKind::Other,
    }
}
