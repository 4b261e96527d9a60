//! The first record of a rollout. The host refuses a rollout whose `session_meta` is not sound.

use super::super::super::json::Raw;
use super::check::{Check, Field, Shape, could, is, may, must, object};
use super::records::IN_RECORD;

use Shape::{Any, By, Count, Either, Flag, List, Object, Tagged, Text, Word};

const UUID: Shape = By(|raw, _| uuid(raw));

const SESSION_META: &[Field] = &[
    must("id", UUID),
    must("timestamp", Text),
    must("cwd", Text),
    must("originator", Text),
    must("cli_version", Text),
    could("source", Either(&Text, &By(source))),
    could("account_scoped", Flag),
    could("attached_thread", Flag),
    could("history_mode", Word(&["legacy", "paginated"])),
    could("selected_capability_roots", By(|raw, _| is_empty(raw))),
    may("runtime_workspace_roots", List(&By(|raw, _| absolute(raw)))),
    may("thread_source", Text),
    // The host also has to know a provider of that name.
    may("model_provider", Text),
    may("base_instructions", Object(&[must("text", Text), may("provenance", PROVENANCE)])),
    may("context_window", Object(&[must("window_id", Text)])),
    may("forked_from_id", UUID),
    may("forked_from_ordinal_exclusive", Count),
    may("parent_thread_id", UUID),
    may("history_base", HISTORY_BASE),
    may("subagent_history_start_ordinal", Count),
    may("memory_mode", Text),
    may("multi_agent_version", Word(AGENT_VERSIONS)),
    may("agent_nickname", Text),
    may("agent_role", Text),
    may("agent_path", Text),
    may("creator_user_id", Text),
    may("creator_account_id", Text),
    may("dynamic_tools", List(&By(tool))),
    may(
        "git",
        Object(&[may("commit_hash", Text), may("branch", Text), may("repository_url", Text)]),
    ),
];

pub(super) const AGENT_VERSIONS: &[&str] = &["v1", "v2", "disabled"];

const PROVENANCE: Shape = Tagged(&[("model", &[must("model", Text)]), ("custom", &[])]);

/// A file that it names must be there, which no shape can tell.
const HISTORY_BASE: Shape = Object(&[
    must("thread_id", UUID),
    must("end_ordinal_exclusive", Count),
    must("end_byte_offset", Count),
]);

const TOOL: &[Field] = &[
    must("name", Text),
    must("description", Text),
    must("inputSchema", Any),
    may("namespace", Text),
    may("deferLoading", Flag),
];

pub(super) fn session_meta(payload: Raw<'_>) -> Check {
    object(SESSION_META, payload, IN_RECORD)
}

/// A tool of the program that started the thread, or several under one name.
fn tool(raw: Raw<'_>, depth: usize) -> Check {
    if raw.kind().as_deref() != Some("namespace") {
        return object(TOOL, raw, depth);
    }
    let several =
        [must("name", Text), must("description", Text), must("tools", List(&Object(TOOL)))];
    object(&several, raw, depth)
}

/// Who started the thread, where that is more than a word.
fn source(raw: Raw<'_>, depth: usize) -> Check {
    is(raw.is_object() && raw.members().count() == 1, "a string or an object with one member")?;
    if raw.member("custom").is_some() {
        return object(&[must("custom", Text)], raw, depth);
    }
    object(&[must("subagent", Either(&Word(&["review", "compact"]), &By(subagent)))], raw, depth)
}

const SPAWN: Shape = Object(&[
    must("parent_thread_id", UUID),
    must("depth", Count),
    may("agent_path", Text),
    may("agent_nickname", Text),
    may("agent_role", Text),
]);

fn subagent(raw: Raw<'_>, depth: usize) -> Check {
    is(
        raw.is_object() && raw.members().count() == 1,
        "`review`, `compact` or an object with one member",
    )?;
    if raw.member("other").is_some() {
        return object(&[must("other", Text)], raw, depth);
    }
    object(&[must("thread_spawn", SPAWN)], raw, depth)
}

fn is_empty(raw: Raw<'_>) -> Check {
    is(raw.is_list() && raw.elements().next().is_none(), "an empty list")
}

pub(super) fn absolute(raw: Raw<'_>) -> Check {
    is(raw.text().is_some_and(|path| path.starts_with('/')), "an absolute path")
}

fn uuid(raw: Raw<'_>) -> Check {
    let text = raw.text().unwrap_or_default();
    let shaped = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is(shaped, "a UUID")
}
