//! The kinds of response items and their fields.

use super::super::super::json::Raw;
use super::check::{Check, Field, Shape, kind, may, must, object};
use super::{Flaw, Kind};

use Shape::{Any, By, List, Map, Number, Object, Tagged, Text, Word};

const DETAILS: Shape = Word(&["auto", "low", "high", "original"]);

/// What the host notes about an item for itself; it is not sent on.
const PASSTHROUGH: Field = may(
    "internal_chat_message_metadata_passthrough",
    Object(&[may("turn_id", Text), may("create_time", Number)]),
);
const ID: Field = may("id", Text);
const STATUS: Field = may("status", Text);
const SEALED_TEXT: Field = may("encrypted_content", Text);
const CALL_ID: Field = must("call_id", Text);

const TEXT_PART: (&str, &[Field]) = ("input_text", &[must("text", Text)]);
const IMAGE_PART: (&str, &[Field]) = ("input_image", &[may("detail", DETAILS)]);
const AUDIO_PART: (&str, &[Field]) = ("input_audio", &[]);
const SEALED_PART: (&str, &[Field]) = ("encrypted_content", &[must("encrypted_content", Text)]);

const SAID_PART: (&str, &[Field]) = (
    "output_text",
    &[must("text", Text), may("annotations", List(&Any)), may("logprobs", List(&Any))],
);

const MESSAGE_PARTS: &[(&str, &[Field])] = &[TEXT_PART, SAID_PART, IMAGE_PART, AUDIO_PART];
const OUTPUT_PARTS: &[(&str, &[Field])] = &[TEXT_PART, IMAGE_PART, AUDIO_PART, SEALED_PART];

const CONTENT: Shape = List(&By(|raw, depth| part(raw, depth, MESSAGE_PARTS)));
const ANSWER: Shape = List(&By(|raw, depth| part(raw, depth, OUTPUT_PARTS)));
const OUTPUT: Field = must("output", Shape::Either(&Text, &ANSWER));

/// A part of a message or an output. Images and sounds need an address or the id of a file.
fn part(raw: Raw<'_>, depth: usize, kinds: &'static [(&'static str, &'static [Field])]) -> Check {
    super::check(Tagged(kinds), raw, depth)?;
    let address = match kind(raw)?.as_ref() {
        "input_image" => "image_url",
        "input_audio" => "audio_url",
        _ => return Ok(()),
    };
    let string = |key| raw.member(key).is_some_and(Raw::is_string);
    // A string beside something else was never seen.
    let unclear = |key| raw.member(key).is_some_and(|value| !value.is_string());
    let found = string(address) && !unclear("file_id") || string("file_id") && !unclear(address);
    super::check::is(found, &format!("a string as {address} or file_id"))
}

