//! The settings of a turn. The host drops a `turn_context` that is not sound, and then puts its
//! whole initial context behind the history once more.

use super::super::super::json::Raw;
use super::check::{Check, Field, Shape, could, is, may, must, object};
use super::meta::{AGENT_VERSIONS, absolute};
use super::records::IN_RECORD;

use Shape::{By, Count, Either, Flag, List, Object, Tagged, Text, Word};

const PATH: Shape = By(|raw, _| absolute(raw));
const NAME: Shape = By(|raw, _| is(raw.text().is_some_and(|it| !it.is_empty()), "some text"));

const TURN_CONTEXT: &[Field] = &[
    must("cwd", PATH),
    must("model", NAME),
    must(
        "approval_policy",
        Either(&Word(&["untrusted", "on-failure", "on-request", "never"]), &GRANULAR),
    ),
    may("turn_id", Text),
    may("root_turn_id", Text),
    // One that is not the model's makes the host compact.
    may("comp_hash", Text),
    may("disabled_plugin_ids", List(&Text)),
    may("approvals_reviewer", Word(&["user", "auto_review", "guardian_subagent"])),
    may("permission_profile", By(profile)),
    may("file_system_sandbox_policy", By(file_system_policy)),
    may("active_permission_profile", Object(&[must("id", Text), may("extends", Text)])),
    may("sandbox_policy", Tagged(SANDBOXES)),
    may("collaboration_mode", COLLABORATION),
    may("multi_agent_version", Word(AGENT_VERSIONS)),
    may("realtime_active", Flag),
    may("effort", NAME),
    may("summary", Word(&["auto", "concise", "detailed", "none"])),
    may("cyber_access_program", By(|_, _| is(false, "nothing"))),
];

const GRANULAR: Shape = Object(&[must(
    "granular",
    Object(&[
        must("sandbox_approval", Flag),
        must("rules", Flag),
        must("mcp_elicitations", Flag),
        could("skill_approval", Flag),
        could("request_permissions", Flag),
    ]),
)]);

const COLLABORATION: Shape = Object(&[
    must("mode", Word(&["default", "plan", "code", "pair_programming", "execute", "custom"])),
    must(
        "settings",
        Object(&[
            must("model", Text),
            may("reasoning_effort", NAME),
            may("developer_instructions", Text),
        ]),
    ),
]);

/// Older versions wrote `mode` in place of `type`: the host does not take that any more.
const SANDBOXES: &[(&str, &[Field])] = &[
    ("danger-full-access", &[]),
    ("read-only", &[could("network_access", Flag)]),
    ("external-sandbox", &[could("network_access", Word(NETWORK))]),
    (
        "workspace-write",
        &[
            could("writable_roots", List(&PATH)),
            could("network_access", Flag),
            could("exclude_tmpdir_env_var", Flag),
            could("exclude_slash_tmp", Flag),
        ],
    ),
];

const NETWORK: &[&str] = &["restricted", "enabled"];

const ENTRIES: Shape = List(&Object(&[
    must("access", Word(&["read", "write", "none", "deny"])),
    must(
        "path",
        Tagged(&[
            ("path", &[must("path", PATH)]),
            ("glob_pattern", &[must("pattern", Text)]),
            (
                "special",
                &[must("value", Object(&[must("kind", Word(PLACES)), may("subpath", Text)]))],
            ),
        ]),
    ),
]));

const PLACES: &[&str] = &[
    "root",
    "minimal",
    "current_working_directory",
    "project_roots",
    "slash_tmp",
    "tmpdir",
    "unknown",
];

const PROFILES: &[(&str, &[Field])] = &[
    ("disabled", &[]),
    ("external", &[must("network", Word(NETWORK))]),
    (
        "managed",
        &[
            must("network", Word(NETWORK)),
            must(
                "file_system",
                Tagged(&[
                    ("unrestricted", &[]),
                    ("restricted", &[must("entries", ENTRIES), may("glob_scan_max_depth", Count)]),
                ]),
            ),
        ],
    ),
];

pub(super) fn turn_context(payload: Raw<'_>) -> Check {
    object(TURN_CONTEXT, payload, IN_RECORD)
}

const OLDER_PROFILE: &[Field] = &[
    may("network", Object(&[may("enabled", Flag)])),
    may("file_system", Object(&[may("entries", ENTRIES)])),
];

/// A profile with a `type`, or as older versions wrote it, without.
fn profile(raw: Raw<'_>, depth: usize) -> Check {
    if raw.member("type").is_some() {
        return super::check(Tagged(PROFILES), raw, depth);
    }
    let is_older = raw.members().all(|(key, value)| {
        matches!(key.as_ref(), "network" | "file_system") && (value.is_object() || value.is_null())
    });
    is(is_older, "an object with a `type`")?;
    object(OLDER_PROFILE, raw, depth)
}

fn file_system_policy(raw: Raw<'_>, depth: usize) -> Check {
    let fields = [
        must("kind", Word(&["restricted", "unrestricted", "external-sandbox"])),
        could("entries", ENTRIES),
        may("glob_scan_max_depth", Count),
    ];
    object(&fields, raw, depth)
}
