//! The records that a fork carries, and the outer shape of every line.

use super::super::super::json::Raw;
use super::check::{Check, Field, Shape, check, could, is, may, must, object};
use super::{Flaw, items};

use Shape::{Any, By, Count, Either, Flag, List, Map, Object, Tagged, Text, Whole, Word};

/// Lists and objects around the payload of a record.
const IN_RECORD: usize = 1;

const COMPACTED: &[Field] = &[
    must("message", Text),
    may("replacement_history", List(&By(|raw, depth| items::item_at(raw, depth).map(|_| ())))),
    may("replacement_history_metadata", List(&Object(&[]))),
    may("window_number", Count),
    may("first_window_id", Text),
    may("previous_window_id", Text),
    // A number is taken too, but means something else.
    may("window_id", Text),
    may("compaction_response_id", Text),
    may("resume_metadata", Object(&[])),
];

/// What the host keeps beside a history of its own making. It did not take any of these that we
/// made up, and a history that was pruned is not what they speak of.
const ITS_OWN: [&str; 3] =
    ["retained_context", "mcp_resource_origins", "latest_token_usage_record"];

pub(super) fn compacted(payload: Raw<'_>) -> Check {
    object(COMPACTED, payload, IN_RECORD)?;
    for name in ITS_OWN {
        let given = payload.member(name).is_some_and(|value| !value.is_null());
        is(!given, "nothing").map_err(|flaw| flaw.under(name))?;
    }
    let given = |name| payload.member(name).filter(|value| !value.is_null());
    let Some(metadata) = given("replacement_history_metadata") else { return Ok(()) };
    let count = |raw: Raw<'_>| raw.elements().count();
    let as_long = given("replacement_history").is_some_and(|it| count(it) == count(metadata));
    is(as_long, "as many elements as replacement_history has")
        .map_err(|flaw| flaw.under("replacement_history_metadata"))
}

const SESSION_META: &[Field] = &[
    must("id", By(|raw, _| uuid(raw))),
    must("timestamp", Text),
    must("cwd", Text),
    must("originator", Text),
    must("cli_version", Text),
    could("source", Either(&Text, &By(|raw, _| source(raw)))),
    could("account_scoped", Flag),
    could("attached_thread", Flag),
    could("history_mode", Word(&["legacy", "paginated"])),
    could("selected_capability_roots", List(&Any)),
    may("runtime_workspace_roots", List(&Text)),
    may("thread_source", Text),
    may("model_provider", Text),
    may("base_instructions", Object(&[must("text", Text), may("provenance", Any)])),
    may("context_window", Object(&[must("window_id", Text)])),
    may("forked_from_id", By(|raw, _| uuid(raw))),
    may("forked_from_ordinal_exclusive", Count),
    may("parent_thread_id", By(|raw, _| uuid(raw))),
    may("history_base", HISTORY_BASE),
    may("subagent_history_start_ordinal", Count),
    may("memory_mode", Text),
    may("multi_agent_version", Word(&["disabled", "v1", "v2"])),
    may("agent_nickname", Text),
    may("agent_role", Text),
    may("agent_path", Text),
    may("creator_user_id", Text),
    may("creator_account_id", Text),
    may("dynamic_tools", List(&Any)),
    may(
        "git",
        Object(&[may("commit_hash", Text), may("branch", Text), may("repository_url", Text)]),
    ),
];

const HISTORY_BASE: Shape = Object(&[
    must("thread_id", By(|raw, _| uuid(raw))),
    must("end_ordinal_exclusive", Count),
    must("end_byte_offset", Count),
]);

