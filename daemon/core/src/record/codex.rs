//! Codex's rollout: what one of its lines means (versions 0.118 to 0.171).
//!
//! Conversation items are read here, results of tools in `output` (those of scripts also in
//! `script`), `compacted` records (which the
//! host takes only when every item in them is sound) in `compacted`.

mod compacted;
mod event;
mod output;
mod script;
pub mod shape;

use std::borrow::Cow;

use super::json::{self, Raw, owned};
use super::{About, Call, HistoryBase, Item, Leaf, Record, Role, Row, SessionMeta, Skip};

/// Reads one line of a rollout.
///
/// # Errors
/// The reason why the line holds nothing for the index.
pub fn read(line: &[u8]) -> Result<Record<'_>, Skip> {
    owned::read_lossy(line, read_text)
}

fn read_text(text: &str) -> Result<Record<'_>, Skip> {
    let (mut kind, mut payload, mut timestamp) = (None, None, None);
    let (mut record_type, mut first_line) = (false, false);
    let whole = json::object(text, |key, value| match key {
        "type" => kind = value.text(),
        "payload" => payload = Some(value),
        "timestamp" => timestamp = value.text(),
        "record_type" => record_type = true,
        "instructions" | "git" => first_line = true,
        _ => {}
    });
    if !whole {
        return Err(Skip::Malformed);
    }
    let Some(kind) = kind else {
        return match json::value(text) {
            _ if record_type => Err(Skip::Bookkeeping),
            Some(bare) if first_line && timestamp.is_some() => Ok(session(bare, timestamp)),
            _ => Err(Skip::Unknown),
        };
    };
    match kind.as_ref() {
        "world_state"
        | "token_usage_record"
        | "inter_agent_communication"
        | "inter_agent_communication_metadata"
        | "dynamic_tools_updated"
        | "security_risk_score"
        | "realtime_item"
        | "id_allocation"
        | "retained_context" => return Err(Skip::Bookkeeping),
        "session_meta" | "turn_context" | "response_item" | "event_msg" | "compacted" => {}
        // The first versions wrote the items themselves as lines.
        _ if payload.is_none() => {
            let mut row = item(json::value(text).ok_or(Skip::Malformed)?)?;
            row.about.timestamp = timestamp;
            return Ok(Record::Row(row));
        }
        _ => return Err(Skip::Unknown),
    }
    let payload = payload.filter(|payload| payload.is_object()).ok_or(Skip::Odd)?;
    match kind.as_ref() {
        "response_item" => {
            let mut row = item(payload)?;
            row.about.timestamp = timestamp;
            Ok(Record::Row(row))
        }
        "event_msg" => event::read(payload),
        "compacted" => compacted::read(payload, timestamp.as_ref()),
        "turn_context" => Ok(Record::Turn {
            cwd: payload.member("cwd").and_then(Raw::text).map(event::local_path),
            model: payload.member("model").and_then(Raw::text),
        }),
        _ => Ok(session(payload, timestamp)),
    }
}

fn session<'a>(payload: Raw<'a>, timestamp: Option<Cow<'a, str>>) -> Record<'a> {
    let mut meta = SessionMeta { timestamp, ..SessionMeta::default() };
    let mut source = None;
    for (key, value) in payload.members() {
        match key.as_ref() {
            "id" => meta.id = value.text(),
            "session_id" => meta.session = value.text(),
            "parent_thread_id" => meta.parent_thread = value.text(),
            "cwd" => meta.cwd = value.text().map(event::local_path),
            "cli_version" => meta.version = value.text(),
            "history_base" => meta.base = base(value),
            "source" => source = Some(value),
            _ => {}
        }
    }
    if meta.parent_thread.is_none() {
        meta.parent_thread = source.and_then(|source| {
            source.member("subagent")?.member("thread_spawn")?.member("parent_thread_id")?.text()
        });
    }
    Record::Session(Box::new(meta))
}

fn base(raw: Raw<'_>) -> Option<HistoryBase<'_>> {
    Some(HistoryBase {
        thread: raw.member("thread_id")?.text()?,
        end_ordinal: raw.member("end_ordinal_exclusive")?.whole()?,
        end_offset: raw.member("end_byte_offset").and_then(Raw::whole),
    })
}

/// The members of a conversation item that any kind of it may have.
#[derive(Default)]
struct Parts<'a> {
    kind: Option<Raw<'a>>,
    role: Option<Raw<'a>>,
    content: Option<Raw<'a>>,
    name: Option<Raw<'a>>,
    namespace: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    call: Option<Raw<'a>>,
    arguments: Option<Raw<'a>>,
    input: Option<Raw<'a>>,
    action: Option<Raw<'a>>,
    output: Option<Raw<'a>>,
    status: Option<Raw<'a>>,
    summary: Option<Raw<'a>>,
}

impl<'a> Parts<'a> {
    fn of(raw: Raw<'a>) -> Self {
        let mut parts = Self::default();
        for (key, value) in raw.members() {
            match key.as_ref() {
                "type" => parts.kind = Some(value),
                "role" => parts.role = Some(value),
                "content" => parts.content = Some(value),
                "name" => parts.name = Some(value),
                "namespace" => parts.namespace = Some(value),
                "id" => parts.id = Some(value),
                "call_id" => parts.call = Some(value),
                "arguments" => parts.arguments = Some(value),
                "input" => parts.input = Some(value),
                "action" => parts.action = Some(value),
                "output" => parts.output = Some(value),
                "status" => parts.status = Some(value),
                "summary" => parts.summary = Some(value),
                _ => {}
            }
        }
        parts
    }

