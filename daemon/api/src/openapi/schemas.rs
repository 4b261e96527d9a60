//! The schema of every body.

mod fork;
mod ledger;

use serde_json::{Value, json};

use super::schema::{
    boolean, integer, list, may, must, numbers, object, pattern, reference, string, time, words,
};
use crate::compact::Outcome;
use crate::error::ErrorCode;
use crate::sessions::{RecoveryState, SessionState, WatchMode};
use crate::words::{CallFate, DecisionKind, History, Host, Level, Profile, Role, Trigger};
use crate::{IDS_MAX, PROTOCOL};

/// All schemas by name.
pub(super) fn all() -> Value {
    let mut all = json!({
        "ErrorCode": words(ErrorCode::ALL),
        "ErrorBody": error_body(),
        "Host": words(Host::ALL),
        "Profile": words(Profile::ALL),
        "History": words(History::ALL),
        "DecisionKind": words(DecisionKind::ALL),
        "CallFate": words(CallFate::ALL),
        "Level": words(Level::ALL),
        "HookRequest": hook_request(),
    });
    for more in
        [compact(), status(), stats(), sessions(), explain(), pins(), fork::all(), ledger::all()]
    {
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
    }
    all
}

fn id() -> Value {
    pattern("^[A-Za-z0-9._-]{1,128}$")
}

fn error_body() -> Value {
    let error = object(
        "What went wrong.",
        [
            must("code", reference("ErrorCode"), "For programs."),
            must("message", string(), "For people; never content of a transcript."),
            may("hint", string(), "What the caller can do."),
        ],
    );
    object(
        "The body of every answer that is no success.",
        [
            must("error", error, "What went wrong."),
            must("request_id", string(), "Id of the request, as in the log."),
        ],
    )
}

fn hook_request() -> Value {
    object(
        "What the shim hands over.",
        [
            may(
                "input",
                json!({ "type": ["object", "null"] }),
                "What the host gave the hook on stdin; null if that was no JSON.",
            ),
            may(
                "env",
                json!({ "type": "object", "additionalProperties": string() }),
                "The forwarded variables of the hook's process.",
            ),
        ],
    )
}

fn compact() -> Value {
    json!({
        "CompactRequest": compact_request(),
        "ContextUsage": object("Size of the context, in the model's tokens.", [
            may("tokens", integer(), "What is in it, as the newest answer counted it."),
            may("window", integer(), "What fits."),
        ]),
        "Row": object("One row of the context: what the host calls a message.", [
            may("row", string(), "The host's name for it (a row's uuid); absent if it has none."),
            must("role", words(Role::ALL), "Whose row it is."),
            may("ids", list(&string()), "`assistant`: ids of its tool calls; `user`: ids of the calls whose results it holds."),
            may("chars", integer(), "Characters of its text, results included; 0 if absent."),
            may("is_error", boolean(), "A result in it is an error; false if absent."),
        ]),
        "CompactAnswer": compact_answer(),
        "ResultDecision": result_decision(),
        "LeafCut": numbers(4, "Where one string of a call's input is cut: its place among the strings and numbers of the input from 0, its whole length in UTF-16 units (a caller that finds another leaves the call alone), where it is cut in UTF-16 units, and the characters that go (the number in its note)."),
        "TextCut": numbers(3, "Where the text of one assistant row is cut: the row's place among the rows of the request from 0, the characters (Unicode scalar values) of its text (a caller that finds another length leaves it alone), and how many of them stay, with a note behind them."),
        "Attached": json!({
            "type": "array",
            "description": "A text that only the host keeps: the place among the rows of the request, from 0, of the row that it stands behind, and the text.",
            "prefixItems": [integer(), string()],
            "minItems": 2,
            "maxItems": 2,
        }),
        "Counters": object("Sums over the results of a context.", [
            must("results", integer(), "Results looked at."),
            must("kept", integer(), "That stay whole."),
            must("truncated", integer(), "That are cut."),
            must("dropped", integer(), "That go."),
            must("chars_before", integer(), "Characters of the context before."),
            must("chars_after", integer(), "And after."),
            must("tokens_before", integer(), "Tokens of the context before: the host's count, else an estimate."),
            must("tokens_after", integer(), "And after: less what the removed characters are estimated at."),
            may("budget", integer(), "Tokens that may be left, where window or threshold are known."),
            must("micros", integer(), "Time that the decision took, in microseconds."),
        ]),
    })
}

