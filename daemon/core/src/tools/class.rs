//! What kind of output a call brings: what a pass over the budget cuts first (`docs/rules.md` §8).

use super::ToolKind;
use super::shell::{Join, Script};

/// A kind of output that can be had again, more or less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// None of these: reads, edits, sub-agents, plans, tools of others.
    #[default]
    None,
    /// Looks for something.
    Search,
    /// Comes from the web.
    Web,
    /// Output of any other command.
    Shell,
}

impl Class {
    /// All classes, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::None, Self::Search, Self::Web, Self::Shell];
}

const SEARCHES: [&str; 12] =
    ["rg", "grep", "egrep", "fgrep", "zgrep", "ag", "ack", "find", "fd", "fdfind", "ls", "tree"];
const WEB: [&str; 2] = ["curl", "wget"];
/// Commands that say or do nothing by themselves.
const SILENT: [&str; 6] = ["cd", "echo", "printf", "true", "pwd", "set"];

pub(super) fn of_kind(kind: ToolKind) -> Class {
    match kind {
        ToolKind::Search => Class::Search,
        ToolKind::Web => Class::Web,
        ToolKind::Shell | ToolKind::Code => Class::Shell,
        _ => Class::None,
    }
}

/// The class of all that a script runs; what a pipe passes through does not matter.
pub(super) fn of_script(script: &Script) -> Class {
    if script.overflow {
        return Class::Shell;
    }
    let heads = script.commands.iter().filter(|command| command.join != Join::Pipe);
    let names = heads.filter_map(|command| {
        let name = &command.words.first()?.text;
        let second = command.words.get(1).map(|word| word.text.as_str());
        match name.as_str() {
            name if SILENT.contains(&name) => None,
            name if SEARCHES.contains(&name) => Some(Class::Search),
            "git" if second == Some("grep") => Some(Class::Search),
            name if WEB.contains(&name) => Some(Class::Web),
            _ => Some(Class::Shell),
        }
    });
    of_all(names).unwrap_or(Class::Shell)
}

/// The class that all have; different ones are plain output of commands.
pub(super) fn of_all(classes: impl IntoIterator<Item = Class>) -> Option<Class> {
    classes.into_iter().reduce(|one, other| if one == other { one } else { Class::Shell })
}
