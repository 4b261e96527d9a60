use proptest::prelude::*;

use super::*;

mod written;

fn show(action: &Action) -> String {
    let mut out = Vec::new();
    if let Some(path) = &action.read {
        let all: Vec<&str> = std::iter::once(path).chain(&action.also).map(|p| &**p).collect();
        let partial = if action.partial { " and more" } else { "" };
        out.push(format!("read {}{partial}", all.join(" ")));
    }
    match &action.writes {
        Writes::None => {}
        Writes::Names(names) => out.push(format!("write {}", names.join(" "))),
        Writes::All => out.push("all".to_owned()),
    }
    if let Some(rerunnable) = action.rerunnable {
        out.push(if rerunnable.needs_pass { "test" } else { "again" }.to_owned());
    }
    if out.is_empty() { "-".to_owned() } else { out.join(", ") }
}

fn string<'a>(key: &'a str, text: &'a str) -> Leaf<'a> {
    Leaf { key: Cow::Borrowed(key), depth: 1, string: true, text: Cow::Borrowed(text) }
}

fn run(command: &str) -> String {
    let tools = Tools::default();
    show(&tools.action(Host::Claude, "Bash", &[string("command", command)], Some("/w")))
}

/// Every case: command, expectation.
fn check(cases: &[(&str, &str)]) {
    for (command, expect) in cases {
        assert_eq!(run(command), *expect, "{command}");
    }
}

#[test]
fn reads() {
    check(&[
        ("cat a.rs", "read /w/a.rs"),
        ("cat /x//y/../a.rs", "read /x/a.rs"),
        ("cat -n ./src/a.rs", "read /w/src/a.rs"),
        ("cat a.rs b.rs", "-"),
        ("cat *.rs", "-"),
        ("cat $F", "-"),
        ("cat 'a b.rs'", "read /w/a b.rs"),
        ("cat \"a b.rs\" 2>/dev/null", "read /w/a b.rs"),
        ("cat a\\ b.rs 2>&1", "read /w/a b.rs"),
        ("cat '[id].tsx'", "read /w/[id].tsx"),
        ("cat ~/.bashrc", "read ~/.bashrc"),
        ("cat", "-"),
        ("cat -", "-"),
        ("cat a.rs > /dev/null", "-"),
        ("cat a.rs; echo", "-"),
        ("cat a.rs && cat b.rs", "-"),
        ("cat a.rs || true", "-"),
        ("cat a.rs | grep x", "-"),
        ("cat a.rs | head -5", "read /w/a.rs"),
        ("cat a.rs &", "-"),
        ("(cat a.rs)", "-"),
        ("nl -ba a.rs | sed -n '3,70p'", "read /w/a.rs"),
        ("nl -b a a.rs", "read /w/a.rs"),
        ("head -n 5 a.rs", "read /w/a.rs"),
        ("head -5 a.rs | tail -n +2", "read /w/a.rs"),
        ("tail -c 100 a.rs", "read /w/a.rs"),
        ("tail -n +20 a.rs", "read /w/a.rs"),
        ("tail -f a.rs", "-"),
        ("sed -n '1,5p' a.rs", "read /w/a.rs"),
        ("sed -n 1,5p a.rs", "read /w/a.rs"),
        ("sed -n '1,5p;9,$p' a.rs", "read /w/a.rs"),
        ("sed -n -e '1,5p' -e 8p a.rs", "read /w/a.rs"),
        ("sed -n \"320,400p\" a.rs", "read /w/a.rs"),
        ("sed -n '/x/,/y/p' a.rs", "-"),
        ("sed '20q' a.rs", "read /w/a.rs"),
        ("sed 's/a/b/' a.rs", "-"),
        ("bat -p a.rs", "read /w/a.rs"),
        ("bat --style plain -r 3:9 a.rs", "read /w/a.rs"),
        ("cd x && cat a.rs", "read /w/x/a.rs"),
        ("cd /y/z && cd .. && sed -n 1,9p a.rs | head -3", "read /y/a.rs"),
        ("cd $X && cat a.rs", "-"),
        ("cd x; cat a.rs", "read /w/x/a.rs"),
        ("cd x\ncat a.rs", "read /w/x/a.rs"),
        ("cd x || cat a.rs", "-"),
        ("# look\ncat a.rs", "read /w/a.rs"),
        ("cat \\\n  a.rs\n", "read /w/a.rs"),
        ("FOO=1 cat a.rs", "-"),
        ("cat $(git ls-files | head -1)", "-"),
        ("cat <<< a.rs", "-"),
    ]);
}

