//! Records that own their text: for the rare line that had to be repaired before it was read.

use std::borrow::Cow;

use crate::record::{
    About, Body, Boundary, Call, Compacted, HistoryBase, InnerCommand, Item, Leaf, Record, Row,
    SessionMeta, Skip, ToolResult,
};

/// Reads a line as text; bytes that are no UTF-8 become U+FFFD first.
pub(in crate::record) fn read_lossy<'a>(
    line: &'a [u8],
    read: impl for<'x> Fn(&'x str) -> Result<Record<'x>, Skip>,
) -> Result<Record<'a>, Skip> {
    match std::str::from_utf8(line) {
        Ok(text) => read(text),
        Err(_) => read(&String::from_utf8_lossy(line)).map(record),
    }
}

type Text = Cow<'static, str>;

fn text(text: Cow<'_, str>) -> Text {
    Cow::Owned(text.into_owned())
}

fn maybe(value: Option<Cow<'_, str>>) -> Option<Text> {
    value.map(text)
}

fn record(record: Record<'_>) -> Record<'static> {
    match record {
        Record::Row(it) => Record::Row(row(it)),
        Record::Boundary(it) => Record::Boundary(Boundary {
            uuid: maybe(it.uuid),
            preserved: it.preserved.into_iter().map(text).collect(),
            sidechain: it.sidechain,
            trigger: maybe(it.trigger),
        }),
        Record::Compacted(it) => Record::Compacted(Compacted {
            rows: it.rows.into_iter().map(row).collect(),
            sealed: it.sealed,
            window_number: it.window_number,
        }),
        Record::Session(it) => Record::Session(Box::new(SessionMeta {
            id: maybe(it.id),
            session: maybe(it.session),
            parent_thread: maybe(it.parent_thread),
            cwd: maybe(it.cwd),
            version: maybe(it.version),
            base: it.base.map(|base| HistoryBase {
                thread: text(base.thread),
                end_ordinal: base.end_ordinal,
                end_offset: base.end_offset,
            }),
            timestamp: maybe(it.timestamp),
        })),
        Record::Turn { cwd, model } => Record::Turn { cwd: maybe(cwd), model: maybe(model) },
        Record::InnerCommand(it) => Record::InnerCommand(InnerCommand {
            id: text(it.id),
            cwd: maybe(it.cwd),
            command: text(it.command),
            reads: it.reads.into_iter().map(text).collect(),
            writes: it.writes.into_iter().map(text).collect(),
            failed: it.failed,
        }),
        Record::RolledBack { turns } => Record::RolledBack { turns },
        Record::Usage(usage) => Record::Usage(usage),
    }
}

fn row(it: Row<'_>) -> Row<'static> {
    Row {
        uuid: maybe(it.uuid),
        parent: maybe(it.parent),
        message_id: maybe(it.message_id),
        role: it.role,
        sidechain: it.sidechain,
        summary: it.summary,
        meta: it.meta,
        attached: it.attached,
        items: it.items.into_iter().map(item).collect(),
        about: About {
            session: maybe(it.about.session),
            agent: maybe(it.about.agent),
            cwd: maybe(it.about.cwd),
            version: maybe(it.about.version),
            model: maybe(it.about.model),
            timestamp: maybe(it.about.timestamp),
            usage: it.about.usage,
        },
    }
}

fn item(it: Item<'_>) -> Item<'static> {
    match it {
        Item::Text(words) => Item::Text(text(words)),
        Item::Call(call) => Item::Call(Call {
            id: text(call.id),
            tool: text(call.tool),
            leaves: leaves(call.leaves),
        }),
        Item::Result(result) => Item::Result(ToolResult {
            id: text(result.id),
            text: text(result.text),
            body: match result.body {
                Body::From(at) => Body::From(at),
                Body::Parts { text: body, ends } => Body::Parts { text: text(body), ends },
            },
            is_error: result.is_error,
            opaque: result.opaque,
            running: maybe(result.running),
        }),
        Item::Opaque => Item::Opaque,
    }
}

/// The leaves of a text that is itself decoded text of the line.
pub(in crate::record) fn leaves(leaves: Vec<Leaf<'_>>) -> Vec<Leaf<'static>> {
    let own = |leaf: Leaf<'_>| Leaf {
        key: text(leaf.key),
        depth: leaf.depth,
        string: leaf.string,
        text: text(leaf.text),
    };
    leaves.into_iter().map(own).collect()
}
