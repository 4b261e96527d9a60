use super::*;

/// As the host writes it: seen with 0.171.0.
const INSTALLED: &str = "\n[marketplaces.compactd]\nsource_type = \"local\"\nsource = \"/m\"\n\n\
                         [plugins.\"compactd@compactd\"]\nenabled = true\n";

const KEY: &str = "compactd@compactd:hooks/hooks.json:pre_compact:0:0";

fn hooks(keys: &[&str]) -> Vec<(String, Trust)> {
    let trust = Trust { handler: "sha256:a".to_owned(), content: "sha256:b".to_owned() };
    keys.iter().map(|key| ((*key).to_owned(), trust.clone())).collect()
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn what_concerns_us_is_found_in_every_layout() {
    for text in [
        INSTALLED,
        "marketplaces = { compactd = { source_type = \"local\", source = \"/m\" } }\n\
         plugins.\"compactd@compactd\".enabled = true",
        "\u{feff}[marketplaces]\r\ncompactd.source_type = \"local\"\r\ncompactd.source = \"/m\"\r\n\
         [plugins]\r\n\"compactd@compactd\" = {}\r\n",
    ] {
        let known = known(&parse(text.as_bytes()).unwrap());
        assert_eq!(known.marketplace.as_deref(), Some("/m"), "{text}");
        assert_eq!(known.enabled, Some(true), "{text}");
    }
    let git = "[marketplaces.compactd]\nsource_type = \"git\"\nsource = \"/m\"";
    let known_git = known(&parse(git.as_bytes()).unwrap());
    assert!(known_git.marketplace.unwrap().contains("git"));
    let off = "[plugins.\"compactd@compactd\"]\nenabled = false";
    assert_eq!(known(&parse(off.as_bytes()).unwrap()).enabled, Some(false));
    assert_eq!(known(&parse(b"").unwrap()), Known::default());
    for bad in [&b"a = "[..], b"a = 1\na = 2", b"\xff"] {
        let why = parse(bad).unwrap_err();
        assert!(!why.contains('\n') && !why.is_empty(), "{why}");
    }
}

#[test]
fn trust_is_written_as_the_host_writes_it() {
    let bytes = trust(INSTALLED.as_bytes(), &hooks(&[KEY])).unwrap();
    let expected = format!(
        "{INSTALLED}\n[hooks.state]\n\n[hooks.state.\"{KEY}\"]\ntrusted_hash = \"sha256:a\"\n\
         trusted_content_hash = \"sha256:b\"\n"
    );
    assert_eq!(text_of(bytes.clone()), expected);
    assert_eq!(trust(&bytes, &hooks(&[KEY])).unwrap(), bytes, "twice is once");
    let found = known(&parse(&bytes).unwrap()).trusted;
    assert_eq!(found.into_iter().collect::<Vec<_>>(), hooks(&[KEY]));
    // Whatever else is there stays, also what somebody decided about this hook.
    for (before, kept) in [
        (format!("# x\n[hooks.state.\"{KEY}\"]\nenabled = false # y\n"), "enabled = false # y\n"),
        ("hooks = { state = { \"o:x\" = { enabled = true } } } # z\n".to_owned(), "# z\n"),
        ("[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\n".to_owned(), "[[hooks.Stop]]"),
        // As the host does, before what stands at the end.
        ("a = 1\r\n# é\r\n".to_owned(), "# é\r\n"),
    ] {
        let bytes = trust(before.as_bytes(), &hooks(&[KEY])).unwrap();
        let text = text_of(bytes.clone());
        assert!(text.contains(kept), "{text}");
        assert_eq!(known(&parse(&bytes).unwrap()).trusted.len(), 1, "{text}");
        let has_bare = text.replace("\r\n", "").contains('\n');
        assert_eq!(has_bare, !before.contains('\r'), "{text:?}");
    }
    assert_eq!(trust(b"hooks = 3", &hooks(&[KEY])).unwrap_err(), "hooks is no table");
}

#[test]
fn what_is_ours_goes_and_nothing_else() {
    let installed = |before: &str, after: &str| {
        let file = trust(format!("{before}{INSTALLED}").as_bytes(), &hooks(&[KEY])).unwrap();
        format!("{}{after}", text_of(file))
    };
    for (before, after) in [
        ("", ""),
        ("a = 1\n", ""),
        ("# top\na = 1 # why\n\n[features] # f\nhooks = true\n\n# tail\n", ""),
        ("a = 1\n", "\n[tui]\nx = true\n# end\n"),
        ("[plugins]\n# mine\n[marketplaces]\n[hooks]\n", ""),
        (
            "[marketplaces.other]\nsource = \"/x\"\n",
            "\n[hooks.state.\"other@x:y:stop:0:0\"]\nq = 1\n",
        ),
    ] {
        let now = installed(before, after);
        let left = without_us(now.as_bytes(), Some(before.as_bytes())).unwrap();
        let expected = format!("{before}{after}");
        let state = if expected.contains("hooks.state") { "[hooks.state]\n" } else { "" };
        let lines = |text: &str| {
            let text = text.replace(state, "");
            let lines = text.lines().filter(|line| !line.is_empty()).map(str::to_owned);
            lines.collect::<Vec<_>>()
        };
        assert_eq!(lines(&text_of(left)), lines(&expected), "{before:?} {after:?}");
    }
    // The end of lines and the mark stay.
    let now = format!("\u{feff}a = 1\n{INSTALLED}").replace('\n', "\r\n");
    let left = without_us(now.as_bytes(), None).unwrap();
    assert_eq!(text_of(left), "\u{feff}a = 1\r\n");
}

#[test]
fn ends_of_lines_and_the_mark_are_those_of_before() {
    for (before, now, expected) in [
        ("\u{feff}a = 1\r\n", "a = 2\nb = 3\n", "\u{feff}a = 2\r\nb = 3\r\n"),
        // Whoever wrote them since wanted them.
        ("a = 1\n", "\u{feff}a = 2\r\n", "\u{feff}a = 2\r\n"),
        ("a = 1\n", "a = 2\n", "a = 2\n"),
        // Some of each: nobody can tell which were which.
        ("a = 1\r\nb = 2\n", "a = 2\nb = 2\n", "a = 2\nb = 2\n"),
    ] {
        let end = if now.contains('\r') { "\r\n" } else { "\n" };
        let now = format!("{now}{}", INSTALLED.replace('\n', end));
        let left = without_us(now.as_bytes(), Some(before.as_bytes())).unwrap();
        assert_eq!(text_of(left), expected, "{before:?} {now:?}");
    }
}

#[test]
fn comments_above_our_tables_stay() {
    let now = "a = 1\n\n# one\n[plugins.\"compactd@compactd\"] # ours\nenabled = true\n\n# two\n\n\
               [marketplaces.compactd]\nsource = \"/m\"\n# three\n[b]\nc = 2\n";
    let left = text_of(without_us(now.as_bytes(), None).unwrap());
    assert_eq!(left, "a = 1\n\n# one\n\n# two\n# three\n[b]\nc = 2\n");
    let now = "[b]\nc = 2\n# one\n[plugins.\"compactd@compactd\"]\nenabled = true\n# end\n";
    let left = text_of(without_us(now.as_bytes(), None).unwrap());
    assert_eq!(left, "[b]\nc = 2\n# one\n# end\n");
}

#[test]
fn what_was_ours_before_is_so_again() {
    let before = "[plugins.\"compactd@compactd\"]\nenabled = false # no\n";
    let now = "[plugins.\"compactd@compactd\"]\nenabled = true\n\n[marketplaces.compactd]\nsource = \"/m\"\n";
    let left = text_of(without_us(now.as_bytes(), Some(before.as_bytes())).unwrap());
    assert_eq!(left, before);
}

#[test]
fn lines_are_compared_without_blank_ones() {
    assert!(same_lines(b"a = 1\r\n\r\n# x", b"\xef\xbb\xbfa = 1\n# x  \n"));
    assert!(!same_lines(b"a = 1\n", b"a = 1\n# x\n"));
    assert!(!same_lines(b"\xff", b"\xff"));
}

#[test]
fn the_host_is_asked_about_nothing_but_us() {
    let text = "secret = \"s\"\n[features]\nhooks = false\n[mcp_servers.x]\ncommand = \"c\"\n\
                [plugins.\"other@x\"]\nenabled = true\n[hooks.state.\"k\"]\nenabled = false\n";
    let config = parse(format!("{text}{INSTALLED}").as_bytes()).unwrap();
    let asked = extract(&config);
    assert!(!asked.contains("secret") && !asked.contains("mcp") && !asked.contains("other"));
    let again = parse(asked.as_bytes()).unwrap();
    assert_eq!(known(&again), known(&config));
    assert_eq!(again["features"], config["features"]);
    assert_eq!(again["hooks"], config["hooks"]);
}
