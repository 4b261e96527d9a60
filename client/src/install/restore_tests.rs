use super::*;

#[test]
fn what_the_host_prints_again_is_the_same() {
    for (before, now) in [
        ("", "{}"),
        (" \n", "{}\n"),
        ("", r#"{"enabledPlugins":{},"extraKnownMarketplaces":{}}"#),
        ("{\t\"a\" : 1 ,\n\"b\":[1.0,1e5] }", "{\n  \"b\": [1, 100000],\n  \"a\": 1\n}\n"),
        ("\u{feff}{\"a\":\"\\u00e9\\/\"}", "{\"a\":\"é/\"}"),
        (r#"{"a":12345678901234567890}"#, r#"{"a":12345678901234567000}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"😀"}"#),
        (r#"{"a":"\ud800"}"#, r#"{"a":"\uD800"}"#.to_lowercase().as_str()),
        (r#"{"a":"\\ud800 \\\\ \""}"#, "{\n\"a\":\"\\\\ud800 \\\\\\\\ \\\"\"}"),
        // Ours was there, switched off: it goes with us, and comes back with the bytes.
        (
            r#"{"enabledPlugins":{"compactd@compactd":false,"x@y":true}}"#,
            r#"{"enabledPlugins":{"x@y":true}}"#,
        ),
        (r#"{"a":1}"#, r#"{"a":1,"declinedPlugins":["compactd@compactd"]}"#),
        (r#"{"version":2,"plugins":{}}"#, r#"{"version":2,"plugins":{"compactd@compactd":[]}}"#),
    ] {
        assert!(same(before.as_bytes(), now.as_bytes()), "{before} and {now}");
    }
}

#[test]
fn what_somebody_else_changed_is_not_the_same() {
    for (before, now) in [
        ("{}", r#"{"model":"opus"}"#),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
        (r#"{"a":1}"#, r#"{"a":"1"}"#),
        (r#"{"a":1}"#, r#"{"a":1.5}"#),
        (r#"{"a":null}"#, "{}"),
        (r#"{"a":"\ud800"}"#, r#"{"a":"\ud801"}"#),
        (r#"{"a":"\ud800"}"#, r#"{"a":"\ude00"}"#),
        (r#"{"enabledPlugins":{"x@y":true}}"#, r#"{"enabledPlugins":{"x@y":false}}"#),
        (r#"{"enabledPlugins":{"x@y":true}}"#, "{}"),
        (r#"{"compactd":1}"#, "{}"),
        (r#"{"declinedPlugins":["x@y"]}"#, "{}"),
        ("{", "{"),
        ("// x\n{}", "{}"),
    ] {
        assert!(!same(before.as_bytes(), now.as_bytes()), "{before} and {now}");
    }
}

#[test]
fn what_the_host_could_not_keep_is_a_problem() {
    for good in ["", "\n", "{}", "\u{feff}{\"a\":1}", r#"{"a":"\ud800"}"#] {
        assert_eq!(problem(good.as_bytes()), None, "{good}");
    }
    for bad in ["null", "[]", "{", "{\"a\":1,}", "// x\n{}", "{} x"] {
        assert!(problem(bad.as_bytes()).is_some(), "{bad}");
    }
    assert!(problem(b"{\"a\":\"\xff\"}").is_some());
}

fn decide(
    before: Option<&str>,
    untouched: bool,
    found: Option<&str>,
    now: Option<&str>,
) -> Verdict {
    verdict(History {
        before: before.map(str::as_bytes),
        untouched_since: untouched,
        found: found.map(str::as_bytes),
        now: now.map(str::as_bytes),
    })
}

#[test]
fn each_file_goes_back_only_where_nothing_else_happened() {
    use Verdict::{Leave, PutBack, Remove, Same};
    let (x, printed, other) = (Some("{ \"a\":1}"), Some("{\n  \"a\": 1\n}"), Some("{\"a\":2}"));
    let empty = Some("{}");
    for (before, untouched, found, now, expected) in [
        (x, true, printed, x, Same),
        (None, true, None, None, Same),
        (x, false, printed, printed, PutBack),
        (x, true, printed, other, Leave),
        (x, true, printed, None, Leave),
        (None, false, printed, empty, Remove),
        (None, true, printed, printed, Remove),
        (None, true, printed, other, Leave),
        (None, false, printed, printed, Leave),
        (empty, true, printed, empty, Same),
        (Some(" {} "), true, printed, empty, PutBack),
    ] {
        let got = decide(before, untouched, found, now);
        assert_eq!(got, expected, "{before:?} {untouched} {found:?} {now:?}");
    }
}