fn compact_request() -> Value {
    let about = format!("A request to decide a compaction, with at most {IDS_MAX} ids in all.");
    object(
        &about,
        [
            must("host", reference("Host"), "Who asks."),
            must("session", id(), "The session's id."),
            must("transcript", string(), "Absolute path of its transcript."),
            must("trigger", words(Trigger::ALL), "What started the compaction."),
            may("agent", id(), "The sub-agent whose context it is; the session's own if absent."),
            may("instructions", string(), "What the person typed behind `/compact`."),
            may("usage", reference("ContextUsage"), "What the host says about its context."),
            may("threshold", integer(), "Tokens at which the host compacts by itself."),
            may("profile", reference("Profile"), "Rules to use instead of the configured ones."),
            must("rows", list(&reference("Row")), "The rows of the context, in order."),
        ],
    )
}

fn compact_answer() -> Value {
    let ordinal = json!({ "type": ["integer", "null"], "minimum": 0 });
    object(
        "What may go.",
        [
            must(
                "protocol",
                json!({ "type": "integer", "minimum": PROTOCOL }),
                "Protocol of the answer.",
            ),
            must("compaction", integer(), "Number of this compaction in the daemon's ledger."),
            must(
                "outcome",
                words(Outcome::ALL),
                "`apply`: apply the decisions. `skip`: leave the context as it is. `escalate`: apply them, then let the host summarise. `unready`: let the host do what it does.",
            ),
            may("reason", string(), "Why, where it is not plain."),
            may("level", reference("Level"), "How far the pass had to go."),
            must(
                "ordinals",
                list(&ordinal),
                "For each row of the request, in order, the number of the API message it belongs to; null where the daemon does not have the row.",
            ),
            may("unknown", list(&string()), "Ids of the request that the daemon does not have."),
            must(
                "decisions",
                list(&reference("ResultDecision")),
                "What happens to the results that do not stay whole, in the order of the context.",
            ),
            may(
                "texts",
                list(&reference("TextCut")),
                "Assistant texts that are shortened, in the order of the context.",
            ),
            may(
                "opaque",
                list(&string()),
                "Ids of the request whose result holds something that is no text.",
            ),
            may(
                "attached",
                list(&reference("Attached")),
                "Texts that the host keeps beside its messages and hands to no plugin.",
            ),
            may("focus", string(), "What a summary should look at, where one is to be made."),
            must("counters", reference("Counters"), "Sums."),
        ],
    )
}

fn result_decision() -> Value {
    object(
        "What happens to one result.",
        [
            must("id", string(), "Id that joins call and result."),
            must("decision", reference("DecisionKind"), "`truncate` or `drop`."),
            must("rule", string(), "The rule that decided."),
            must(
                "chars",
                integer(),
                "Characters (Unicode scalar values) of the result as the daemon read it; a caller whose text has another length leaves the result alone.",
            ),
            may("cut_utf16", integer(), "`truncate`: where the text is cut, in UTF-16 units."),
            must("call", reference("CallFate"), "What becomes of the call."),
            may(
                "leaves",
                list(&reference("LeafCut")),
                "`call: shortened`: which parts of its input are cut.",
            ),
            may("removed", integer(), "`truncate`: characters that go, a number in its note."),
        ],
    )
}

