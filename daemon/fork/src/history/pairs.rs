//! Pairs of calls and outputs, as the host makes them before it sends: by kind and `call_id`.

use std::collections::HashSet;

use compactd_core::record::json::Raw;
use serde_json::json;

use super::{History, Item};

/// Calls that the same kind of output answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Family {
    Function,
    Custom,
    Search,
}

/// One half of a pair.
struct Half {
    family: Family,
    id: String,
    is_call: bool,
}

impl Half {
    fn of(item: &Item) -> Option<Self> {
        let value = item.value()?;
        let (family, is_call) = match value.kind()?.as_ref() {
            "function_call" | "local_shell_call" => (Family::Function, true),
            "function_call_output" => (Family::Function, false),
            "custom_tool_call" => (Family::Custom, true),
            "custom_tool_call_output" => (Family::Custom, false),
            "tool_search_call" => (Family::Search, true),
            "tool_search_output" => (Family::Search, false),
            _ => return None,
        };
        let id = value.member("call_id").and_then(Raw::text)?.into_owned();
        Some(Self { family, id, is_call })
    }

    fn key(self) -> (Family, String) {
        (self.family, self.id)
    }
}

/// A search that the provider ran may stand without its call.
fn is_of_provider(item: &Item) -> bool {
    let value = item.value();
    let execution = value.and_then(|value| value.member("execution")).and_then(Raw::text);
    execution.is_some_and(|execution| execution == "server")
}

/// What the host puts in for an output that is missing.
fn stand_in(family: Family, id: &str) -> String {
    let output = match family {
        Family::Function => {
            json!({ "type": "function_call_output", "call_id": id, "output": "aborted" })
        }
        Family::Custom => {
            json!({ "type": "custom_tool_call_output", "call_id": id, "output": "aborted" })
        }
        Family::Search => json!({
            "type": "tool_search_output", "call_id": id, "status": "completed",
            "execution": "client", "tools": [],
        }),
    };
    output.to_string()
}

impl History {
    /// Makes pairs of calls and outputs as the host does before it sends: an output without a call of
    /// its kind is left out, a call without an output gets one. Gives how many of each.
    pub(crate) fn pair(&mut self) -> (usize, usize) {
        let keys = |is_call| -> HashSet<(Family, String)> {
            let halves = self.items.iter().filter_map(Half::of);
            halves.filter(|half| half.is_call == is_call).map(Half::key).collect()
        };
        let (calls, outputs) = (keys(true), keys(false));
        let (mut left_out, mut answered) = (0, 0);
        let mut items = Vec::with_capacity(self.items.len());
        for item in self.items.drain(..) {
            let Some(half) = Half::of(&item) else {
                items.push(item);
                continue;
            };
            let (line, is_call, key) = (item.line, half.is_call, half.key());
            let is_free = || key.0 == Family::Search && is_of_provider(&item);
            if !is_call && !calls.contains(&key) && !is_free() {
                left_out += 1;
                continue;
            }
            items.push(item);
            if is_call && !outputs.contains(&key) {
                let raw = stand_in(key.0, &key.1);
                items.push(Item { raw, line, is_row: true, is_prompt: false });
                answered += 1;
            }
        }
        self.items = items;
        (left_out, answered)
    }
}
