//! Words that the generated sessions are made of, and the dice.

pub(crate) const VERBS: [&str; 40] = [
    "parse", "load", "store", "fetch", "merge", "split", "render", "resolve", "apply", "update",
    "remove", "insert", "encode", "decode", "flush", "open", "close", "read", "write", "check",
    "build", "start", "stop", "retry", "schedule", "collect", "format", "compare", "sort", "group",
    "filter", "validate", "compute", "convert", "copy", "reset", "lock", "notify", "record",
    "trace",
];

pub(crate) const NOUNS: [&str; 60] = [
    "session", "request", "response", "buffer", "cursor", "header", "token", "config", "index",
    "cache", "entry", "record", "segment", "stream", "socket", "client", "server", "worker",
    "queue", "batch", "timer", "router", "handler", "filter", "schema", "column", "table", "query",
    "result", "error", "user", "account", "invoice", "order", "price", "cart", "payment", "event",
    "metric", "report", "snapshot", "journal", "page", "block", "node", "edge", "graph", "layout",
    "widget", "theme", "locale", "message", "channel", "topic", "offset", "lease", "quota",
    "limit", "window", "budget",
];

pub(crate) const PROSE: [&str; 64] = [
    "the", "a", "this", "that", "it", "is", "was", "are", "be", "has", "had", "will", "would",
    "can", "should", "could", "when", "while", "before", "after", "then", "because", "so", "but",
    "and", "or", "not", "only", "still", "now", "here", "there", "with", "without", "from", "into",
    "over", "under", "first", "last", "next", "same", "other", "new", "old", "value", "path",
    "file", "line", "call", "test", "change", "case", "branch", "loop", "state", "type", "field",
    "list", "map", "caller", "problem", "reason", "place",
];

/// Numbers from a seed (splitmix64): the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    /// Small numbers more often.
    pub(crate) fn low(&mut self, end: usize) -> usize {
        let (a, b) = (self.below(end), self.below(end));
        a.min(b)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}