fn status() -> Value {
    json!({
        "Status": object("The daemon's health.", [
            must("version", string(), "Version of the daemon."),
            must("protocol", integer(), "Protocol it speaks."),
            must("pid", integer(), "Its process."),
            must("started_at", time(), "When it started."),
            must("healthy", boolean(), "Nothing is wrong."),
            may("problems", list(&string()), "What is wrong."),
            must("sessions", reference("SessionCounts"), "Sessions."),
            must("memory", reference("Memory"), "Memory."),
            must("socket", string(), "Where it listens."),
            may("roots", list(&string()), "The folders in which it looks for transcripts."),
            must("watching", reference("Watching"), "How it learns of changes."),
        ]),
        "SessionCounts": object("How many sessions there are.", [
            must("known", integer(), "Found on disk."),
            must("indexed", integer(), "With an index that is up to date."),
            must("bulk_queue", integer(), "Waiting to be indexed."),
        ]),
        "Memory": object("Memory of the indexes.", [
            must("index_bytes", integer(), "In use."),
            must("budget_bytes", integer(), "Allowed."),
        ]),
        "Watching": object("How the daemon learns of changes.", [
            must("mode", words(WatchMode::ALL), "By which means."),
            must("dirs", integer(), "In how many folders."),
        ]),
    })
}

fn stats() -> Value {
    json!({
        "Stats": stats_object(),
        "OutcomeCounts": object("Compactions by outcome.", [
            may("apply", integer(), "Decisions were given."),
            may("skip", integer(), "Nothing worth doing."),
            may("escalate", integer(), "Decisions, and the host's summary."),
            may("unready", integer(), "The session was not known well enough."),
        ]),
        "Times": object("A spread of times in microseconds.", [
            may("count", integer(), "How many."),
            may("p50", integer(), "The median."),
            may("p99", integer(), "99 of 100 were not longer."),
            may("max", integer(), "The longest."),
        ]),
        "HookCounts": object("Hook requests by answer.", [
            may("text", integer(), "With text to print."),
            may("silent", integer(), "With nothing to print."),
        ]),
        "SkipCounts": object("Lines that held nothing for an index, by reason.", [
            may("blank", integer(), "White space."),
            may("malformed", integer(), "No JSON object."),
            may("too_long", integer(), "Longer than a line may be."),
            may("bookkeeping", integer(), "The host's own book-keeping."),
            may("unknown", integer(), "A kind that this version does not know."),
            may("odd", integer(), "A known kind of another shape."),
        ]),
    })
}

fn stats_object() -> Value {
    object(
        "Counters since the start; a missing one is 0.",
        [
            may("uptime_s", integer(), "Seconds since the start."),
            may("requests", integer(), "Requests served, errors included."),
            may("errors", integer(), "Requests that ended in an error."),
            may("compactions", reference("OutcomeCounts"), "Compactions by outcome."),
            may("results_truncated", integer(), "Results cut by them."),
            may("results_dropped", integer(), "Results dropped by them."),
            may("tokens_freed", integer(), "Tokens freed by them, estimated."),
            may("compact_micros", reference("Times"), "Times of compaction requests."),
            may("hooks", reference("HookCounts"), "Hook requests by answer."),
            may("bytes_read", integer(), "Bytes of transcripts read."),
            may("lines_read", integer(), "Lines of transcripts read."),
            may("skipped", reference("SkipCounts"), "Lines that held nothing for an index."),
            may("rebuilds", integer(), "Indexes built again because their file was rewritten."),
            may("broken", integer(), "Sessions that cannot be indexed."),
            may("snapshots_loaded", integer(), "Indexes loaded from disk."),
            may("snapshots_saved", integer(), "Indexes saved to disk."),
        ],
    )
}

fn sessions() -> Value {
    let mut details = object(
        "One session, with what a list has and more.",
        [
            may("host_version", string(), "Version of the host that wrote it last."),
            may("model", string(), "Model that answered last."),
            may("parent", string(), "The thread that this one was forked or spawned from."),
            may("context_tokens", integer(), "Tokens of the context as the host last said."),
            may("window_tokens", integer(), "Tokens that fit, where the host says it."),
            must("index_bytes", integer(), "Memory of its index."),
            must("boundaries", integer(), "Compactions in its file."),
            may(
                "compaction",
                integer(),
                "Number of its newest compaction that is known to have happened.",
            ),
            may(
                "recovery",
                reference("Recovery"),
                "The text that its agent gets behind a compaction of the host, where one was kept.",
            ),
            must("rebuilds", integer(), "How often its index was built again."),
            must("pins", integer(), "Pins that the person set."),
            must("skipped", reference("SkipCounts"), "Lines that held nothing for the index."),
            may("problem", string(), "`state: broken`: why, without content."),
        ],
    );
    details["allOf"] = json!([reference("SessionItem")]);
    json!({
        "SessionList": object("The known sessions.", [
            must("sessions", list(&reference("SessionItem")), "The newest first."),
        ]),
        "SessionItem": session_item(),
        "SessionDetails": details,
        "Recovery": object("How far the newest text is that an agent gets behind a compaction of its host.", [
            must("compaction", integer(), "Number of the compaction that it is for."),
            must("state", words(RecoveryState::ALL), "`kept`: written; the compaction is not over, or came to nothing. `pending`: it is over, the agent has not got the text yet. `delivered`: the agent got it."),
        ]),
    })
}

