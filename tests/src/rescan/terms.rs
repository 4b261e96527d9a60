//! Distinctive terms of a text (§3).

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

/// The patterns of this module are constants.
pub(super) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Something in quotes, or a run of characters that paths, identifiers and numbers are made of.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(?P<quoted>"[^"\n]*"|`[^`\n]*`|'[^'\n]*')|(?P<word>[A-Za-z0-9_$./\\~@+,-]+)"#)
});
static WORD: LazyLock<Regex> = LazyLock::new(|| regex(r"[A-Za-z0-9_$./\\~@+,-]+"));
static NAME: LazyLock<Regex> = LazyLock::new(|| regex(r"[A-Za-z0-9_$-]+"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"[0-9][0-9.,_]*"));
static EXTENSION: LazyLock<Regex> = LazyLock::new(|| regex(r"[^/]\.[A-Za-z0-9]{1,8}\z"));
static DRIVE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:\A|[^A-Za-z0-9])[A-Za-z]:\z"));
static INNER_HYPHEN: LazyLock<Regex> = LazyLock::new(|| regex(r"[A-Za-z0-9]-[A-Za-z0-9]"));
static CAMEL: LazyLock<Regex> = LazyLock::new(|| regex(r"[a-z0-9][A-Z]"));
static ERROR: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i-u:error|exception|traceback|panic|fatal|fail|assert|cannot|denied|not found|undefined)|E[0-9]{4}",
    )
});

/// All terms of a text.
pub fn terms(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut at = 0;
    while let Some(token) = TOKEN.captures_at(text, at) {
        if let Some(word) = token.name("word") {
            word_terms(&text[..word.start()], word.as_str(), &mut found);
            at = word.end();
        } else if let Some(quoted) = token.name("quoted") {
            let content = &text[quoted.start() + 1..quoted.end() - 1];
            let before = text[..quoted.start()].bytes().next_back();
            let apostrophe = quoted.as_str().starts_with('\'')
                && before.is_some_and(|byte| byte.is_ascii_alphanumeric());
            if apostrophe || content.chars().count() > 200 {
                at = quoted.start() + 1;
                continue;
            }
            let term = content
                .trim_start()
                .trim_end_matches(|end: char| end.is_whitespace() || end == '\\');
            if term.chars().count() >= 8 && has_letter(term) {
                found.insert(term.to_owned());
            }
            for word in WORD.find_iter(content) {
                word_terms(&content[..word.start()], word.as_str(), &mut found);
            }
            at = quoted.end();
        }
    }
    for line in text.split('\n').map(str::trim) {
        if (8..=300).contains(&line.chars().count()) && ERROR.is_match(line) {
            found.insert(line.to_owned());
        }
    }
    found
}

fn has_letter(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Paths, identifiers and numbers of a run of their characters.
fn word_terms(before: &str, word: &str, found: &mut HashSet<String>) {
    for (number, chunk) in word.split(',').enumerate() {
        if chunk.contains('/') {
            let chunk = if chunk.starts_with("//") { chunk.trim_start_matches('/') } else { chunk };
            let path = trim_path(chunk);
            if (5..=400).contains(&path.len()) && has_letter(path) && looks_like_path(path) {
                found.insert(path.to_owned());
            }
        }
        if number == 0 && chunk.starts_with('\\') && DRIVE.is_match(before) {
            let path = trim_path(chunk);
            if (5..=400).contains(&path.len()) && has_letter(path) {
                found.insert(path.to_owned());
            }
        }
        for name in NAME.find_iter(chunk) {
            let name = name
                .as_str()
                .trim_start_matches(|first: char| first == '-' || first.is_ascii_digit())
                .trim_end_matches('-');
            if (6..=200).contains(&name.len()) && has_letter(name) && looks_like_identifier(name) {
                found.insert(name.to_owned());
            }
        }
    }
    numbers(word, found);
}

/// Takes off what belongs to the sentence around a path.
fn trim_path(chunk: &str) -> &str {
    let trailing = ['.', '/', '-', '+', '@', '~', '\\'];
    let path = chunk.trim_end_matches(trailing);
    match path.strip_suffix('$') {
        Some(shorter) if !shorter.ends_with('$') => shorter.trim_end_matches(trailing),
        _ => path,
    }
}

fn looks_like_path(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    path.contains('/')
        && (path.starts_with(['/', '~', '.'])
            || EXTENSION.is_match(last)
            || path.matches('/').count() >= 2)
}

fn looks_like_identifier(name: &str) -> bool {
    name.trim_matches('_').contains('_') || INNER_HYPHEN.is_match(name) || CAMEL.is_match(name)
}

fn numbers(word: &str, found: &mut HashSet<String>) {
    let bytes = word.as_bytes();
    let part_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    while let Some(run) = NUMBER.find_at(word, at) {
        let before = run.start().checked_sub(1).map(|at| bytes[at]);
        if before.is_some_and(|byte| part_of_word(byte) || byte == b'.') {
            at = run.start() + 1;
            continue;
        }
        at = run.end();
        let number = run.as_str().trim_end_matches(['.', ',', '_']);
        let after = bytes.get(run.start() + number.len()).copied();
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        if (4..=40).contains(&digits) && !after.is_some_and(part_of_word) {
            found.insert(number.to_owned());
        }
    }
}
