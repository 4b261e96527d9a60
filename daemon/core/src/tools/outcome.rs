//! Does the output of a test run tell of a failure? In doubt it does: the run then stays whole.

/// Text that means failure wherever it stands.
const MARKS: [&str; 14] = [
    "panicked at",
    "Traceback (most recent call last)",
    "error[E",
    "npm ERR!",
    "npm error",
    "ELIFECYCLE",
    "command not found",
    "No such file or directory",
    "core dumped",
    "Segmentation fault",
    "could not compile",
    "test run failed",
    "Build failed",
    "FAILURES",
];

/// What a line starts with, blanks aside, when it tells of a failure.
const STARTS: [&str; 14] = [
    "✗",
    "✘",
    "✕",
    "✖",
    "×",
    "❌",
    "not ok",
    "error:",
    "Error:",
    "ERROR",
    "E   ",
    "FATAL",
    "fatal:",
    "make: ***",
];

/// The text of a test run shows that something failed.
#[must_use]
pub fn shows_failure(text: &str) -> bool {
    MARKS.iter().any(|mark| memchr::memmem::find(text.as_bytes(), mark.as_bytes()).is_some())
        || text.lines().any(|line| {
            let trimmed = line.trim_start();
            STARTS.iter().any(|start| trimmed.starts_with(start)) || tells(line)
        })
}

/// `FAIL` or `FAILED` as a word without a 0 before it; a number above 0 before `failed`, `failing`,
/// `failure(s)`, `error(s)`; or behind `failures=`, `failures:`, `fail` and the like.
fn tells(line: &str) -> bool {
    let mut before = "";
    let mut earlier = "";
    // Nothing but `:`, `=` and blanks stands between the last word and this one.
    let mut near = false;
    let outside = |c: char| !c.is_alphanumeric() && c != '_';
    for piece in line.split_inclusive(outside) {
        let word = piece.trim_end_matches(outside);
        let gap = piece.ends_with([':', '=', ' ']);
        if word.is_empty() {
            near &= gap;
            continue;
        }
        let counted = match word {
            "FAIL" | "FAILED" | "FAILURE" | "FAILING" => {
                if number(before).is_none() {
                    return true;
                }
                true
            }
            _ => ["failed", "failing", "failures", "failure", "fail", "errors", "error", "errored"]
                .iter()
                .any(|name| word.eq_ignore_ascii_case(name)),
        };
        // "2 failed", "2 tests failed", "2 test suites failed" …
        let subject = before.starts_with("test") || before.starts_with("suite");
        let count = if subject { earlier } else { before };
        if counted && number(count).is_some_and(|some| some) {
            return true;
        }
        // "failures: 1", "failures=1", "# fail 1"
        let names = ["failed", "failures", "failure", "fail", "errors", "errored"];
        if number(word) == Some(true)
            && names.iter().any(|name| before.eq_ignore_ascii_case(name))
            && near
        {
            return true;
        }
        earlier = before;
        before = word;
        near = gap;
    }
    false
}

/// A decimal number: is it above 0?
fn number(word: &str) -> Option<bool> {
    (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
        .then(|| word.bytes().any(|b| b != b'0'))
}
