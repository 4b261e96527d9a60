//! Calls that have no result yet, and what ran inside them.
//!
//! The host says what a code-mode script ran by the place of its line alone. It runs the scripts of
//! one answer one after the other, in their order; a script that goes on behind its result (a cell)
//! runs beside those that come after it, until a `wait` has its last words.

use hashbrown::HashMap;

use super::intern::NONE;
use crate::hash::Identity as Prehashed;
use crate::record::InnerCommand;
use crate::tools::{Action, ToolKind};

/// What a call's input says, by which the terms that its result only repeats are known
/// (`docs/rules.md` §4).
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// All leaves, joined by newlines: a term is known if it stands in it.
    Text(String),
    /// Hashes of the terms of a longer input, sorted: a term is known if it is one of them.
    Terms(Vec<u64>),
}

impl Default for Input {
    fn default() -> Self {
        Self::Terms(Vec::new())
    }
}

/// What was reported to have run inside a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ran {
    pub(crate) commands: Vec<InnerCommand<'static>>,
    /// Ran in this call or in a cell beside it.
    pub(crate) loose: Vec<InnerCommand<'static>>,
    /// Some of it failed.
    pub(crate) failed: bool,
    /// A command that showed a file was this call's or a cell's.
    pub(crate) unsure: bool,
}

impl Ran {
    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.loose.is_empty() && !self.failed && !self.unsure
    }

    fn bytes(&self) -> usize {
        let all = self.commands.iter().chain(&self.loose);
        all.map(|inner| inner.command.len() + 250).sum::<usize>()
    }
}

/// A call that has no result yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCall {
    pub(crate) tool: u32,
    pub(crate) input: Input,
    pub(crate) action: Action,
    /// The cell that it waits for, or [`NONE`].
    pub(crate) cell: u32,
    pub(crate) ran: Ran,
}

/// A script that goes on behind its result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) id: u32,
    /// What ran since the last result of it.
    pub(crate) ran: Ran,
}

/// Calls without a result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Open {
    pub(crate) calls: HashMap<u32, OpenCall, Prehashed>,
    /// Of them the code-mode scripts that may run now, the oldest first.
    pub(crate) scripts: Vec<u32>,
    pub(crate) cells: Vec<Cell>,
    /// What ran in calls that have their result: a copy of one, in the history that a compaction
    /// leaves, stands without these lines.
    pub(crate) done: HashMap<u32, Ran, Prehashed>,
}

impl Open {
    /// Bytes on the heap, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        let call = |call: &OpenCall| {
            let input = match &call.input {
                Input::Text(text) => text.capacity(),
                Input::Terms(terms) => terms.capacity() * 8,
            };
            input + call.ran.bytes()
        };
        self.calls.allocation_size()
            + self.calls.values().map(call).sum::<usize>()
            + self.done.allocation_size()
            + self.done.values().map(Ran::bytes).sum::<usize>()
            + self.cells.iter().map(|cell| cell.ran.bytes()).sum::<usize>()
    }

    /// A call was made; `copy`: it stands in the history that a compaction left.
    pub(crate) fn called(&mut self, id: u32, mut call: OpenCall, copy: bool) {
        if let Some(ran) = self.done.get(&id) {
            call.ran = ran.clone();
        }
        if call.action.kind == ToolKind::Code && !copy {
            if let Some(cell) = self.cells.iter_mut().find(|cell| cell.id == call.cell) {
                call.ran = std::mem::take(&mut cell.ran);
            }
            self.scripts.push(id);
        }
        self.calls.insert(id, call);
    }

    /// Takes a call out when its result comes; `running` names what goes on behind it.
    pub(crate) fn answered(&mut self, id: u32, running: Option<u32>, copy: bool) -> OpenCall {
        self.scripts.retain(|&script| script != id);
        let nothing = OpenCall { tool: NONE, cell: NONE, ..OpenCall::default() };
        let call = self.calls.remove(&id).unwrap_or(nothing);
        if call.action.kind == ToolKind::Code && !copy {
            match running {
                None => self.cells.retain(|cell| cell.id != call.cell),
                Some(id) if self.cells.iter().any(|cell| cell.id == id) => {}
                Some(id) => self.cells.push(Cell { id, ran: Ran::default() }),
            }
        }
        if !call.ran.is_empty() {
            self.done.insert(id, call.ran.clone());
        }
        call
    }

    /// A person's prompt: scripts that still have no result never will.
    pub(crate) fn prompted(&mut self) {
        self.scripts.clear();
    }

    /// Something ran inside a call; `call` is the one that its id names.
    pub(crate) fn ran(&mut self, inner: &InnerCommand<'_>, call: Option<u32>) {
        if !inner.is_of_script() {
            if let Some(call) = call.and_then(|id| self.calls.get_mut(&id)) {
                call.ran.failed |= inner.failed;
            }
            return;
        }
        let script = self.scripts.first().and_then(|id| self.calls.get_mut(id));
        let waited = script.as_ref().map_or(NONE, |call| call.cell);
        let mut beside = self.cells.iter_mut().filter(|cell| cell.id != waited);
        let Some(script) = script else {
            if let (Some(cell), None) = (beside.next(), beside.next()) {
                cell.ran.failed |= inner.failed;
                cell.ran.commands.push(own(inner));
            } else {
                let shows = !inner.reads.is_empty();
                self.cells.iter_mut().for_each(|cell| {
                    cell.ran.failed |= inner.failed;
                    cell.ran.unsure |= shows;
                });
            }
            return;
        };
        script.ran.failed |= inner.failed;
        let mut alone = true;
        for cell in beside {
            alone = false;
            cell.ran.failed |= inner.failed;
            cell.ran.unsure |= !inner.reads.is_empty();
        }
        if alone {
            script.ran.commands.push(own(inner));
        } else {
            script.ran.unsure |= !inner.reads.is_empty();
            script.ran.loose.push(own(inner));
        }
    }
}

/// What ran, with texts of its own.
fn own(inner: &InnerCommand<'_>) -> InnerCommand<'static> {
    use std::borrow::Cow;
    let own = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
    InnerCommand {
        id: own(&inner.id),
        cwd: inner.cwd.as_ref().map(own),
        command: own(&inner.command),
        reads: inner.reads.iter().map(own).collect(),
        writes: inner.writes.iter().map(own).collect(),
        failed: inner.failed,
    }
}
