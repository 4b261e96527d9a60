use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// §3 once more, straight from the prose, with the regex crate and loops over characters.
mod slow {
    use regex::Regex;
    use std::collections::BTreeSet;

    pub(super) struct Rules {
        chunk: Regex,
        trailing: Regex,
        lone_dollar: Regex,
        extension: Regex,
        letter: Regex,
        word: Regex,
        word_head: Regex,
        shapes: [Regex; 3],
        error: Regex,
        quoted_end: Regex,
    }

    fn outer(c: Option<char>, also: &str) -> bool {
        c.is_some_and(|c| c.is_ascii_alphanumeric() || also.contains(c))
    }

    impl Rules {
        pub(super) fn new() -> Self {
            let re = |s: &str| Regex::new(s).unwrap();
            Self {
                chunk: re(r"[A-Za-z0-9_$./\\~@+-]+"),
                trailing: re(r"[./+@~\\-]+$"),
                lone_dollar: re(r"(^|[^$])\$$"),
                extension: re(r"(?:^|/)[^/]+\.[A-Za-z0-9]{1,8}$"),
                letter: re("[A-Za-z]"),
                word: re("[A-Za-z0-9_$-]+"),
                word_head: re("^[^A-Za-z_$]+"),
                shapes: [re("[^_]_+[^_]"), re("[A-Za-z0-9]-[A-Za-z0-9]"), re("[a-z0-9][A-Z]")],
                error: re("(?i-u:error|exception|traceback|panic|fatal|fail|assert|cannot|denied|\
                    not found|undefined)|E[0-9]{4}"),
                quoted_end: re(r"[\s\\]+$"),
            }
        }

        pub(super) fn terms(&self, text: &str) -> BTreeSet<String> {
            let mut out = BTreeSet::new();
            for chunk in self.chunk.find_iter(text) {
                self.path(&text[..chunk.start()], chunk.as_str(), &mut out);
                for word in self.word.find_iter(chunk.as_str()) {
                    self.identifier(word.as_str(), &mut out);
                }
            }
            self.numbers(text, &mut out);
            for line in text.split('\n') {
                self.quoted(line, &mut out);
                let line = line.trim();
                if (8..=300).contains(&line.chars().count()) && self.error.is_match(line) {
                    out.insert(line.to_owned());
                }
            }
            out
        }

        fn trimmed(&self, path: &str) -> String {
            let path = self.trailing.replace(path, "");
            if !self.lone_dollar.is_match(&path) {
                return path.into_owned();
            }
            self.trailing.replace(&self.lone_dollar.replace(&path, "$1"), "").into_owned()
        }

        fn path(&self, before: &str, chunk: &str, out: &mut BTreeSet<String>) {
            let sized = |p: &str| (5..=400).contains(&p.len()) && self.letter.is_match(p);
            if chunk.contains('/') {
                let inner = chunk.trim_start_matches('/');
                let path = if chunk.starts_with("//") { inner } else { chunk };
                let path = self.trimmed(path);
                let shaped = path.starts_with(['/', '~', '.'])
                    || self.extension.is_match(&path)
                    || path.matches('/').count() >= 2;
                if path.contains('/') && shaped && sized(&path) {
                    out.insert(path);
                }
            }
            let mut before = before.chars().rev();
            let drive = before.next() == Some(':')
                && before.next().is_some_and(|c| c.is_ascii_alphabetic())
                && !outer(before.next(), "");
            if chunk.starts_with('\\') && drive {
                let path = self.trimmed(chunk);
                if sized(&path) {
                    out.insert(path);
                }
            }
        }

        fn identifier(&self, word: &str, out: &mut BTreeSet<String>) {
            let word = self.word_head.replace(word, "");
            let word = word.trim_end_matches('-');
            if (6..=200).contains(&word.len())
                && self.letter.is_match(word)
                && self.shapes.iter().any(|shape| shape.is_match(word))
            {
                out.insert(word.to_owned());
            }
        }