#[test]
fn classes_of_output() {
    let tools = Tools::default();
    let class = |tool: &str, key: &str, text: &str| {
        tools.action(Host::Claude, tool, &[string(key, text)], Some("/w")).class
    };
    for (command, wanted) in [
        ("rg -n total src", Class::Search),
        ("cd x && grep -rn 'a b' . | sort | head -5", Class::Search),
        ("find . -name '*.rs' | xargs wc -l; echo; git grep total", Class::Search),
        ("git log --grep total", Class::Shell),
        ("curl -s https://a.example/ | jq .", Class::Web),
        ("wget -qO- a.example; curl b.example", Class::Web),
        ("curl a.example && rg x", Class::Shell),
        ("cargo build", Class::Shell),
        ("echo done", Class::Shell),
        ("", Class::Shell),
    ] {
        assert_eq!(class("Bash", "command", command), wanted, "{command}");
    }
    for (tool, wanted) in [
        ("Grep", Class::Search),
        ("LS", Class::Search),
        ("WebFetch", Class::Web),
        ("BashOutput", Class::Shell),
        ("Read", Class::None),
        ("Edit", Class::None),
        ("Task", Class::None),
        ("TodoWrite", Class::None),
        ("ExitPlanMode", Class::None),
        ("mcp__server__search", Class::None),
        ("unheard_of", Class::None),
    ] {
        assert_eq!(class(tool, "pattern", "x"), wanted, "{tool}");
    }
    let ran = |command: &'static str| InnerCommand {
        id: "e".into(),
        cwd: None,
        command: command.into(),
        ..InnerCommand::default()
    };
    let inner = |mixed: bool, commands: &[&'static str]| {
        let class = if mixed { Class::None } else { Class::Shell };
        let outer = Action { kind: ToolKind::Code, mixed, class, ..Action::default() };
        let commands: Vec<_> = commands.iter().map(|command| ran(command)).collect();
        tools.inner(outer, &commands, &[]).class
    };
    assert_eq!(inner(false, &["rg a", "grep b c"]), Class::Search);
    assert_eq!(inner(false, &["rg a", "make"]), Class::Shell);
    assert_eq!(inner(false, &[]), Class::Shell);
    assert_eq!(inner(true, &["rg a"]), Class::None);
}

