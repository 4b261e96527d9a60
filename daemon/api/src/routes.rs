//! The routes of v1, in the form that both axum and `OpenAPI` write them.

/// The daemon's health.
pub const STATUS: &str = "/v1/status";
/// Counters since the start.
pub const STATS: &str = "/v1/stats";
/// The counters in the Prometheus text form.
pub const METRICS: &str = "/v1/metrics";
/// All known sessions.
pub const SESSIONS: &str = "/v1/sessions";
/// One session.
pub const SESSION: &str = "/v1/sessions/{id}";
/// What a compaction would do now, result by result.
pub const EXPLAIN: &str = "/v1/sessions/{id}/explain";
/// What the host's summary should keep of a session.
pub const FOCUS: &str = "/v1/sessions/{id}/focus";
/// The passes of a session.
pub const PASSES: &str = "/v1/sessions/{id}/passes";
/// One pass of a session, and how it ended.
pub const PASS: &str = "/v1/sessions/{id}/passes/{number}";
/// Where a result and its call stand in the transcripts.
pub const RECALL: &str = "/v1/recall/{id}";
/// What the person pinned in a session.
pub const PINS: &str = "/v1/sessions/{id}/pins";
/// Decides a compaction.
pub const COMPACT: &str = "/v1/compact";
/// Forks a Codex thread.
pub const FORK: &str = "/v1/fork";
/// A hook event of a host.
pub const HOOK: &str = "/v1/hooks/{host}/{event}";
/// This API as an `OpenAPI` document.
pub const OPENAPI: &str = "/v1/openapi.json";

/// One method of one route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// HTTP method, upper case.
    pub method: &'static str,
    /// Path with `{…}` for its variable parts.
    pub path: &'static str,
    /// One line for the docs.
    pub summary: &'static str,
}

/// Everything that v1 serves.
pub const ALL: &[Route] = &[
    Route { method: "GET", path: STATUS, summary: "Tells whether the daemon is well" },
    Route { method: "GET", path: STATS, summary: "Gives the counters since the start" },
    Route { method: "GET", path: METRICS, summary: "Gives the counters as Prometheus text" },
    Route { method: "GET", path: SESSIONS, summary: "Lists the known sessions" },
    Route { method: "GET", path: SESSION, summary: "Gives the details of a session" },
    Route {
        method: "GET",
        path: EXPLAIN,
        summary: "Tells what a compaction would do now, and why",
    },
    Route {
        method: "GET",
        path: FOCUS,
        summary: "Gives the text that a host's summary should keep",
    },
    Route { method: "GET", path: PASSES, summary: "Lists the passes of a session" },
    Route { method: "GET", path: PASS, summary: "Gives a pass with all its results" },
    Route { method: "POST", path: PASS, summary: "Tells what the caller did with a pass" },
    Route {
        method: "GET",
        path: RECALL,
        summary: "Tells where a result and its call stand in the transcripts",
    },
    Route { method: "GET", path: PINS, summary: "Lists what is pinned in a session" },
    Route { method: "POST", path: PINS, summary: "Pins a result or all reads of a file" },
    Route { method: "DELETE", path: PINS, summary: "Takes a pin back" },
    Route { method: "POST", path: COMPACT, summary: "Decides a compaction" },
    Route {
        method: "POST",
        path: FORK,
        summary: "Forks a Codex thread with its shortened history",
    },
    Route { method: "POST", path: HOOK, summary: "Answers a hook event of a host" },
    Route { method: "GET", path: OPENAPI, summary: "Gives this API as an OpenAPI document" },
];

/// Puts `values` in place of the `{…}` parts of a route, in order.
///
/// Values must be ids, hosts or event names ([`crate::ids`]): they need no percent encoding.
#[must_use]
pub fn fill(route: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let parts: Vec<&str> = route
        .split('/')
        .map(
            |part| {
                if part.starts_with('{') { values.next().copied().unwrap_or(part) } else { part }
            },
        )
        .collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills() {
        assert_eq!(fill(HOOK, &["claude", "Stop"]), "/v1/hooks/claude/Stop");
        assert_eq!(fill(EXPLAIN, &["abc"]), "/v1/sessions/abc/explain");
        assert_eq!(fill(STATUS, &[]), STATUS);
    }
}