        fn numbers(&self, text: &str, out: &mut BTreeSet<String>) {
            let chars: Vec<char> = text.chars().collect();
            let mut at = 0;
            while at < chars.len() {
                let before = if at > 0 { Some(chars[at - 1]) } else { None };
                if !chars[at].is_ascii_digit() || outer(before, "_.") {
                    at += 1;
                    continue;
                }
                let rest = &chars[at..];
                let run = rest.iter().take_while(|c| c.is_ascii_digit() || ".,_".contains(**c));
                let run: String = run.collect();
                let number = run.trim_end_matches(|c: char| !c.is_ascii_digit());
                let digits = number.chars().filter(char::is_ascii_digit).count();
                if (4..=40).contains(&digits) && !outer(rest.get(number.len()).copied(), "_") {
                    out.insert(number.to_owned());
                }
                at += run.len();
            }
        }

        fn quoted(&self, line: &str, out: &mut BTreeSet<String>) {
            let chars: Vec<char> = line.chars().collect();
            let mut at = 0;
            while at < chars.len() {
                let quote = chars[at];
                let opens = match quote {
                    '"' | '`' => true,
                    '\'' => at == 0 || !outer(Some(chars[at - 1]), ""),
                    _ => false,
                };
                at += 1;
                if !opens {
                    continue;
                }
                let Some(len) = chars[at..].iter().take(201).position(|c| *c == quote) else {
                    continue;
                };
                let content: String = chars[at..at + len].iter().collect();
                let content = self.quoted_end.replace(content.trim_start(), "");
                if content.chars().count() >= 8 && self.letter.is_match(&content) {
                    out.insert(content.into_owned());
                }
                at += len + 1;
            }
        }
    }
}

static RULES: LazyLock<slow::Rules> = LazyLock::new(slow::Rules::new);

fn fast(scanner: &mut Scanner, text: &str) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    scanner.for_each(text, |term| {
        terms.insert(term.to_owned());
    });
    terms
}

fn check(text: &str, want: &[&str]) {
    let got = fast(&mut Scanner::new(), text);
    let want: BTreeSet<String> = want.iter().map(|s| (*s).to_owned()).collect();
    assert_eq!(got, want, "{text:?}");
    assert_eq!(RULES.terms(text), want, "twin, {text:?}");
}