#[test]
fn cheap_to_run_again() {
    check(&[
        ("ls", "again"),
        ("ls -la src *.rs 2>/dev/null", "again"),
        ("ls | head -20", "again"),
        ("ls | grep x", "-"),
        ("ls | head -5 | tail -1", "-"),
        ("ls && pwd", "-"),
        ("ls > a.txt", "write a.txt"),
        ("lsof", "-"),
        ("cd x && git status --short", "again"),
        ("git -C /x --no-pager log --oneline -5 | head -3", "again"),
        ("git logs", "-"),
        ("git diff --stat", "again"),
        ("git diff HEAD~1 --stat", "again"),
        ("git diff", "-"),
        ("tree -L 2", "again"),
        ("npm test", "test"),
        ("npm run test 2>&1 | tail -20", "test"),
        ("npm run test:unit -- --run", "test"),
        ("npm run build", "-"),
        ("pnpm --filter web test", "test"),
        ("yarn workspace web test", "test"),
        ("cd a && cd b && cargo test --workspace 2>&1 | tail -n 5", "test"),
        ("cargo +nightly nextest run", "test"),
        ("cargo test; echo $?", "-"),
        ("cargo test $(cat x)", "-"),
        ("go test ./... -run X", "test"),
        ("python -m pytest -q", "test"),
        ("npx vitest run", "test"),
        ("CI=1 npm test", "-"),
        ("timeout 60 npm test", "-"),
    ]);
    let tools = Tools::new(&["just list"], &["deno test"]);
    let again = |command: &str| {
        tools.action(Host::Claude, "Bash", &[string("command", command)], None).rerunnable
    };
    assert_eq!(again("just list -u"), Some(Rerunnable { needs_pass: false, even_if_used: true }));
    assert_eq!(again("deno test a"), Some(Rerunnable { needs_pass: true, even_if_used: true }));
    assert_eq!(again("ls"), Some(Rerunnable { needs_pass: false, even_if_used: true }));
    assert_eq!(again("pwd"), Some(Rerunnable { needs_pass: false, even_if_used: false }));
    assert_eq!(again("cargo test"), Some(Rerunnable { needs_pass: true, even_if_used: false }));
}

#[test]
fn tools_by_name() {
    let tools = Tools::default();
    let call = |tool: &str, leaves: &[Leaf<'_>]| {
        let action = tools.action(Host::Codex, tool, leaves, Some("/w"));
        format!("{:?} {}", action.kind, show(&action))
    };
    assert_eq!(call("Read", &[string("file_path", "/a/b.rs")]), "Read read /a/b.rs");
    assert_eq!(call("NotebookRead", &[string("notebook_path", "b.ipynb")]), "Read read /w/b.ipynb");
    assert_eq!(call("Edit", &[string("file_path", "/a/b.rs")]), "Edit write b.rs");
    assert_eq!(call("Edit", &[]), "Edit all");
    let view = [string("command", "view"), string("path", "/a/b.rs")];
    assert_eq!(call("str_replace_based_edit_tool", &view), "Read read /a/b.rs");
    assert_eq!(call("mcp__fs__write_file", &[string("path", "/a/b.rs")]), "Mcp write b.rs");
    assert_eq!(call("mcp__fs__read_file", &[string("path", "/a/b.rs")]), "Mcp -");
    assert_eq!(call("LS", &[]), "Search again");
    assert_eq!(call("ExitPlanMode", &[]), "Plan -");
    let cmd = [string("cmd", "cat a.rs"), string("workdir", "sub")];
    assert_eq!(call("exec_command", &cmd), "Shell read /w/sub/a.rs");
    let arg = |text| Leaf { depth: 2, ..string("command", text) };
    let argv = [arg("/bin/bash"), arg("-lc"), arg("cat a.rs")];
    assert_eq!(call("shell", &argv), "Shell read /w/a.rs");
    assert_eq!(call("shell", &[arg("cat"), arg("it's > a")]), "Shell read /w/it's > a");
    assert_eq!(call("write_stdin", &[string("chars", "rm a.rs\n")]), "Shell write a.rs");
    let free = |text| Leaf { depth: 0, ..string("", text) };
    let patch = "*** Begin Patch\n*** Update File: a/b.rs\n@@\n-x\n+y\n*** Add File: c d.rs\n";
    assert_eq!(call("apply_patch", &[free(patch)]), "Edit write b.rs c d.rs");
    assert_eq!(call("exec", &[free("await tools.exec_command({cmd: 'rm a'})")]), "Code -");
    let js = r#"await tools.apply_patch("*** Begin Patch\n*** Update File: a/b.rs\n@@\n*** End")"#;
    assert_eq!(call("exec", &[free(js)]), "Code write b.rs");
    assert_eq!(call("exec", &[free("await tools.apply_patch(p)")]), "Code all");
}

