//! The schemas of a fork.

use serde_json::{Value, json};

use super::super::schema::{boolean, integer, list, may, must, object, reference, string, words};
use super::id;
use crate::words::Level;

/// The schemas by name.
pub(super) fn all() -> Value {
    json!({
        "ForkRequest": object("What to fork.", [
            must("session", id(), "The thread: its id, or enough of it."),
            may("budget", integer(), "Tokens that may be left, counted as tokens_after is; absent: the smaller of 60% of the window and 90% of the host's own threshold, by the host's count."),
            may("profile", reference("Profile"), "Rules to use; the configured ones if absent."),
            may("dry_run", boolean(), "Decide and check only; nothing is written."),
        ]),
        "ForkAnswer": object("A thread under a new id, with the shortened history.", [
            must("thread_id", id(), "Id of the new thread."),
            must("path", string(), "Its rollout; of a dry run where it would be."),
            must("resume_command", string(), "The line that goes on with it, with the model of the source."),
            must("tokens_before", integer(), "Estimated size of the history with the base instructions, before."),
            must("tokens_after", integer(), "The same of what is left; the fork's token_count says it to the host."),
            must("source", reference("ForkSource"), "What the fork was made from."),
            may("model", string(), "Model of the newest turn."),
            may("host_tokens", integer(), "What the host counted last."),
            may("window_tokens", integer(), "The model's window, as the host gives it."),
            must("level", words(Level::ALL), "How far the pass went."),
            may("target", integer(), "Tokens that were to be left, where the rules alone left more."),
            must("over_target", boolean(), "More is left than that: the host may compact soon."),
            must("counters", reference("ForkCounters"), "What went and what stayed."),
            must("items", integer(), "Items of the new history."),
            must("records", integer(), "Records of the new rollout."),
            must("dry_run", boolean(), "Nothing was written."),
            may("notes", list(&string()), "What a person should know beside that."),
        ]),
        "ForkSource": object("What a fork was made from.", [
            must("thread_id", id(), "The thread."),
            must("path", string(), "Its newest file, which is only read."),
            must("live", boolean(), "A running Codex held the thread: what it writes from then on is not in the fork."),
        ]),
        "ForkCounters": object("What a fork's pass did, in numbers.", [
            must("results", integer(), "Tool results in the history."),
            must("kept", integer(), "Of them whole."),
            must("truncated", integer(), "Of them cut to their start."),
            must("dropped", integer(), "Of them gone."),
            must("inputs", integer(), "Calls whose long inputs were shortened."),
            must("texts", integer(), "Texts of the assistant that were shortened."),
        ]),
    })
}
