//! Every kind of term, at its edges (§3).

use super::terms;

fn sorted(text: &str) -> Vec<String> {
    let mut found = terms(text).into_iter().collect::<Vec<_>>();
    found.sort();
    found
}

fn none(text: &str) {
    assert_eq!(sorted(text), Vec::<String>::new(), "{text:?}");
}

fn one(text: &str, term: &str) {
    assert_eq!(sorted(text), [term], "{text:?}");
}

#[test]
fn paths() {
    one("see src/lib.rs.", "src/lib.rs");
    one("(/etc/hosts)", "/etc/hosts");
    one("https://example.org/a/b/", "example.org/a/b");
    none("https://example.org/ab/");
    one("a ~/abc/ b", "~/abc");
    one("./run", "./run");
    one("a/b/c", "a/b/c");
    one("src/a.rs:12:3", "src/a.rs");
    one("/user/$", "/user");
    none("and/or");
    none("12/34/56");
    none("a/.b");
    none("/a/b");
    none("src/.rs");
    none("dir/file.extension9");
    assert!(terms(&format!("/{}", "a".repeat(399))).contains(&format!("/{}", "a".repeat(399))));
    none(&format!("/{}", "a".repeat(400)));
    assert!(terms("/a/b$$").contains("/a/b$$"));
}

#[test]
fn windows_paths() {
    one(r"C:\work\x", r"\work\x");
    one(r"at C:\work\x.", r"\work\x");
    none(r"AC:\work\x");
    none(r"\work\x");
    none(r"1C:\work\x");
    one(r"éC:\work\x", r"\work\x");
}

#[test]
fn identifiers() {
    one("call foo_bar now", "foo_bar");
    one("call fooBar now", "fooBar");
    one("call foo-bar- now", "foo-bar");
    one("x.parseIt()", "parseIt");
    one("-9parseIt", "parseIt");
    one("$fooBar", "$fooBar");
    none("foobar");
    none("fooB");
    none("_foobar_");
    none("Foobar");
    none("FOOBAR");
    none("foo--bar");
    one("__foo_bar__", "__foo_bar__");
    one("größe_wert_x", "e_wert_x");
    assert_eq!(terms(&format!("a_{}", "b".repeat(198))).len(), 1);
    none(&format!("a_{}", "b".repeat(199)));
}

#[test]
fn numbers() {
    one("id 1234", "1234");
    one("1,234,567.", "1,234,567");
    one("3.1415", "3.1415");
    one("12_34", "12_34");
    none("123");
    none("1234x");
    none("x1234");
    none(".1234");
    none("_1234");
    one("x12,3456", "3456");
    one("-1234", "-1234".trim_start_matches('-'));
    one("é1234é", "1234");
    assert_eq!(terms(&"1".repeat(40)).len(), 1);
    none(&"1".repeat(41));
    none("1234_x");
}

#[test]
fn quotes() {
    one("say \"hello world\"", "hello world");
    one("say `hello world \\`", "hello world");
    one("say 'hello world'", "hello world");
    none("don't say hello world isn't");
    none("say \"hello w\nto all\"");
    none("say \"1 2 3 4 5\"");
    none("say \"seven77\"");
    let long = "ab ".repeat(66) + "ab";
    one(&format!("\"{long}\""), &long);
    none(&format!("\"{long}a\""));
    // The closing quote of a pair opens nothing; behind an opening one without end the scan goes on.
    none("\"ab\" cd ef gh \"ij\"");
    one("\"ab\n'hello world'", "hello world");
    assert_eq!(sorted("'open /etc/hosts now'"), ["/etc/hosts", "open /etc/hosts now"]);
    one("it's 'hello world'", "hello world");
}

#[test]
fn error_lines() {
    one("  Cannot do it ", "Cannot do it");
    one("\ncode E1234 here\n", "code E1234 here");
    none("code e1234 here");
    none("a fail");
    one("he FAILED.", "he FAILED.");
    none(&format!("error {}", "a ".repeat(160)));
    one("not found: x", "not found: x");
}

#[test]
fn one_string_is_one_term() {
    assert_eq!(sorted("`src/lib.rs` src/lib.rs"), ["src/lib.rs"]);
    assert_eq!(sorted("src/foo_bar.rs"), ["foo_bar", "src/foo_bar.rs"]);
}
