//! Claude Code's transcript: what one of its rows means (versions 1.0 to 2.1.332).

use std::borrow::Cow;

use super::attached;
use super::json::{self, Raw, Walk, owned};
use super::{About, Body, Boundary, Call, Item, Record, Role, Row, Skip, ToolResult, Usage};

/// Reads one line of a transcript.
///
/// # Errors
/// The reason why the line holds nothing for the index.
pub fn read(line: &[u8]) -> Result<Record<'_>, Skip> {
    owned::read_lossy(line, read_text)
}

#[derive(Default)]
struct Line<'a> {
    kind: Option<Raw<'a>>,
    subtype: Option<Raw<'a>>,
    uuid: Option<Raw<'a>>,
    parent: Option<Raw<'a>>,
    message: Option<Raw<'a>>,
    compact: Option<Raw<'a>>,
    session: Option<Raw<'a>>,
    agent: Option<Raw<'a>>,
    cwd: Option<Raw<'a>>,
    version: Option<Raw<'a>>,
    timestamp: Option<Raw<'a>>,
    attachment: Option<Raw<'a>>,
    rendered: Option<Raw<'a>>,
    sidechain: bool,
    meta: bool,
    summary: bool,
    api_error: bool,
}

fn words(raw: Option<Raw<'_>>) -> Option<Cow<'_, str>> {
    raw?.text_or_number()
}

fn read_text(text: &str) -> Result<Record<'_>, Skip> {
    let mut line = Line::default();
    let whole = json::object(text, |key, value| match key {
        "type" => line.kind = Some(value),
        "subtype" => line.subtype = Some(value),
        "uuid" => line.uuid = Some(value),
        "parentUuid" => line.parent = Some(value),
        "message" => line.message = Some(value),
        "compactMetadata" => line.compact = Some(value),
        "sessionId" => line.session = Some(value),
        "agentId" => line.agent = Some(value),
        "cwd" => line.cwd = Some(value),
        "version" => line.version = Some(value),
        "timestamp" => line.timestamp = Some(value),
        "attachment" => line.attachment = Some(value),
        "rendered" => line.rendered = Some(value),
        "isSidechain" => line.sidechain = value.is_true(),
        "isMeta" => line.meta = value.is_true(),
        "isCompactSummary" => line.summary = value.is_true(),
        "isApiErrorMessage" => line.api_error = value.is_true(),
        _ => {}
    });
    if !whole {
        return Err(Skip::Malformed);
    }
    let kind = line.kind.and_then(Raw::text).unwrap_or_default();
    let role = match kind.as_ref() {
        // The host's own error text: shown, never sent.
        "assistant" if line.api_error => Role::Link,
        "assistant" => Role::Assistant,
        "user" => Role::User,
        "system" if line.subtype.and_then(Raw::text).as_deref() == Some("compact_boundary") => {
            return Ok(Record::Boundary(boundary(&line)));
        }
        _ => Role::Link,
    };
    let uuid = words(line.uuid);
    if role == Role::Link {
        return if uuid.is_some() && !is_wire_copy(&kind) {
            Ok(Record::Row(row(&line, role)))
        } else if is_bookkeeping(&kind) {
            Err(Skip::Bookkeeping)
        } else {
            Err(Skip::Unknown)
        };
    }
    if uuid.is_none() && line.message.is_none_or(Raw::is_null) {
        return Err(Skip::Odd);
    }
    let mut row = row(&line, role);
    if let Some(message) = line.message {
        read_message(message, &mut row);
    }
    row.attached = row.role == Role::User && row.meta && row.items.iter().any(has_lasting_text);
    Ok(Record::Row(row))
}

fn has_lasting_text(item: &Item<'_>) -> bool {
    matches!(item, Item::Text(text) if attached::is_lasting_text(text))
}

/// The requests that the host keeps a copy of: they repeat what the rows say.
fn is_wire_copy(kind: &str) -> bool {
    kind.starts_with("api-request")
}

/// Kinds without a uuid that never reach the model.
fn is_bookkeeping(kind: &str) -> bool {
    is_wire_copy(kind)
        || matches!(
            kind,
            "summary"
                | "assistant" // an API error of an old version, without a uuid
                | "system"
                | "attachment"
                | "progress"
                | "queue-operation"
                | "last-prompt"
                | "tools-used"
                | "atis-latch"
                | "cost-state"
                | "mode"
                | "permission-mode"
                | "file-history-snapshot"
                | "file-history-delta"
                | "agent-color"
                | "agent-name"
                | "agent-setting"
                | "ai-title"
                | "custom-title"
                | "bridge-session"
                | "frame-link"
                | "pr-link"
                | "relocated"
                | "worktree-state"
                | "started"
                | "result"
        )
}

fn boundary<'a>(line: &Line<'a>) -> Boundary<'a> {
    let preserved =
        line.compact.and_then(|compact| compact.member("preservedMessages")?.member("uuids"));
    Boundary {
        uuid: words(line.uuid),
        preserved: preserved
            .map(|uuids| uuids.elements().filter_map(Raw::text).collect())
            .unwrap_or_default(),
        sidechain: line.sidechain,
        trigger: line.compact.and_then(|compact| compact.member("trigger")?.text()),
    }
}

