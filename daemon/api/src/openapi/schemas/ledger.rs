//! The schemas of passes, recall and the focus text.

use serde_json::{Value, json};

use super::super::schema::{
    boolean, integer, list, may, must, number, object, reference, string, time, words,
};
use super::id;
use crate::compact::Outcome;
use crate::passes::{PassState, ReportOutcome};
use crate::words::Trigger;

/// The schemas by name.
pub(super) fn all() -> Value {
    let mut pass = object(
        "One pass with all its results.",
        [
            must("host", reference("Host"), "Whose session it is."),
            must("session", id(), "Its id; a sub-agent's own."),
            must("results", list(&reference("PassResult")), "Every result, in order."),
        ],
    );
    pass["allOf"] = json!([reference("PassItem")]);
    json!({
        "PassList": object("The passes of a session.", [
            must("host", reference("Host"), "Whose session it is."),
            must("session", id(), "Its id; a sub-agent's own."),
            must("passes", list(&reference("PassItem")), "The newest first."),
        ]),
        "PassItem": pass_item(),
        "Pass": pass,
        "PassResult": object("What was decided about one result, and why.", [
            must("id", string(), "Id that joins call and result."),
            must("tool", string(), "The tool."),
            must("chars", integer(), "Characters of the result before the pass."),
            must("decision", reference("DecisionKind"), "What was decided."),
            must("call", reference("CallFate"), "What became of its call."),
            must("rule", string(), "The rule that decided."),
            must("reason", string(), "Why, in words."),
        ]),
        "PassReport": pass_report(),
        "Focus": object("What the host's own summary should keep word for word.", [
            may("focus", string(), "The text; absent where there is nothing to keep."),
        ]),
        "Recall": object("Where a result and its call stand.", [
            must("id", string(), "The id that was asked for."),
            must("found", list(&reference("RecallSession")), "The sessions that hold it, the newest first."),
            must("unread", integer(), "Known sessions that were not looked into: they have no index in memory."),
        ]),
        "RecallSession": object("One session that holds the id.", [
            must("host", reference("Host"), "Whose session it is."),
            must("session", id(), "Its id; a sub-agent's own."),
            may("parent", id(), "The session that a sub-agent belongs to."),
            must("files", list(&string()), "The files of its history, the oldest first."),
            must("results", list(&reference("ResultPlace")), "The rows that hold the result, in the order of the history."),
            must("calls", list(&integer()), "Offsets of the rows that hold the call."),
        ]),
        "ResultPlace": object("A row that holds a result.", [
            must("offset", integer(), "Byte at which the row's line starts, in one of the files."),
            must("chars", integer(), "Characters of the result there."),
            must("noted", boolean(), "It is a note of an earlier pass, not the result itself."),
        ]),
    })
}

fn pass_item() -> Value {
    object(
        "One pass in a list.",
        [
            must("number", integer(), "Number of the compaction: boundaries before it, and one."),
            must("at", time(), "When the answer was given."),
            must("trigger", words(Trigger::ALL), "What started the compaction."),
            must("outcome", words(Outcome::ALL), "What the answer asked the caller to do."),
            may(
                "level",
                string(),
                "How far the pass went; absent where the rules alone were asked.",
            ),
            must("profile", reference("Profile"), "Rules used."),
            must(
                "state",
                words(PassState::ALL),
                "`answered`: nothing was heard since. `applied`: the decisions became the new context. `handed_over`: the host's own summary was asked for. `left`: the host went on without the pass. `unknown`: nobody will tell any more.",
            ),
            must("focus", boolean(), "A focus text was handed to the caller."),
            may("reason", string(), "Why the outcome is what it is."),
            must("counters", reference("Counters"), "Sums of the answer."),
            may("report", reference("PassReport"), "What the caller says it did."),
        ],
    )
}

fn pass_report() -> Value {
    object(
        "What the caller did with an answer; sizes are its own.",
        [
            must("outcome", words(ReportOutcome::ALL), "What it did."),
            may(
                "host",
                reference("Host"),
                "Whose session it is, where the id alone does not tell.",
            ),
            may("agent", id(), "The sub-agent whose context it is; the session's own if absent."),
            may("kept", integer(), "Results that stayed whole."),
            may("truncated", integer(), "Results that were cut."),
            may("dropped", integer(), "Results that went."),
            may(
                "left_alone",
                integer(),
                "Results that were decided and stayed whole all the same: their text was not the decided one.",
            ),
            may("chars_before", integer(), "Characters of the context before."),
            may("chars_after", integer(), "And after."),
            may("tokens_before", integer(), "Tokens of the context before."),
            may("tokens_after", integer(), "And after."),
            may("millis", number(), "Milliseconds that it took in the caller."),
        ],
    )
}
