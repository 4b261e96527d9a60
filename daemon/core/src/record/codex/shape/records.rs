//! The records that a fork carries, and the outer shape of every line.

use super::super::super::json::Raw;
use super::check::{Check, Field, Shape, check, could, is, may, must, object};
use super::{Flaw, items, meta, turn};

use Shape::{Any, By, Count, Either, Flag, List, Map, Object, Text, Whole, Word};

/// Lists and objects around the payload of a record.
pub(super) const IN_RECORD: usize = 1;

/// What the host notes beside an item; it has more fields, which a fork has no reason to write.
const METADATA: Shape = Object(&[
    may("history_sequence", Count),
    may("sampled_through_sequence", Count),
    may("user_input_order", Count),
    could("client_authored", Flag),
    may("model_search_state", Word(&["unused"])),
    could("compaction_output", Flag),
    may("fallback_token_limit_override", Count),
]);

const COMPACTED: &[Field] = &[
    must("message", Text),
    may("replacement_history", List(&By(|raw, depth| items::item_at(raw, depth).map(|_| ())))),
    may("replacement_history_metadata", List(&METADATA)),
    may("window_number", Count),
    may("first_window_id", Text),
    may("previous_window_id", Text),
    // A number is taken too, but means something else.
    may("window_id", Text),
    may("compaction_response_id", Text),
    may("resume_metadata", Object(&[])),
];

/// What the host keeps beside a history of its own making: a pruned one is not what they speak of,
/// and one of them that is not whole voids the record.
const ITS_OWN: [&str; 3] =
    ["retained_context", "mcp_resource_origins", "latest_token_usage_record"];

pub(super) fn compacted(payload: Raw<'_>) -> Check {
    object(COMPACTED, payload, IN_RECORD)?;
    for name in ITS_OWN {
        let given = payload.member(name).is_some_and(|value| !value.is_null());
        is(!given, "nothing").map_err(|flaw| flaw.under(name))?;
    }
    as_many_notes(payload)
}

fn as_many_notes(payload: Raw<'_>) -> Check {
    let given = |name| payload.member(name).filter(|value| !value.is_null());
    let Some(metadata) = given("replacement_history_metadata") else { return Ok(()) };
    let count = |raw: Raw<'_>| raw.elements().count();
    let as_long = given("replacement_history").is_some_and(|it| count(it) == count(metadata));
    is(as_long, "as many elements as replacement_history has")
        .map_err(|flaw| flaw.under("replacement_history_metadata"))
}

/// As the host itself writes it: with what it keeps beside a history of its own making. One of them
/// that is not whole voids the record.
const OF_HOST: &[Field] = &[
    must("message", Text),
    may("replacement_history", List(&By(items::taken))),
    may("replacement_history_metadata", List(&NOTES)),
    may("window_number", Count),
    may("first_window_id", Text),
    may("previous_window_id", Text),
    may("window_id", Either(&Text, &Count)),
    may("compaction_response_id", Text),
    may("resume_metadata", Object(&[])),
    may("retained_context", RETAINED),
    may("mcp_resource_origins", By(filled)),
    may("latest_token_usage_record", USED),
];

/// [`METADATA`] with any word for the state of a search.
const NOTES: Shape = Object(&[
    may("history_sequence", Count),
    may("sampled_through_sequence", Count),
    may("user_input_order", Count),
    could("client_authored", Flag),
    may("model_search_state", Text),
    could("compaction_output", Flag),
    may("fallback_token_limit_override", Count),
]);

/// An empty object voids the record.
const RETAINED: Shape = Object(&[
    must("verified_answers", List(&Any)),
    must("incomplete", Flag),
    could("user_messages", List(&Any)),
    could("user_messages_incomplete", Flag),
    could("assistant_messages", List(&Any)),
    could("assistant_messages_incomplete", Flag),
    could("next_order", Count),
]);

/// An empty object voids the record.
const USED: Shape = Object(&[
    must("thread_id", Text),
    must("turn_id", Text),
    may("session_id", Text),
    may("root_turn_id", Text),
    may("response_id", Text),
    must("usage", Object(&[])),
    may("turn_token_usage", Object(&[])),
    may("thread_token_usage", Object(&[])),
]);

/// What was never seen whole: only that an empty object voids the record, and that it is no bare value.
fn filled(raw: Raw<'_>, depth: usize) -> Check {
    let is_filled = raw.is_object() && raw.members().next().is_some();
    is(raw.is_list() || is_filled, "a list, or an object that is not empty")?;
    check(Any, raw, depth)
}

pub(super) fn compacted_of_host(payload: Raw<'_>) -> Check {
    object(OF_HOST, payload, IN_RECORD)?;
    as_many_notes(payload)
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
    // Without it the host ignores the record, and with it what the history weighs.
    must(
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
        "session_meta" => meta::session_meta(payload),
        "turn_context" => turn::turn_context(payload),
        "world_state" => world_state(payload),
        "compacted" => compacted(payload),
        "response_item" => items::item_at(payload, IN_RECORD).map(|_| ()),
        "event_msg" if payload.kind().as_deref() == Some("token_count") => token_count(payload),
        known if OTHERS.contains(&known) => Ok(()),
        _ => return Err(Flaw::here("a kind of record that the host knows").under("type")),
    };
    checked.map_err(|flaw| flaw.under("payload"))
}