fn row<'a>(line: &Line<'a>, role: Role) -> Row<'a> {
    Row {
        uuid: words(line.uuid),
        parent: words(line.parent),
        message_id: None,
        role,
        sidechain: line.sidechain,
        summary: line.summary,
        meta: line.meta,
        attached: match (line.attachment, line.rendered) {
            (Some(attachment), Some(rendered)) => attached::is_lasting(attachment, rendered),
            _ => false,
        },
        items: Vec::new(),
        about: About {
            session: words(line.session),
            agent: words(line.agent),
            cwd: words(line.cwd),
            version: words(line.version),
            model: None,
            timestamp: words(line.timestamp),
            usage: None,
        },
    }
}

fn read_message<'a>(message: Raw<'a>, row: &mut Row<'a>) {
    let mut walk = message.walk();
    if !walk.enter(b'{') {
        row.items.extend(message.text().map(Item::Text));
        row.items.retain(|item| !item.is_empty_text());
        return;
    }
    let assistant = row.role == Role::Assistant;
    while let Some(key) = walk.key() {
        if key == "content" {
            row.items.clear();
            if walk.enter(b'[') {
                while let Some(block) = Block::next(&mut walk) {
                    row.items.extend(block.item());
                }
                walk.leave();
            } else if let Some(block) = Block::next(&mut walk) {
                row.items.extend(block.item());
            }
            continue;
        }
        let Some(value) = walk.value() else { break };
        match key.as_ref() {
            "id" if assistant => row.message_id = value.text_or_number(),
            // `<synthetic>`: a row that the host or a mod built; no model answered.
            "model" if assistant => {
                row.about.model = value.text().filter(|model| !model.starts_with('<'));
            }
            "usage" if assistant => row.about.usage = usage(value),
            _ => {}
        }
    }
    row.items.retain(|item| !item.is_empty_text());
}

/// A request without any input was none: the host zeroes the usage of rows it copies.
fn usage(raw: Raw<'_>) -> Option<Usage> {
    let mut usage = Usage::default();
    let (mut fresh, mut read, mut written) = (0, 0, 0);
    for (key, value) in raw.members() {
        match key.as_ref() {
            "input_tokens" => fresh = value.whole().unwrap_or(0),
            "cache_read_input_tokens" => read = value.whole().unwrap_or(0),
            "cache_creation_input_tokens" => written = value.whole().unwrap_or(0),
            "output_tokens" => usage.output_tokens = value.whole().unwrap_or(0),
            _ => {}
        }
    }
    usage.input_tokens = fresh.saturating_add(read).saturating_add(written);
    (usage.input_tokens > 0).then_some(usage)
}

#[derive(Default)]
struct Block<'a> {
    kind: Option<Raw<'a>>,
    text: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    name: Option<Raw<'a>>,
    input: Option<Raw<'a>>,
    call: Option<Raw<'a>>,
    content: Option<Raw<'a>>,
    is_error: bool,
}

impl<'a> Block<'a> {
    /// The next block; a bare string is a text. `None` at the end of the list.
    fn next(walk: &mut Walk<'a>) -> Option<Self> {
        let mut block = Self::default();
        if !walk.enter(b'{') {
            block.text = Some(walk.value()?);
            return Some(block);
        }
        while let (Some(key), Some(value)) = (walk.key(), walk.value()) {
            match key.as_ref() {
                "type" => block.kind = Some(value),
                "text" => block.text = Some(value),
                "id" => block.id = Some(value),
                "name" => block.name = Some(value),
                "input" => block.input = Some(value),
                "tool_use_id" => block.call = Some(value),
                "content" => block.content = Some(value),
                "is_error" => block.is_error = value.is_true(),
                _ => {}
            }
        }
        walk.leave();
        Some(block)
    }

    fn item(self) -> Option<Item<'a>> {
        match self.kind.and_then(Raw::text).as_deref() {
            Some("text") | None => self.text?.text().map(Item::Text),
            Some("thinking" | "redacted_thinking") => None,
            Some("tool_use") => Some(Item::Call(Call {
                id: self.id?.text_or_number()?,
                tool: self.name.and_then(Raw::text).unwrap_or_default(),
                leaves: self.input.map(json::leaves).unwrap_or_default(),
            })),
            Some("tool_result") => {
                let id = self.call?.text_or_number()?;
                let (text, opaque) = self.content.map(result_text).unwrap_or_default();
                Some(Item::Result(ToolResult {
                    id,
                    text,
                    body: Body::From(0),
                    is_error: self.is_error,
                    running: None,
                    opaque,
                }))
            }
            Some(_) => Some(Item::Opaque),
        }
    }
}

/// The text of a tool result, and whether it holds anything else.
fn result_text<'a>(content: Raw<'a>) -> (Cow<'a, str>, bool) {
    if let Some(text) = content.text() {
        return (text, false);
    }
    let mut all: Option<Cow<'a, str>> = None;
    let mut opaque = false;
    let mut walk = content.walk();
    if !walk.enter(b'[') && !content.is_object() {
        return (Cow::Borrowed(""), false);
    }
    while let Some(part) = Block::next(&mut walk) {
        match (part.item(), &mut all) {
            (Some(Item::Text(text)), None) => all = Some(text),
            (Some(Item::Text(text)), Some(all)) => {
                let all = all.to_mut();
                all.push('\n');
                all.push_str(&text);
            }
            _ => opaque = true,
        }
    }
    (all.unwrap_or_default(), opaque)
}

#[cfg(test)]
mod tests;
