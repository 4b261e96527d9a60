//! Takes obvious secrets out of a text that is shown to a model again.

/// What stands in the place of a secret.
const MASK: &str = "[secret]";

/// Beginnings of tokens that vendors give out, and how long the rest is at least.
const PREFIXES: [(&str, usize); 25] = [
    ("sk-", 16),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("pk_live_", 10),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 12),
    ("AKIA", 12),
    ("ASIA", 12),
    ("AIza", 20),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("npm_", 20),
    ("hf_", 20),
    ("dop_v1_", 20),
    ("ya29.", 16),
    ("SG.", 20),
    ("eyJ", 30),
];

/// Words after which a long value is a secret.
const KEYS: [&str; 9] = [
    "key",
    "secret",
    "token",
    "password",
    "passwd",
    "pwd",
    "bearer",
    "credential",
    "authorization",
];

/// A value behind such a word is a secret from so many characters on.
const LONG: usize = 16;
/// One that is joined to it by `=` or `:` from so many.
const JOINED: usize = 6;

/// The text with `[secret]` in the place of what looks like one.
#[must_use]
pub fn mask(text: &str) -> String {
    if text.contains("PRIVATE KEY-----") {
        return MASK.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut after_key = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_gap).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if !word.is_empty() {
            out.push_str(&masked(word, after_key));
            let lower = word.to_ascii_lowercase();
            let bare = lower.trim_end_matches([':', '=']);
            // `Authorization: Bearer x`, `token is x`, `"token": "x"`.
            let is_link = matches!(bare, "" | "is" | "was" | "basic" | "=>");
            after_key = KEYS.iter().any(|key| bare.ends_with(key)) || (after_key && is_link);
        }
        let gap = behind.find(|c| !is_gap(c)).unwrap_or(behind.len());
        let (between, next) = behind.split_at(gap);
        out.push_str(between);
        rest = next;
    }
    out
}

fn is_gap(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '"' | '\'' | '`' | ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>')
}

fn masked(word: &str, after_key: bool) -> String {
    if after_key && is_long_value(word, LONG) {
        return MASK.to_owned();
    }
    if let Some((scheme, behind)) = word.split_once("://")
        && let Some((login, host)) = behind.split_once('@')
        && let Some((user, _)) = login.split_once(':')
        && !login.contains('/')
    {
        return format!("{scheme}://{user}:{MASK}@{host}");
    }
    if let Some(at) = word.find(['=', ':'])
        && let (name, Some(value)) = (word.get(..at).unwrap_or_default(), word.get(at + 1..))
        && KEYS.iter().any(|key| name.to_ascii_lowercase().ends_with(key))
        && value.chars().count() >= JOINED
        && !value.starts_with(['/', ':'])
    {
        return format!("{}{MASK}", word.get(..=at).unwrap_or_default());
    }
    without_tokens(word)
}

/// Letters, digits and what base64 and hex are written with, a digit among them.
fn is_long_value(word: &str, least: usize) -> bool {
    word.len() >= least
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=_-.~".contains(&b))
}

fn without_tokens(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    'next: while !rest.is_empty() {
        let starts_here = out.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        for (prefix, least) in PREFIXES.into_iter().filter(|_| starts_here) {
            let Some(value) = rest.strip_prefix(prefix) else { continue };
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            let length = value.find(|c| !is_part(c)).unwrap_or(value.len());
            let value_part = value.get(..length).unwrap_or_default();
            if length >= least && value_part.bytes().any(|b| b.is_ascii_digit()) {
                out.push_str(MASK);
                rest = value.get(length..).unwrap_or_default();
                continue 'next;
            }
        }
        let mut chars = rest.chars();
        out.extend(chars.next());
        rest = chars.as_str();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go() {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4";
        for text in [
            format!("use sk-ant-{long} now"),
            format!("ghp_{long}"),
            format!("x=ghp_{long}"),
            format!("github_pat_{long}"),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("xoxb-{long}"),
            format!("AIza{long}"),
            format!("glpat-{long}"),
            format!("password={long}"),
            "PASSWORD=hunter2".to_owned(),
            format!("Authorization: Bearer {long}"),
            format!("\"api_key\": \"{long}\""),
            format!("the token is {long}"),
            format!("postgres://me:{long}@db/x"),
            format!("eyJhbGciOi.{long}.{long}"),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{long}"),
        ] {
            let masked = mask(&text);
            assert!(masked.contains(MASK), "{text}: {masked}");
            for secret in [long, "IOSFODNN7EXAMPLE", "hunter2"] {
                assert!(!masked.contains(secret), "{text}: {masked}");
            }
        }
    }

    #[test]
    fn names_and_hashes_stay() {
        for text in [
            "commit 3f2a91c05b7d4e1f9a8b7c6d5e4f3a2b1c0d9e8f",
            "password is required",
            "the key is in src/config/settings.rs",
            "token: expected one",
            "src/sk-learn/model_token_counts.py",
            "http://localhost:8080/a@b",
            "key::value",
            "",
            "é ü 😀",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
