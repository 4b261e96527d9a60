//! A simple table of tools, for tests of the rescan and for grading without the core's.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::reader::leaves;
use super::terms::regex;
use super::{Action, Ran, Rerunnable, ToolSemantics, Writes};

static PRINT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"\A\s*(?:cat|nl(?: -ba)?|head(?: -n? ?[0-9]+)?|tail(?: -n? ?[0-9]+)?|sed -n ['"]?[0-9,$p; ]+['"]?|bat(?: -p)?)\s+([\w./@+~-]+)\s*(?:\|.*)?\z"#,
    )
});
static WRITE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r">|\bsed -i|\btee |\bmv |\bcp |git (?:checkout|restore|reset|stash|apply|merge|rebase|pull)",
    )
});
static WRITE_ALL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"git (?:checkout|restore|reset|stash|apply|merge|rebase|pull)"));
static FILE: LazyLock<Regex> = LazyLock::new(|| regex(r"[\w./-]*[\w-]\.\w{1,6}"));
static PATCHED: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"\*\*\* (?:Update|Add|Delete) File: ([^\n\\"]+)"#));
static RERUN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\A\s*(?:cd [^&;|]+&&\s*)?(?P<what>ls|git status|git log|git branch|pwd|tree|(?:npm|pnpm|yarn|bun)(?: run)? test|cargo (?:test|nextest)|go test|pytest|python3? -m pytest|make test|npx (?:jest|vitest))\b[^|;&]*(?:2>&1)?\s*(?:\|\s*(?:tail|head)[^|;&]*)?\z",
    )
});
static TEST: LazyLock<Regex> = LazyLock::new(|| regex(r"test|jest"));
static FAILURE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\b(?:failed|failure|failures|fail|error|panicked)\b"));

/// The stand-in's tables.
pub struct Standin;

impl ToolSemantics for Standin {
    fn whole(
        &self,
        _host: &str,
        tool: &str,
        input: &Value,
        cwd: Option<&str>,
        ran: &Ran,
    ) -> Action {
        let mut action = by_input(tool, input, cwd);
        let commands: Vec<Action> =
            ran.commands.iter().map(|one| shell(&one.command, one.cwd.as_deref())).collect();
        if let [one] = commands.as_slice() {
            action.rerunnable = one.rerunnable;
        }
        for command in commands {
            action.reads.extend(command.reads);
            action.writes = match (action.writes, command.writes) {
                (Writes::All, _) | (_, Writes::All) => Writes::All,
                (Writes::Names(mut names), Writes::Names(more)) => {
                    names.extend(more);
                    Writes::Names(names)
                }
                (Writes::None, other) | (other, Writes::None) => other,
            };
        }
        action
    }

    fn shows_failure(&self, text: &str) -> bool {
        FAILURE.is_match(text)
    }
}

fn by_input(tool: &str, input: &Value, cwd: Option<&str>) -> Action {
    let field = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    let file = field("file_path").or_else(|| field("path")).or_else(|| field("notebook_path"));
    match tool {
        "Read" | "read_file" | "view" | "NotebookRead" => {
            return Action { reads: file.into_iter().collect(), ..Action::default() };
        }
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => {
            let writes = Writes::Names(file.into_iter().collect());
            return Action { writes, ..Action::default() };
        }
        _ => {}
    }
    let text = leaves(input).join("\n");
    if text.contains("Begin Patch") {
        let names = PATCHED.captures_iter(&text).map(|file| file[1].to_owned()).collect();
        return Action { writes: Writes::Names(names), ..Action::default() };
    }
    match tool {
        "Bash" | "shell" | "exec_command" | "local_shell" => {
            let workdir = field("workdir");
            shell(&command(input), workdir.as_deref().or(cwd))
        }
        _ => Action::default(),
    }
}

fn command(input: &Value) -> String {
    match input.get("command").or_else(|| input.get("cmd")) {
        Some(Value::String(command)) => command.clone(),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str).collect::<Vec<_>>();
            match words.as_slice() {
                [_, "-lc" | "-c", script] => (*script).to_owned(),
                words => words.join(" "),
            }
        }
        _ => String::new(),
    }
}

fn shell(command: &str, cwd: Option<&str>) -> Action {
    let mut action = Action::default();
    if let Some(file) = PRINT.captures(command) {
        let file = file[1].trim_start_matches("./");
        action.reads.push(match cwd {
            Some(cwd) if !file.starts_with(['/', '~']) => format!("{cwd}/{file}"),
            _ => file.to_owned(),
        });
    }
    if WRITE_ALL.is_match(command) {
        action.writes = Writes::All;
    } else if WRITE.is_match(command) {
        let names = FILE.find_iter(command).map(|file| file.as_str().to_owned()).collect();
        action.writes = Writes::Names(names);
    }
    action.rerunnable = RERUN
        .captures(command)
        .map(|found| Rerunnable { needs_pass: TEST.is_match(&found["what"]), even_if_used: true });
    action
}
