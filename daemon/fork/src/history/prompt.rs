//! Which messages are prompts: only they start a turn that the host can take back.

use compactd_core::record::json::Raw;
use compactd_core::record::{Item as Part, Role, Row};

/// Start and end of the texts that the host itself puts in as a user's (SEEN in 0.171). One that has
/// only the start is a person's.
const OWN: [(&str, &str); 10] = [
    ("<environment_context>", "</environment_context>"),
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<hook_prompt", "</hook_prompt>"),
    ("<skill>", "</skill>"),
    ("<goal_context>", "</goal_context>"),
    ("<codex_internal_context", "</codex_internal_context>"),
    ("<recommended_plugins>", "</recommended_plugins>"),
];

/// What the host puts before a summary of its own.
const SUMMARY: &str = "Another language model started to solve this problem and produced a summary";

/// Does the item, read as `row`, start a turn? Words of another agent do.
pub(super) fn is_prompt(raw: Raw<'_>, row: &Row<'_>) -> bool {
    match raw.kind().as_deref() {
        Some("agent_message") => true,
        Some("message") => {
            let is_own = |part: &Part<'_>| matches!(part, Part::Text(text) if is_own(text));
            row.role == Role::User && !row.meta && !row.items.iter().any(is_own)
        }
        _ => false,
    }
}

fn is_own(text: &str) -> bool {
    let text = text.trim();
    let is = |part: Option<&str>, mark: &str| part.is_some_and(|it| it.eq_ignore_ascii_case(mark));
    let is_between = |(start, end): &(&str, &str)| {
        // `<hook_prompter>` is another tag.
        let is_name_over = start.ends_with('>')
            || !text.as_bytes().get(start.len()).is_some_and(u8::is_ascii_alphanumeric);
        is(text.get(..start.len()), start)
            && is_name_over
            && is(text.len().checked_sub(end.len()).and_then(|at| text.get(at..)), end)
    };
    text.starts_with(SUMMARY) || OWN.iter().any(is_between)
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn what_the_host_puts_in_is_closed() {
        for text in [
            "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
            " <TURN_ABORTED>\nx</turn_aborted>\n",
            "<user_shell_command>\n<command>ls</command></user_shell_command>",
            "<subagent_notification>{}</subagent_notification>",
            "<hook_prompt hook_run_id=\"stop:0\">go on</hook_prompt>",
            "<skill>\n<name>x</name></skill>",
            "<codex_internal_context source=\"user_goal\">x</codex_internal_context>",
            "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
            "Another language model started to solve this problem and produced a summary of it",
        ] {
            assert!(is_own(text), "{text}");
        }
        for text in [
            "",
            "é",
            "<skill> please explain this tag",
            "<skill>x</skill> what is it?",
            "say <skill>x</skill>",
            "<hook_prompter>x</hook_prompt>",
            "<environment_context>x</skill>",
            "<user_instructions>x</user_instructions>",
            "# AGENTS.md instructions are wrong",
            "<div>x</div>",
        ] {
            assert!(!is_own(text), "{text}");
        }
    }
}