#[test]
fn inner_commands() {
    let tools = Tools::default();
    let inner = |command: &'static str, reads: &[&'static str]| InnerCommand {
        id: Cow::Borrowed("x"),
        cwd: Some(Cow::Borrowed("/w")),
        command: Cow::Borrowed(command),
        reads: reads.iter().map(|path| Cow::Borrowed(*path)).collect(),
        ..InnerCommand::default()
    };
    let join = |script: &str, commands: &[InnerCommand<'_>]| {
        let leaf = Leaf { depth: 0, ..string("", script) };
        let outer = tools.action(Host::Codex, "exec", &[leaf], Some("/w"));
        show(&tools.inner(outer, commands, &[]))
    };
    let one = "tools.exec_command({})";
    assert_eq!(join(one, &[]), "-");
    assert_eq!(join(one, &[inner("cat a.rs", &["a.rs"])]), "read /w/a.rs");
    assert_eq!(join(one, &[inner("awk 'NR<9' a.rs", &["a.rs"])]), "read /w/a.rs");
    assert_eq!(join(one, &[inner("cat a.rs | rg x", &["a.rs"])]), "-");
    assert_eq!(join(one, &[inner("git status", &[])]), "again");
    // Several files, and what may stand beside them in the result.
    let several = [inner("cat a.rs", &["a.rs"]), inner("cat b.rs", &["b.rs"])];
    assert_eq!(join(one, &several), "read /w/a.rs /w/b.rs");
    assert_eq!(join(one, &[inner("cat a.rs", &[]), inner("cat a.rs", &[])]), "read /w/a.rs");
    assert_eq!(
        join(one, &[inner("cat a.rs", &[]), inner("rm b.rs", &[])]),
        "read /w/a.rs and more, write b.rs"
    );
    assert_eq!(
        join("tools.exec_command({}); tools.web()", &[inner("cat a.rs", &[])]),
        "read /w/a.rs and more"
    );
    assert_eq!(
        join(one, &[inner("cat a.rs", &[]), inner("git status", &[])]),
        "read /w/a.rs and more"
    );
    // The host says what a patch changed, whatever the script is.
    let patched = InnerCommand { writes: vec!["/w/x/c.rs".into()], ..inner("", &[]) };
    assert_eq!(join(one, &[patched]), "write c.rs");
    // What may have run elsewhere shows nothing here, and may have written here.
    let loose = [inner("cat a.rs", &["a.rs"]), inner("rm b.rs", &[])];
    let outer = || Action { kind: ToolKind::Code, ..Action::default() };
    assert_eq!(show(&tools.inner(outer(), &[], &loose)), "write b.rs");
    let again = [inner("git status", &[])];
    assert_eq!(show(&tools.inner(outer(), &again, &loose)), "write b.rs");
}

#[test]
fn a_wait_goes_on_with_a_script() {
    let tools = Tools::default();
    let of = |tool: &str, key: &str| tools.action(Host::Codex, tool, &[string(key, "7")], None);
    let cell = of("wait", "cell_id");
    assert_eq!((cell.kind, cell.cell.as_deref()), (ToolKind::Code, Some("7")));
    assert_eq!((cell.class, cell.mixed), (Class::None, true));
    assert_eq!(of("functions__wait", "cell_id").kind, ToolKind::Code);
    // Of another agent, and of another host.
    assert_eq!(of("wait", "targets").kind, ToolKind::Agent);
    let claude = tools.action(Host::Claude, "wait", &[string("cell_id", "7")], None);
    assert_eq!(claude.kind, ToolKind::Agent);
}

#[test]
fn a_session_says_nothing_twice() {
    let tools = Tools::default();
    for chars in ["", "git status\n", "ls\n"] {
        let action = tools.action(Host::Codex, "write_stdin", &[string("chars", chars)], None);
        assert_eq!((action.class, action.rerunnable), (Class::None, None), "{chars}");
        assert_eq!((action.read, action.writes), (None, Writes::None), "{chars}");
    }
}

