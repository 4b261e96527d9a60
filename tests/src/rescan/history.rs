//! Messages, calls, results and assistant texts of a context (§2).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Host;
use super::reader::{Item, Role, Row, ToolResult, leaves};

pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) leaves: Vec<String>,
    pub(super) cwd: Option<String>,
    pub(super) message: usize,
    pub(super) position: usize,
}

pub(super) struct Answer {
    /// Index of its call.
    pub(super) call: usize,
    pub(super) result: ToolResult,
    pub(super) message: usize,
    pub(super) position: usize,
}

pub(super) struct Spoken {
    pub(super) text: String,
    pub(super) message: usize,
    pub(super) position: usize,
}

/// Everything in a context that counts. Positions give the order of all items.
pub(super) struct History {
    pub(super) host: Host,
    pub(super) messages: usize,
    pub(super) calls: Vec<Call>,
    pub(super) results: Vec<Answer>,
    pub(super) texts: Vec<Spoken>,
}

impl History {
    pub(super) fn new(host: Host, rows: &[&Row]) -> Self {
        let mut history =
            Self { host, messages: 0, calls: Vec::new(), results: Vec::new(), texts: Vec::new() };
        let mut numbering = Numbering::default();
        let mut call_of = HashMap::new();
        let mut answered = HashSet::new();
        let mut position = 0;
        for row in rows {
            let message = match host {
                Host::Claude => numbering.claude(row),
                Host::Codex => numbering.codex(row),
            };
            for item in &row.items {
                position += 1;
                match item {
                    Item::Text(text) if row.role == Role::Assistant => {
                        history.texts.push(Spoken { text: text.clone(), message, position });
                    }
                    Item::Call { id, tool, input } => {
                        if call_of.contains_key(id) {
                            continue;
                        }
                        call_of.insert(id.clone(), history.calls.len());
                        history.calls.push(Call {
                            id: id.clone(),
                            tool: tool.clone(),
                            input: input.clone(),
                            leaves: leaves(input),
                            cwd: row.cwd.clone(),
                            message,
                            position,
                        });
                    }
                    Item::Result(result) => {
                        let Some(call) = call_of.get(&result.id).copied() else {
                            continue;
                        };
                        if answered.insert(result.id.clone()) {
                            let result = result.clone();
                            history.results.push(Answer { call, result, message, position });
                        }
                    }
                    Item::Text(_) | Item::Opaque | Item::Inner(_) => {}
                }
            }
        }
        history.messages = numbering.count;
        history
    }
}

#[derive(Default)]
struct Numbering {
    count: usize,
    newest: Option<Role>,
    by_id: HashMap<String, usize>,
}

impl Numbering {
    fn open(&mut self, role: Role) -> usize {
        self.newest = Some(role);
        self.count += 1;
        self.count - 1
    }

    fn join_or_open(&mut self, role: Role) -> usize {
        if self.newest == Some(role) { self.count - 1 } else { self.open(role) }
    }

    fn claude(&mut self, row: &Row) -> usize {
        if row.role == Role::Link || row.items.is_empty() {
            return 0;
        }
        if row.role == Role::User {
            return self.join_or_open(Role::User);
        }
        let Some(id) = &row.message_id else {
            return self.open(Role::Assistant);
        };
        if let Some(number) = self.by_id.get(id) {
            return *number;
        }
        let number = self.open(Role::Assistant);
        self.by_id.insert(id.clone(), number);
        number
    }

    fn codex(&mut self, row: &Row) -> usize {
        if row.role == Role::Link || (row.items.is_empty() && !row.thought) {
            return 0;
        }
        self.join_or_open(row.role)
    }
}
