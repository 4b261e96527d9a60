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
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once("://") {
        match login_of(behind) {
            Some((login, host)) => {
                out.push_str(&without_pairs(before));
                out.push_str("://");
                out.push_str(&without_password(login));
                out.push('@');
                rest = host;
            }
            // An address inside an address may have one.
            None if behind.contains("://") => {
                out.push_str(&without_pairs(before));
                out.push_str("://");
                rest = behind;
            }
            None => break,
        }
    }
    out.push_str(&without_pairs(rest));
    out
}

/// Splits what stands behind `://` at the `@` that ends the login. Passwords hold an `@` and a `/` where
/// nobody encoded them.
fn login_of(address: &str) -> Option<(&str, &str)> {
    let end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let (authority, path) = address.split_at(end);
    let at = authority.rfind('@').or_else(|| {
        let (_, port) = authority.split_once(':')?;
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        (!is_port).then(|| path.rfind('@').map(|at| end + at)).flatten()
    })?;
    Some((address.get(..at)?, address.get(at + 1..)?))
}

fn without_password(login: &str) -> String {
    let name = |name: &str| {
        if is_long_value(name, LONG) { MASK.to_owned() } else { without_tokens(name) }
    };
    match login.split_once(':') {
        Some((user, _)) => format!("{}:{MASK}", name(user)),
        None => name(login),
    }
}

/// Masks the value of every `name=value` and `name: value` whose name says that it is a secret.
fn without_pairs(text: &str) -> String {
    let mut out = String::new();
    let (mut done, mut from) = (0, 0);
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(['=', ':'])) {
        let at = from + found;
        let before = text.get(done..at).unwrap_or_default();
        let name = before.rsplit(|c| !is_of_name(c)).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let behind = text.get(at + 1..).unwrap_or_default();
        let value = behind.get(..value_end(behind)).unwrap_or(behind);
        from = at + 1;
        if KEYS.iter().any(|key| name.ends_with(key))
            && value.chars().count() >= JOINED
            && !value.starts_with(['/', ':'])
        {
            out.push_str(&without_tokens(before));
            out.push_str(text.get(at..=at).unwrap_or_default());
            out.push_str(MASK);
            from += value.len();
            done = from;
        }
    }
    out.push_str(&without_tokens(text.get(done..).unwrap_or_default()));
    out
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Where a value ends: at an `&` that another pair follows, as a password may hold one.
fn value_end(value: &str) -> usize {
    let is_end = |at: &usize| {
        let next = value.get(at + 1..).unwrap_or_default();
        let name = next.find(|c| !is_of_name(c)).unwrap_or(next.len());
        name > 0 && next.get(name..).is_some_and(|rest| rest.starts_with('='))
    };
    value.match_indices('&').map(|(at, _)| at).find(is_end).unwrap_or(value.len())
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
            format!("https://x/y?api_key={long}"),
            format!("https://x/y?page=2&token={long}&z=1"),
            format!("a=1&token={long}"),
            "password=hunter2&more".to_owned(),
            format!("--header=X-Api-Key:{long}"),
            "--env=DB_PASSWORD=hunter2".to_owned(),
            "MYSQL:password=hunter2".to_owned(),
            format!("https://user:p@{long}@host/x"),
            format!("https://user:p/{long}@host/x"),
            format!("https://{long}@host/x"),
            format!("https://ghp_{long}@host/x"),
            format!("https://{long}:x-oauth-basic@host/x"),
            format!("https://proxy/?to=ftp://me:{long}@host"),
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
    fn what_stands_around_a_secret_stays() {
        for (text, shown) in [
            ("https://x?api_key=hunter2&page=2", "https://x?api_key=[secret]&page=2"),
            ("https://user:p@ss@host/x", "https://user:[secret]@host/x"),
            ("--env=DB_PASSWORD=hunter2 --rm", "--env=DB_PASSWORD=[secret] --rm"),
        ] {
            assert_eq!(mask(text), shown);
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
            "https://host/a?page=2&sort=name#b=c",
            "https://me@host/a",
            "git@host:owner/project.git",
            "a=1&b=2&c=three",
            "key::value",
            "",
            "é ü 😀",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