#[test]
fn paths_are_lexical() {
    for (path, cwd, expect) in [
        ("a/./b/../c", Some("/w"), "/w/a/c"),
        ("../../../a", Some("/w/x"), "/a"),
        ("/a//b/", None, "/a/b"),
        ("../a", None, "../a"),
        ("./a", None, "a"),
        ("~/a/../b", Some("/w"), "~/b"),
        ("a", Some("~"), "~/a"),
        ("C:\\a\\..\\b.rs", Some("/w"), "C:/b.rs"),
        ("src\\b.rs", Some("C:\\a"), "C:/a/src/b.rs"),
        ("", Some("/w"), ""),
        ("/", None, "/"),
        (".", None, "."),
        ("/..", None, "/"),
    ] {
        assert_eq!(normalise(path, cwd), expect, "{path}");
    }
}

#[test]
fn failures() {
    for text in [
        "Tests: 2 failed, 3 passed",
        "test result: FAILED. 1 passed; 1 failed",
        "--- FAIL: TestX",
        "FAIL\tpkg",
        "FAILED tests/a.py::b",
        "thread 'x' panicked at src/a.rs:1",
        "  ✗ works",
        "Traceback (most recent call last):",
        "error[E0308]: x",
        "npm ERR! x",
        "# fail 1",
        "1 test failed",
        "2 failing",
        "FAILED (failures=1)",
        "Errors: 3",
        "3 errors in 2s",
        "not ok 3 - x",
        "error: test failed",
        "1 tests failed",
    ] {
        assert!(shows_failure(text), "{text}");
    }
    for text in [
        "",
        "test result: ok. 3 passed; 0 failed",
        "0 errors, 0 failures",
        "# fail 0",
        "ok  pkg 0.1s",
        "test error_is_failed ... ok",
        "✓ handles failed login",
        "12 passed in 1s",
        "Failures: 0, Errors: 0",
        "test parse::errors ... ok",
        "0 FAILED",
    ] {
        assert!(!shows_failure(text), "{text}");
    }
}

#[test]
fn hostile_input_is_linear() {
    let parts = [
        "$(",
        "`",
        "\"$(",
        "(",
        "<<a ",
        "<<a\n",
        "find -exec ",
        "bash -c '",
        "rm a.b ",
        ";a",
        "${",
        "\\",
        "sudo ",
        "X=1 ",
        "cd a && ",
        "$((",
        "*** ",
        "\n*** Add File: ",
        "tools.",
        "1 failed",
        "'",
        "| head ",
        "xargs ",
        "a>b ",
        "<(",
        "echo x | sh ;",
        "$'",
        "&>",
        "if ",
        "-e ",
        "-i ",
        "\"`",
        "`\\`",
        "cd aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;",
    ];
    for part in parts {
        let text = part.repeat(1_000_000 / part.len());
        drop(run(&text));
        let _: bool = shows_failure(&text);
        let leaf = Leaf { depth: 0, ..string("", &text) };
        drop(Tools::default().action(Host::Codex, "exec", &[leaf], None));
    }
}

proptest! {
    #[test]
    fn total(
        command in concat!(
            "(\\PC|[ \\n'\"$(){}<>|&;`\\\\]|cat |sed -i |bash -c |<<E\\n|rm |find |-exec )",
            "{0,40}",
        ),
        tool in "[a-zA-Z_]{0,12}",
    ) {
        drop(run(&command));
        let _: bool = shows_failure(&command);
        let path = normalise(&command, Some(&tool));
        prop_assert_eq!(normalise(&path, None), path);
        let leaves = [string("command", &command), Leaf { depth: 0, ..string("", &command) }];
        for name in [tool.as_str(), "exec", "apply_patch", "Bash", "shell"] {
            for host in [Host::Claude, Host::Codex] {
                drop(Tools::default().action(host, name, &leaves, Some("/w")));
            }
        }
    }

    /// Quoting never lets a redirection through.
    #[test]
    fn quoted_text_writes_nothing(text in "[^']{0,60}") {
        let command = format!("echo '{text}'");
        prop_assert_eq!(run(&command), "-");
    }
}