    /// `namespace__name`, as the tools are named elsewhere.
    fn tool(&self) -> Cow<'a, str> {
        let name = self.name.and_then(Raw::text).unwrap_or_default();
        match self.namespace.and_then(Raw::text) {
            Some(space) if !space.is_empty() => {
                let joint = if space.ends_with("__") { "" } else { "__" };
                Cow::Owned([&space, joint, &name].concat())
            }
            _ => name,
        }
    }
}

fn row(role: Role, items: Vec<Item<'_>>) -> Row<'_> {
    Row {
        uuid: None,
        parent: None,
        message_id: None,
        role,
        sidechain: false,
        summary: false,
        meta: false,
        attached: false,
        items,
        about: About::default(),
    }
}

/// Reads one conversation item, as it stands in a `response_item` or in a `replacement_history`.
///
/// # Errors
/// The reason why it is no row of the conversation.
pub fn item(raw: Raw<'_>) -> Result<Row<'_>, Skip> {
    let parts = Parts::of(raw);
    let kind = parts.kind.and_then(Raw::text).ok_or(Skip::Odd)?;
    Ok(match kind.as_ref() {
        "message" => return message(&parts),
        "function_call" => called(parts.call, parts.tool(), arguments(parts.arguments)),
        "custom_tool_call" => called(parts.call, parts.tool(), input(parts.input)),
        "local_shell_call" => {
            let leaves = parts.action.map(json::leaves).unwrap_or_default();
            called(
                parts.call.filter(|id| !id.is_null()).or(parts.id),
                Cow::Borrowed("local_shell"),
                leaves,
            )
        }
        "function_call_output" | "local_shell_call_output" | "custom_tool_call_output" => {
            answered(&parts)
        }
        // Words of another agent, put before the model by the host.
        "agent_message" => {
            let mut row = row(Role::User, content(parts.content));
            row.meta = true;
            row
        }
        "reasoning" | "web_search_call" | "tool_search_call" => row(Role::Assistant, Vec::new()),
        "image_generation_call" => row(Role::Assistant, vec![Item::Opaque]),
        "tool_search_output" | "compaction" | "compaction_summary" | "context_compaction" => {
            let mut row = row(Role::User, vec![Item::Opaque]);
            row.meta = true;
            row
        }
        "ghost_snapshot" | "additional_tools" | "compaction_trigger" => {
            return Err(Skip::Bookkeeping);
        }
        _ => return Err(Skip::Unknown),
    })
}

fn message<'a>(parts: &Parts<'a>) -> Result<Row<'a>, Skip> {
    let role = parts.role.and_then(Raw::text).ok_or(Skip::Odd)?;
    let items = content(parts.content);
    Ok(match role.as_ref() {
        "assistant" => row(Role::Assistant, items),
        role => {
            let mut row = row(Role::User, items);
            row.meta = role != "user";
            row
        }
    })
}

/// The parts of a message; a bare string is one text.
fn content(raw: Option<Raw<'_>>) -> Vec<Item<'_>> {
    let Some(raw) = raw else { return Vec::new() };
    let mut items = parts(raw);
    items.retain(|item| !item.is_empty_text());
    items
}

fn parts(raw: Raw<'_>) -> Vec<Item<'_>> {
    if let Some(text) = raw.text() {
        return vec![Item::Text(text)];
    }
    let mut items = Vec::new();
    let mut walk = raw.walk();
    if !walk.enter(b'[') {
        return items;
    }
    loop {
        if walk.enter(b'{') {
            let (mut text, mut sealed) = (None, false);
            while let (Some(key), Some(value)) = (walk.key(), walk.value()) {
                match key.as_ref() {
                    "text" => text = value.text(),
                    "type" => {
                        let kind = value.text();
                        sealed =
                            matches!(kind.as_deref(), Some("input_image" | "encrypted_content"));
                    }
                    _ => {}
                }
            }
            walk.leave();
            items.push(text.filter(|_| !sealed).map_or(Item::Opaque, Item::Text));
        } else if let Some(part) = walk.value() {
            items.extend(part.text().map(Item::Text));
        } else {
            return items;
        }
    }
}

fn called<'a>(id: Option<Raw<'a>>, tool: Cow<'a, str>, leaves: Vec<Leaf<'a>>) -> Row<'a> {
    let call = id.and_then(Raw::text_or_number).map(|id| Item::Call(Call { id, tool, leaves }));
    row(Role::Assistant, call.into_iter().collect())
}

fn answered<'a>(parts: &Parts<'a>) -> Row<'a> {
    let result = parts
        .call
        .and_then(Raw::text_or_number)
        .map(|id| Item::Result(output::result(id, parts.output)));
    row(Role::User, result.into_iter().collect())
}

/// The leaves of a function call: its arguments are JSON inside a string (or, in other writers'
/// files, JSON as it is).
fn arguments(raw: Option<Raw<'_>>) -> Vec<Leaf<'_>> {
    let Some(raw) = raw else { return Vec::new() };
    let Some(text) = raw.text() else { return json::leaves(raw) };
    match json::value(text.trim()) {
        Some(inner) => owned::leaves(json::leaves(inner)),
        None if text.trim().is_empty() => Vec::new(),
        None => whole_input(text),
    }
}

/// The leaves of a free-form call: one, unless the input is a JSON object all the same.
fn input(raw: Option<Raw<'_>>) -> Vec<Leaf<'_>> {
    let Some(raw) = raw else { return Vec::new() };
    let Some(text) = raw.text() else { return json::leaves(raw) };
    match json::looks_like_object(&text) {
        Some(inner) => owned::leaves(json::leaves(inner)),
        None => whole_input(text),
    }
}

fn whole_input(text: Cow<'_, str>) -> Vec<Leaf<'_>> {
    vec![Leaf { key: Cow::Borrowed(""), depth: 0, string: true, text }]
}

#[cfg(test)]
mod tests;