const KINDS: &[(&str, Kind, &[Field])] = &[
    (
        "message",
        Kind::Message,
        &[
            must("role", Text),
            must("content", CONTENT),
            may("phase", Word(&["commentary", "partial_answer", "final_answer"])),
            ID,
            STATUS,
            SEALED_TEXT,
            PASSTHROUGH,
        ],
    ),
    (
        "agent_message",
        Kind::Message,
        &[
            must("author", Text),
            must("recipient", Text),
            must("content", List(&Tagged(&[TEXT_PART, SEALED_PART]))),
            ID,
            PASSTHROUGH,
        ],
    ),
    (
        "reasoning",
        Kind::Reasoning,
        &[
            must("summary", List(&Tagged(&[("summary_text", &[must("text", Text)])]))),
            may(
                "content",
                List(&Tagged(&[
                    ("reasoning_text", &[must("text", Text)]),
                    ("text", &[must("text", Text)]),
                ])),
            ),
            SEALED_TEXT,
            ID,
            PASSTHROUGH,
        ],
    ),
    (
        "function_call",
        Kind::Call,
        &[
            must("name", Text),
            must("arguments", Text),
            CALL_ID,
            may("namespace", Text),
            may("encrypted_function_args", List(&Text)),
            SEALED_TEXT,
            ID,
            STATUS,
            PASSTHROUGH,
        ],
    ),
    (
        "function_call_output",
        Kind::Output,
        &[CALL_ID, OUTPUT, may("name", Text), may("namespace", Text), ID, PASSTHROUGH],
    ),
    (
        "custom_tool_call",
        Kind::Call,
        &[
            must("name", Text),
            must("input", Text),
            CALL_ID,
            may("namespace", Text),
            SEALED_TEXT,
            ID,
            STATUS,
            PASSTHROUGH,
        ],
    ),
    (
        "custom_tool_call_output",
        Kind::Output,
        &[CALL_ID, OUTPUT, may("name", Text), ID, PASSTHROUGH],
    ),
    (
        "local_shell_call",
        Kind::Call,
        &[
            must("status", Word(&["completed", "in_progress", "incomplete"])),
            must("action", Tagged(&[("exec", SHELL_ACTION)])),
            may("call_id", Text),
            SEALED_TEXT,
            ID,
            PASSTHROUGH,
        ],
    ),
    (
        "tool_search_call",
        Kind::Call,
        &[
            must("execution", Text),
            must("arguments", Any),
            may("call_id", Text),
            SEALED_TEXT,
            ID,
            STATUS,
            PASSTHROUGH,
        ],
    ),
    (
        "tool_search_output",
        Kind::Output,
        &[
            must("execution", Text),
            must("status", Text),
            must("tools", List(&Any)),
            may("call_id", Text),
            ID,
            PASSTHROUGH,
        ],
    ),
    (
        "web_search_call",
        Kind::HostedCall,
        &[may("action", Tagged(SEARCH_ACTIONS)), SEALED_TEXT, ID, STATUS, PASSTHROUGH],
    ),
    (
        "image_generation_call",
        Kind::HostedCall,
        &[
            must("status", Text),
            must("result", Text),
            may("revised_prompt", Text),
            SEALED_TEXT,
            ID,
            PASSTHROUGH,
        ],
    ),
    (
        "additional_tools",
        Kind::Tools,
        &[must("role", Text), must("tools", List(&Any)), ID, PASSTHROUGH],
    ),
    ("compaction", Kind::Sealed, &[must("encrypted_content", Text), ID, PASSTHROUGH]),
    ("compaction_summary", Kind::Sealed, &[must("encrypted_content", Text), ID, PASSTHROUGH]),
    ("context_compaction", Kind::Sealed, &[SEALED_TEXT, ID, PASSTHROUGH]),
];

const SHELL_ACTION: &[Field] = &[
    must("command", List(&Text)),
    may("timeout_ms", Shape::Count),
    may("working_directory", Text),
    may("env", Map(&Text)),
    may("user", Text),
];

/// Other kinds of searches are taken, but sent as `other`.
const SEARCH_ACTIONS: &[(&str, &[Field])] = &[
    ("search", &[may("query", Text), may("queries", List(&Text))]),
    ("open_page", &[may("url", Text)]),
    ("find_in_page", &[may("url", Text), may("pattern", Text)]),
    ("other", &[]),
];

/// Lists and objects around an item: record, payload, history.
const IN_HISTORY: usize = 3;

pub(super) fn item(raw: Raw<'_>) -> Result<Kind, Flaw> {
    item_at(raw, IN_HISTORY)
}

/// An item that the host takes, be it that it sends it as `other`, or not at all.
pub(super) fn taken(raw: Raw<'_>, depth: usize) -> Check {
    let name = kind(raw)?;
    if KINDS.iter().any(|(known, _, _)| *known == name) {
        return item_at(raw, depth).map(|_| ());
    }
    super::check(Any, raw, depth)
}

pub(super) fn item_at(raw: Raw<'_>, depth: usize) -> Result<Kind, Flaw> {
    let name = kind(raw)?;
    let Some((_, kind, fields)) = KINDS.iter().find(|(known, _, _)| *known == name) else {
        return Err(Flaw::here("a kind of item that the host sends on").under("type"));
    };
    object(fields, raw, depth)?;
    Ok(*kind)
}