fn session_item() -> Value {
    object(
        "One session in a list.",
        [
            must("id", id(), "The session's or thread's id."),
            must("host", reference("Host"), "Whose session it is."),
            must("path", string(), "Its file."),
            may("cwd", string(), "Where the host ran, if known."),
            must("size_bytes", integer(), "Size of the file."),
            must("indexed_bytes", integer(), "How far it is indexed."),
            must("lines", integer(), "Lines read."),
            must("messages", integer(), "API messages in the context."),
            must("results", integer(), "Tool results in the context."),
            must("updated_at", time(), "When it last changed."),
            must("state", words(SessionState::ALL), "How well the daemon knows it."),
            may("agent", id(), "The sub-agent whose file it is."),
        ],
    )
}

fn explain() -> Value {
    json!({
        "Explain": object("What a compaction would do now.", [
            must("host", reference("Host"), "Whose session it is."),
            must("session", id(), "Its id."),
            must("profile", reference("Profile"), "Rules used."),
            must("history", reference("History"), "Which part was looked at."),
            must("lines", integer(), "Lines read."),
            must("messages", integer(), "API messages."),
            must("results", list(&reference("ExplainedResult")), "Every result, in order."),
            must("totals", reference("Totals"), "Sums."),
            may("escalation", reference("Escalation"), "How far the pass went for the budget that was given."),
        ]),
        "Escalation": object("A pass that had to fit a budget.", [
            must("budget", integer(), "Tokens that may be left."),
            must("left", integer(), "Tokens that are left, estimated."),
            must("level", reference("Level"), "How far it went."),
            may("texts", list(&reference("ShortenedText")), "Assistant texts that are shortened."),
        ]),
        "ShortenedText": object("One assistant text that is shortened.", [
            must("line", integer(), "Line of the transcript, from 0."),
            must("chars", integer(), "Its characters."),
            must("keep", integer(), "So many of them stay."),
        ]),
        "ExplainedResult": object("What would happen to one result, and why.", [
            must("id", string(), "Id that joins call and result."),
            must("tool", string(), "The tool."),
            must("chars", integer(), "Characters of the result."),
            must("tokens_est", integer(), "Its tokens, estimated."),
            must("decision", reference("DecisionKind"), "What would happen."),
            must("call", reference("CallFate"), "What would become of its call."),
            must("rule", string(), "The rule that decided."),
            must("reason", string(), "Why, in words."),
            may("left", string(), "The text that would be left where it is not kept."),
        ]),
        "Totals": object("Sums over the results of a session.", [
            must("results", integer(), "Results looked at."),
            must("kept", integer(), "That stay whole."),
            must("truncated", integer(), "That are cut."),
            must("dropped", integer(), "That go."),
            must("pinned", integer(), "Of the kept: those that no rule may touch."),
            must("chars_before", integer(), "Characters before."),
            must("chars_after", integer(), "And after."),
            must("tokens_before", integer(), "Tokens before, estimated."),
            must("tokens_after", integer(), "And after."),
        ]),
    })
}

fn pins() -> Value {
    let mut pin = object(
        "One thing that the person wants kept: either an id or a file.",
        [
            may("id", string(), "The result of this call."),
            may("file", string(), "Every read of this file."),
        ],
    );
    pin["oneOf"] = json!([{ "required": ["id"] }, { "required": ["file"] }]);
    json!({
        "Pin": pin,
        "Pins": object("What is pinned now.", [
            must("pins", list(&reference("Pin")), "In the order in which they were set."),
        ]),
    })
}