#[test]
fn paths() {
    check("see src/main.rs, /etc/x and ~/ab.", &["src/main.rs", "/etc/x"]);
    check("https://ab.cd/e/f/?q", &["ab.cd/e/f"]);
    check("and/or either/neither a/b/c", &["a/b/c"]);
    check("./run.sh/ ../abc a/.bashrc a/b.toolongext", &["./run.sh", "../abc"]);
    check("src/lib.rs$ src/lib.rs.~$- /a/b$c", &["src/lib.rs", "/a/b$c"]);
    check(r"C:\ab\cd.txt, (d:\abcd) xC:\abcd :\abcd", &[r"\ab\cd.txt", r"\abcd"]);
    check(r"C:\ab/cd/ef\", &[r"\ab/cd/ef"]);
    check("/ab/c$$ /ab/d$.$ /ab/e$/", &["/ab/c$$", "/ab/d$", "/ab/e"]);
    check("/1/2/3/4 //////", &[]);
    check("日/ab/cd語", &["/ab/cd"]);
    let long = format!("/{}", "a".repeat(399));
    check(&long, &[&long]);
    check(&format!("{long}a"), &[]);
}

#[test]
fn identifiers() {
    check("read_line _read __init__ readLine XMLread", &["read_line", "readLine"]);
    check("aho-corasick --no-pager -a-b a-bcd- 1st_word", &["aho-corasick", "no-pager", "st_word"]);
    check(
        "$scope_x 12_abc $a$b_c ab__cd_ __ab_cd__",
        &["$scope_x", "$a$b_c", "ab__cd_", "__ab_cd__"],
    );
    check("a1B a1Bcde abc2Def", &["a1Bcde", "abc2Def"]);
    check("a-$-b$-x 1-2-3-4 a-_b", &[]);
    check("größe_wert naïve_x", &["e_wert"]);
    check("größe_werte", &["e_werte"]);
    let long = format!("a_{}", "b".repeat(198));
    check(&long, &[&long]);
    check(&format!("{long}b"), &[]);
}

#[test]
fn numbers() {
    check("1234 123 1,234 1.2.3.4 2024-01-02", &["1234", "1,234", "1.2.3.4", "2024"]);
    check("x1234 1234x .1234 _1234 1234_ 1234. 1234.x", &["1234"]);
    check("a1,2345 1,2345 ,1234 é1234é", &["2345", "1,2345", "1234"]);
    check(&"1".repeat(40), &[&"1".repeat(40)]);
    check(&"1".repeat(41), &[]);
}

#[test]
fn quotations() {
    check("say \"hello you\" and `short` or 'single ones'", &["hello you", "single ones"]);
    check("it's a dog's life and 'tis", &[]);
    check("\"one\ntwo three\"", &[]);
    check(r#""  padded text \\ " \"nested one\" "#, &["padded text", "nested one"]);
    check("\"`inner tick`\" x", &["`inner tick`"]);
    check("\"12345678\" \"größe äß\"", &["12345678", "größe äß"]);
    let long = "é".repeat(192) + "abcdefgh";
    check(&format!("\"{long}\""), &[&long]);
    check(&format!("\"{long}x\""), &[]);
}

#[test]
fn error_lines() {
    check("a\n  Error: no such\t\nb", &["Error: no such"]);
    check("has FAILed\nNOT FOUND\nfail\nnot  found", &["has FAILed", "NOT FOUND"]);
    check("see E0308 there\nsee e0308 here\nsee XE03081", &["see E0308 there", "see XE03081"]);
    check(&format!("error{}", "x".repeat(295)), &[&format!("error{}", "x".repeat(295))]);
    check(&format!("error{}", "x".repeat(296)), &[]);
    check("E0001 error\nfoo error\nan E0002 one", &["E0001 error", "foo error", "an E0002 one"]);
}

#[test]
fn plain_search_finds_what_the_packed_one_finds() {
    let text = b"an error, not found: undefined fail\nassert denied exceptio";
    let (packed, plain) = (ErrorWords::new(), ErrorWords::Plain);
    for from in 0..=text.len() {
        assert_eq!(packed.find(text, from), plain.find(text, from));
    }
    assert!(ERROR_WORDS.iter().all(|word| word.len() <= class::AHEAD + 1));
}

#[test]
fn terms_across_block_borders() {
    let rules = &RULES;
    let mut scanner = Scanner::new();
    for unit in [
        "an_ident ",
        "camelCase ",
        "it-is ",
        "src/a.rs ",
        "C:\\ab\\cd ",
        "12,345 ",
        "\"quoted one\" ",
        "not found E1234\n",
        "exception\n",
        "xE1234 fatal\n",
        "E1234567 é",
    ] {
        let text = unit.repeat(3);
        for before in BLOCK - text.len() - 1..=BLOCK + 1 {
            for fill in ["\n", " ", "a", "_", "é", "/"] {
                let mut filled = fill.repeat(before / fill.len());
                filled.push_str(&text);
                assert_eq!(fast(&mut scanner, &filled), rules.terms(&filled), "{unit:?} {before}");
            }
        }
    }
}

#[test]
fn the_scratch_holds_nothing_over() {
    let mut scanner = Scanner::new();
    let texts = ["a_longer_one/with/path \"and a quote", "\" x_y", "", "ab", "é"];
    for text in texts {
        let mut hashes = Vec::new();
        scanner.scan(text, &mut hashes);
        let mut want = Vec::new();
        Scanner::new().for_each(text, |term| want.push(hash(term.as_bytes())));
        assert_eq!(hashes, want);
    }
}

#[test]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test of time")]
fn hostile_texts_take_linear_time() {
    let mut scanner = Scanner::new();
    for unit in HOSTILE {
        let text = unit.repeat(8_000_000 / unit.len());
        let mut out = Vec::new();
        let start = std::time::Instant::now();
        scanner.scan(&text, &mut out);
        let took = start.elapsed();
        assert!(took.as_secs() < 5, "{unit:?}: {took:?}");
    }
}

const HOSTILE: [&str; 22] = [
    "_a", "\"", "'", "`", "\"'`", "\" ' ` ", ".", "/", "//a ", "\\", ":\\", "C:\\", "1", "1,",
    ",1", "-a", "aA", "$", "E1234", "error ", "error\n", "é\"",
];

fn texts_of_parts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        8 => "[-_$./\\\\~@+a-cA-C0-3]{1,3}",
        3 => "[\"'`,: \n\t;(]{1,2}",
        2 => "[é日\u{a0}\u{2028}😀\0\r]",
        2 => proptest::sample::select(vec![
            "error", "Traceback", "NOT FOUND", "not found", "undefine", "E1234", "E123", "C:\\", "//",
            "https://", "word", "1234", "12,345", ".rs", "\\\"", "a_", "_", "'s",
        ]).prop_map(str::to_owned),
        1 => ("[a1_/\"é. ]", 180..430_usize).prop_map(|(unit, n)| unit.repeat(n)),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn terms_agree_with_the_slow_twin(texts in proptest::collection::vec(texts_of_parts(), 8)) {
        let rules = &RULES;
        let mut scanner = Scanner::new();
        for text in texts {
            prop_assert_eq!(fast(&mut scanner, &text), rules.terms(&text), "{:?}", text);
        }
    }

    #[test]
    fn any_text_agrees_with_the_slow_twin(text in "(?s).{0,200}") {
        prop_assert_eq!(fast(&mut Scanner::new(), &text), RULES.terms(&text));
    }
}

/// The string leaves of a JSON line; the line itself, if it is none.
fn leaves(line: &str, out: &mut String) {
    fn walk(value: &serde_json::Value, out: &mut String) {
        match value {
            serde_json::Value::String(s) => {
                out.push_str(s);
                out.push('\n');
            }
            serde_json::Value::Array(list) => list.iter().for_each(|v| walk(v, out)),
            serde_json::Value::Object(map) => map.values().for_each(|v| walk(v, out)),
            _ => {}
        }
    }
    match serde_json::from_str(line) {
        Ok(value) => walk(&value, out),
        Err(_) => out.push_str(line),
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "reads the files it is pointed at")]
fn real_texts_agree_with_the_slow_twin() {
    let Some(root) = std::env::var_os("COMPACTD_CORPORA") else {
        println!("skipped: COMPACTD_CORPORA is not set");
        return;
    };
    let (rules, mut scanner) = (&RULES, Scanner::new());
    let (mut files, mut bytes, mut count) = (0, 0, 0);
    let mut todo = vec![std::path::PathBuf::from(root)];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let raw = if path.extension().is_some_and(|e| e == "zst") {
            let unpacked = std::process::Command::new("zstd").arg("-dcq").arg(&path).output();
            let Ok(unpacked) = unpacked else {
                println!("skipped: no zstd to unpack {}", path.display());
                continue;
            };
            unpacked.stdout
        } else {
            std::fs::read(&path).unwrap()
        };
        for line in String::from_utf8_lossy(&raw).split_inclusive('\n') {
            let mut text = String::new();
            leaves(line, &mut text);
            let terms = fast(&mut scanner, &text);
            assert_eq!(terms, rules.terms(&text), "{}", path.display());
            bytes += text.len();
            count += terms.len();
        }
        files += 1;
    }
    println!("{files} files, {bytes} bytes of text, {count} terms: both the same");
}
