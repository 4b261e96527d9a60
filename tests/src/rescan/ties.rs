//! What ran inside which Codex call (§5): told by the place of the host's line.

use std::collections::HashMap;

use serde_json::Value;

use super::reader::{Item, Record, Row};
use super::{InnerCommand, Ran, context};

/// A call that waits for its result.
struct Waiting {
    is_script: bool,
    /// The cell whose next words it waits for.
    cell: Option<String>,
    ran: Ran,
}

#[derive(Default)]
struct Ties {
    waiting: HashMap<String, Waiting>,
    /// Scripts that wait, in the order of their calls.
    scripts: Vec<String>,
    /// Scripts that go on behind their result, with what ran since.
    cells: Vec<(String, Ran)>,
    done: HashMap<String, Ran>,
}

/// Gives every result what ran in its call, and the sign of an error if some of that failed.
pub(super) fn tie(records: &mut [Record]) {
    let mut ties = Ties::default();
    for record in records {
        match record {
            Record::Row(row) => ties.row(row, false),
            Record::Compacted(rows) => rows.iter_mut().for_each(|row| ties.row(row, true)),
            Record::Boundary { .. } | Record::RolledBack(_) => {}
        }
    }
}

impl Ties {
    fn row(&mut self, row: &mut Row, copy: bool) {
        if !copy && context::is_prompt(row) {
            self.scripts.clear();
        }
        for item in &mut row.items {
            match item {
                Item::Call { id, tool, input } => self.call(id, tool, input, copy),
                Item::Inner(inner) => self.ran(inner),
                Item::Result(result) => {
                    let running = result.running.clone();
                    result.ran = self.result(&result.id, running, copy);
                    result.is_error |= result.ran.failed;
                }
                Item::Text(_) | Item::Opaque => {}
            }
        }
    }

    fn call(&mut self, id: &str, tool: &str, input: &Value, copy: bool) {
        let name = tool.rsplit("__").next().unwrap_or(tool);
        let of_server = tool.starts_with("mcp__");
        let cell = input.get("cell_id").and_then(Value::as_str).map(str::to_owned);
        let cell = cell.filter(|_| name == "wait" && !of_server);
        let is_script = (name == "exec" && !of_server && input.is_string()) || cell.is_some();
        let mut ran = self.done.get(id).cloned().unwrap_or_default();
        if is_script && !copy {
            let own = self.cells.iter_mut().find(|(of, _)| Some(of) == cell.as_ref());
            if let Some((_, since)) = own {
                ran = std::mem::take(since);
            }
            self.scripts.push(id.to_owned());
        }
        self.waiting.insert(id.to_owned(), Waiting { is_script, cell, ran });
    }

    fn result(&mut self, id: &str, running: Option<String>, copy: bool) -> Ran {
        self.scripts.retain(|script| script != id);
        let Some(mut call) = self.waiting.remove(id) else { return Ran::default() };
        let goes_on = call.is_script && running.is_some();
        if call.is_script && !copy {
            match running {
                None => self.cells.retain(|(of, _)| Some(of) != call.cell.as_ref()),
                Some(running) => {
                    if self.cells.iter().all(|(of, _)| *of != running) {
                        self.cells.push((running, Ran::default()));
                    }
                }
            }
        }
        if call.ran != Ran::default() {
            self.done.insert(id.to_owned(), call.ran.clone());
        }
        call.ran.unsure |= goes_on;
        call.ran
    }

    fn ran(&mut self, inner: &InnerCommand) {
        if !inner.id.starts_with("exec-") {
            if let Some(call) = self.waiting.get_mut(&inner.id) {
                call.ran.failed |= inner.failed;
            }
            return;
        }
        let script = self.scripts.first().and_then(|id| self.waiting.get_mut(id));
        let waited = script.as_ref().and_then(|call| call.cell.clone());
        let beside = self.cells.iter_mut().filter(|(of, _)| Some(of) != waited.as_ref());
        let mut owners: Vec<&mut Ran> = beside.map(|(_, ran)| ran).collect();
        let is_script = script.is_some();
        owners.splice(0..0, script.map(|call| &mut call.ran));
        let shows = !inner.reads.is_empty();
        if let [owner] = owners.as_mut_slice() {
            owner.failed |= inner.failed;
            owner.commands.push(inner.clone());
            return;
        }
        for (at, owner) in owners.into_iter().enumerate() {
            owner.failed |= inner.failed;
            owner.unsure |= shows;
            if is_script && at == 0 {
                owner.loose.push(inner.clone());
            }
        }
    }
}