pub(super) fn session_meta(payload: Raw<'_>) -> Check {
    object(SESSION_META, payload, IN_RECORD)
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

/// Who started the thread, where that is more than a word.
fn source(raw: Raw<'_>) -> Check {
    let known = raw.members().count() == 1
        && raw.members().all(|(key, value)| match key.as_ref() {
            "custom" => value.is_string(),
            "subagent" => value.is_string() || value.is_object(),
            _ => false,
        });
    is(known, "a string, or an object with `custom` or `subagent`")
}

const TURN_CONTEXT: &[Field] = &[
    must("cwd", By(|raw, _| absolute(raw))),
    must("model", Text),
    must("approval_policy", Word(&["untrusted", "on-failure", "on-request", "never"])),
    may("turn_id", Text),
    may("root_turn_id", Text),
    may("comp_hash", Text),
    may("disabled_plugin_ids", List(&Text)),
    may("approvals_reviewer", Text),
    may("permission_profile", Object(&[])),
    may("sandbox_policy", Tagged(SANDBOXES)),
    may("collaboration_mode", Object(&[must("mode", Text), must("settings", Object(&[]))])),
    may("multi_agent_version", Word(&["disabled", "v1", "v2"])),
    may("realtime_active", Flag),
    may("effort", Text),
    may("summary", Word(&["auto", "concise", "detailed", "none"])),
];

const SANDBOXES: &[(&str, &[Field])] = &[
    ("danger-full-access", &[]),
    ("read-only", &[]),
    ("workspace-write", &[]),
    ("external-sandbox", &[]),
];

fn absolute(raw: Raw<'_>) -> Check {
    is(raw.text().is_some_and(|path| path.starts_with('/')), "an absolute path")
}

pub(super) fn turn_context(payload: Raw<'_>) -> Check {
    object(TURN_CONTEXT, payload, IN_RECORD)
}

/// The host compares the state key by key with its own, and sends anew what differs.
const WORLD_STATE: &[Field] = &[must("full", Flag), must("state", Map(&Any))];

pub(super) fn world_state(payload: Raw<'_>) -> Check {
    object(WORLD_STATE, payload, IN_RECORD)
}

const USAGE: Shape = Object(&[
    must("input_tokens", Whole),
    must("cached_input_tokens", Whole),
    could("cache_write_input_tokens", Whole),
    must("output_tokens", Whole),
    must("reasoning_output_tokens", Whole),
    must("total_tokens", Whole),
]);

const TOKEN_COUNT: &[Field] = &[
    must("type", Word(&["token_count"])),
    may(
        "info",
        Object(&[
            must("total_token_usage", USAGE),
            must("last_token_usage", USAGE),
            may("last_usage_includes_reasoning", Flag),
            may("model_context_window", Whole),
        ]),
    ),
    may("rate_limits", Object(&[])),
];

pub(super) fn token_count(payload: Raw<'_>) -> Check {
    object(TOKEN_COUNT, payload, IN_RECORD)
}

const RECORD: &[Field] = &[
    must("timestamp", Text),
    must("type", Text),
    must("payload", Object(&[])),
    may(
        "ordinal",
        By(|raw, _| is(raw.get().parse::<i64>().is_ok_and(|it| it >= 0), "a whole number from 0")),
    ),
];

/// Kinds of records whose payload the host reads for itself; a fork only copies them.
const OTHERS: [&str; 9] = [
    "token_usage_record",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
    "dynamic_tools_updated",
    "security_risk_score",
    "realtime_item",
    "id_allocation",
    "retained_context",
    "event_msg",
];

pub(super) fn record(line: Raw<'_>) -> Check {
    check(Object(RECORD), line, 0)?;
    let member = |name| line.member(name).ok_or_else(|| Flaw::here("an object").under(name));
    let payload = member("payload")?;
    let kind = member("type")?.text().unwrap_or_default();
    let checked = match kind.as_ref() {
        "session_meta" => session_meta(payload),
        "turn_context" => turn_context(payload),
        "world_state" => world_state(payload),
        "compacted" => compacted(payload),
        "response_item" => items::item_at(payload, IN_RECORD).map(|_| ()),
        "event_msg" if payload.kind().as_deref() == Some("token_count") => token_count(payload),
        known if OTHERS.contains(&known) => Ok(()),
        _ => return Err(Flaw::here("a kind of record that the host knows").under("type")),
    };
    checked.map_err(|flaw| flaw.under("payload"))
}
