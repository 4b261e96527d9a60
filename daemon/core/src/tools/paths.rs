//! Lexical paths: nothing here asks the file system.

/// Joins `path` to `cwd` unless it is absolute, then resolves `.`, `..` and repeated slashes.
///
/// A leading `~` counts as absolute and stays. Where the path (or the directory it is joined to)
/// is a Windows one, `\` separates too and the result has `/`. Without a `cwd` a relative path
/// stays relative, leading `..` included.
#[must_use]
pub fn normalise(path: &str, cwd: Option<&str>) -> String {
    if path.is_empty() {
        return String::new();
    }
    let base = if absolute(path) { None } else { cwd.filter(|dir| !dir.is_empty()) };
    let windows = drive(base.unwrap_or(path)) || path.starts_with("\\\\");
    let rooted = base.unwrap_or(path).starts_with(['/', '\\']) && !path_is_escape(base, path);
    let mut parts: Vec<&str> = Vec::new();
    let mut up = 0_usize;
    let fixed = usize::from(!rooted && absolute(base.unwrap_or(path)));
    for part in base
        .unwrap_or_default()
        .split(|c| separates(c, windows))
        .chain(path.split(|c| separates(c, windows)))
    {
        match part {
            "" | "." => {}
            ".." if parts.len() > fixed => {
                parts.pop();
            }
            ".." if rooted || fixed == 1 => {}
            ".." => up = up.saturating_add(1),
            name => parts.push(name),
        }
    }
    let mut out = String::with_capacity(path.len().saturating_add(base.map_or(0, str::len)));
    if rooted {
        out.push('/');
    }
    for _ in 0..up {
        out.push_str("../");
    }
    out.push_str(&parts.join("/"));
    if out.len() > 1 && out.ends_with('/') {
        out.pop();
    }
    if out.is_empty() {
        out.push('.');
    }
    out
}

/// A relative path that starts with a backslash outside Windows is a plain name.
fn path_is_escape(base: Option<&str>, path: &str) -> bool {
    base.is_none() && path.starts_with('\\') && !path.starts_with("\\\\")
}

fn separates(c: char, windows: bool) -> bool {
    c == '/' || (windows && c == '\\')
}

fn absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || drive(path) || path.starts_with("\\\\")
}

/// `C:\…`, `C:/…` or `C:` alone.
fn drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', rest @ ..]
        if letter.is_ascii_alphabetic() && matches!(rest, [] | [b'/' | b'\\', ..]))
}

/// The last component, trailing separators aside; both `/` and `\` separate.
#[must_use]
pub fn last(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// The component looks like a file's: an extension of 1-8 letters or digits, at least one of them a
/// letter, or a leading dot with a name behind it.
#[must_use]
pub(super) fn file_like(component: &str) -> bool {
    let Some((stem, extension)) = component.rsplit_once('.') else { return false };
    if stem.is_empty() {
        return extension.len() > 1 && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    }
    (1..=8).contains(&extension.len())
        && stem.bytes().any(|b| b != b'.')
        && extension.bytes().all(|b| b.is_ascii_alphanumeric())
        && extension.bytes().any(|b| b.is_ascii_alphabetic())
}
