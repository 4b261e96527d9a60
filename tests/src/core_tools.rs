//! What a tool call does, for the rescan: the one thing it shares with the core (`docs/rules.md` §5).

use std::borrow::Cow;

use compactd_core::record::{Host, InnerCommand, Leaf};
use compactd_core::tools::{self, ToolKind, Tools};
use serde_json::Value;

use crate::rescan;

/// The core's tables behind the rescan's trait.
#[derive(Debug, Default)]
pub struct CoreTools(Tools);

impl rescan::ToolSemantics for CoreTools {
    fn whole(
        &self,
        host: &str,
        tool: &str,
        input: &Value,
        cwd: Option<&str>,
        ran: &rescan::Ran,
    ) -> rescan::Action {
        let outer = self.whole_action(host, tool, input, cwd);
        if outer.kind != ToolKind::Code {
            return convert(outer);
        }
        convert(self.0.inner(outer, &own(&ran.commands), &own(&ran.loose)))
    }

    fn shows_failure(&self, text: &str) -> bool {
        tools::shows_failure(text)
    }

    fn is_edit_tool(&self, tool: &str) -> bool {
        !tools::writes_despite_error(tools::kind(tool)) && tool != "exec"
    }
}

impl CoreTools {
    fn whole_action(
        &self,
        host: &str,
        tool: &str,
        input: &Value,
        cwd: Option<&str>,
    ) -> tools::Action {
        let host = Host::from_name(host).unwrap_or(Host::Claude);
        let mut leaves = Vec::new();
        collect(input, "", 0, &mut leaves);
        self.0.action(host, tool, &leaves, cwd)
    }
}

/// The leaves of an input as the core's readers give them; the order of keys is not theirs.
fn collect<'a>(value: &'a Value, key: &'a str, depth: u8, leaves: &mut Vec<Leaf<'a>>) {
    let mut leaf = |string, text| {
        leaves.push(Leaf { key: Cow::Borrowed(key), depth, string, text });
    };
    match value {
        Value::String(text) => leaf(true, Cow::Borrowed(text.as_str())),
        Value::Number(number) => leaf(false, Cow::Owned(number.to_string())),
        Value::Array(values) => {
            for value in values {
                collect(value, key, depth.saturating_add(1), leaves);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(value, key, depth.saturating_add(1), leaves);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn own(commands: &[rescan::InnerCommand]) -> Vec<InnerCommand<'_>> {
    commands
        .iter()
        .map(|command| InnerCommand {
            id: Cow::Borrowed(&command.id),
            cwd: command.cwd.as_deref().map(Cow::Borrowed),
            command: Cow::Borrowed(&command.command),
            reads: command.reads.iter().map(|path| Cow::Borrowed(path.as_str())).collect(),
            writes: command.writes.iter().map(|path| Cow::Borrowed(path.as_str())).collect(),
            failed: command.failed,
        })
        .collect()
}

fn convert(action: tools::Action) -> rescan::Action {
    rescan::Action {
        reads: action.read.into_iter().chain(action.also).collect(),
        unsure: false,
        writes: match action.writes {
            tools::Writes::None => rescan::Writes::None,
            tools::Writes::Names(names) => rescan::Writes::Names(names),
            tools::Writes::All => rescan::Writes::All,
        },
        rerunnable: action.rerunnable.map(|rerunnable| rescan::Rerunnable {
            needs_pass: rerunnable.needs_pass,
            even_if_used: rerunnable.even_if_used,
        }),
    }
}
