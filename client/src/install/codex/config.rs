//! Codex's `config.toml`: what it says about our plugin, and our part of it put in and taken out.
//!
//! Pure. Edits go through the syntax tree, so that comments, order and layout of everything else stay.

use std::collections::BTreeMap;

use toml::{Table, Value};
use toml_edit::{DocumentMut, Item, RawString, TableLike};

use crate::install::plugin::{ID, NAME};

/// The feature without which the host installs no plugin.
pub const PLUGINS: &str = "plugins";

/// What a person approved of one hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// Hash of the handler.
    pub handler: String,
    /// Hash of every file of the installed plugin.
    pub content: String,
}

/// What the file says about our plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Where the marketplace of our name comes from: a folder, or the whole entry.
    pub marketplace: Option<String>,
    /// Whether the plugin is on; `None`: it is not named.
    pub enabled: Option<bool>,
    /// Approved hooks by key.
    pub trusted: BTreeMap<String, Trust>,
}

/// Whether the host's key of a hook names one of ours.
#[must_use]
pub fn is_our_key(key: &str) -> bool {
    key.strip_prefix(ID).is_some_and(|rest| rest.starts_with(':'))
}

/// Reads the file as the host does; an absent one is empty.
///
/// # Errors
/// What the host would refuse it for.
pub fn parse(bytes: &[u8]) -> Result<Table, String> {
    let text = text(bytes)?;
    toml::from_str(text).map_err(|error| first_line(&error.to_string()))
}

/// Which features are off without which no hook of a plugin runs. Without `plugins` none is installed
/// either; `codex_hooks` is an older name of `hooks`.
#[must_use]
pub fn switched_off(config: &Table) -> Vec<&'static str> {
    let features = config.get("features");
    let is_off = |name: &&str| {
        features.and_then(|all| all.get(name)).and_then(Value::as_bool) == Some(false)
    };
    [PLUGINS, "hooks", "codex_hooks"].into_iter().filter(is_off).collect()
}

/// The host's command that switches a feature on.
#[must_use]
pub fn switch_on(feature: &str) -> String {
    format!("codex features enable {feature}")
}

/// Looks up what concerns us.
#[must_use]
pub fn known(config: &Table) -> Known {
    let marketplace = config.get("marketplaces").and_then(|all| all.get(NAME));
    let marketplace = marketplace.map(|entry| {
        let is_local = entry.get("source_type").is_some_and(|kind| kind.as_str() == Some("local"));
        match entry.get("source").and_then(Value::as_str) {
            Some(path) if is_local => path.to_owned(),
            _ => entry.to_string(),
        }
    });
    let plugin = config.get("plugins").and_then(|all| all.get(ID));
    // The host takes a plugin that is named and not switched off.
    let enabled = plugin.map(|entry| entry.get("enabled").and_then(Value::as_bool) != Some(false));
    let state = config.get("hooks").and_then(|hooks| hooks.get("state")?.as_table());
    let ours = state.into_iter().flatten().filter(|(key, _)| is_our_key(key));
    let trusted = ours
        .filter_map(|(key, entry)| {
            let hash = |name: &str| Some(entry.get(name)?.as_str()?.to_owned());
            let content = hash("trusted_content_hash").unwrap_or_default();
            Some((key.clone(), Trust { handler: hash("trusted_hash")?, content }))
        })
        .collect();
    Known { marketplace, enabled, trusted }
}

/// Only what decides whether our hooks run, for a folder in which the host is asked about them.
#[must_use]
pub fn extract(config: &Table) -> String {
    let mut all = Table::new();
    for (key, ours) in
        [("features", None), ("hooks", None), ("plugins", Some(ID)), ("marketplaces", Some(NAME))]
    {
        let found = match (config.get(key), ours) {
            (Some(found), None) => Some(found.clone()),
            (Some(found), Some(ours)) => found
                .get(ours)
                .map(|entry| Value::Table(Table::from_iter([(ours.to_owned(), entry.clone())]))),
            (None, _) => None,
        };
        all.extend(found.map(|found| (key.to_owned(), found)));
    }
    let off = Table::from_iter([("enabled".to_owned(), Value::Boolean(false))]);
    all.insert("analytics".to_owned(), Value::Table(off));
    all.to_string()
}

/// Approves these hooks, as the host's own question does.
///
/// # Errors
/// The file is no TOML, or holds something else in that place.
pub fn trust(bytes: &[u8], hooks: &[(String, Trust)]) -> Result<Vec<u8>, String> {
    let mut file = File::open(bytes)?;
    let hooks_table = child(file.tree.as_table_mut(), "hooks", true)?;
    let state = child(hooks_table, "state", false)?;
    for (key, Trust { handler, content }) in hooks {
        let entry = child(state, key, false)?;
        for (name, hash) in [("trusted_hash", handler), ("trusted_content_hash", content)] {
            entry.insert(name, toml_edit::value(hash.as_str()));
        }
    }
    Ok(file.close())
}

/// Takes out what is ours, or puts in its place what was there `before`. The host has taken away a byte
/// order mark and the returns at the ends of lines: the file has them again if it had them `before`.
///
/// # Errors
/// The file is no TOML.
pub fn without_us(now: &[u8], before: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let mut file = File::open(now)?;
    // What cannot be read any more says nothing of what was there.
    let before = before.and_then(|bytes| File::open(bytes).ok());
    if let Some(before) = &before {
        file.has_mark |= before.has_mark;
        file.has_returns |= before.has_returns;
    }
    let before = before.as_ref().map(|file| file.tree.as_table());
    let keys: Vec<String> = find(file.tree.as_table(), &["hooks", "state"])
        .and_then(Item::as_table_like)
        .into_iter()
        .flat_map(|state| state.iter().map(|(key, _)| key.to_owned()))
        .filter(|key| is_our_key(key))
        .collect();
    let mut paths = vec![vec!["marketplaces", NAME], vec!["plugins", ID]];
    paths.extend(keys.iter().map(|key| vec!["hooks", "state", key.as_str()]));
    for path in &paths {
        let then = before.and_then(|before| find(before, path));
        file.put_back(path, then);
    }
    for path in [&["marketplaces"][..], &["plugins"], &["hooks", "state"], &["hooks"]] {
        let is_empty = find(file.tree.as_table(), path)
            .and_then(Item::as_table_like)
            .is_some_and(TableLike::is_empty);
        if is_empty && before.is_none_or(|before| find(before, path).is_none()) {
            file.put_back(path, None);
        }
    }
    let starts_blank = |bytes: &[u8]| matches!(bytes.first(), Some(b'\n' | b'\r'));
    let mut bytes = file.close();
    if !starts_blank(now) {
        while starts_blank(&bytes) {
            bytes.remove(0);
        }
    }
    Ok(bytes)
}

/// Whether both have the same lines, apart from blank ones and how lines end.
#[must_use]
pub fn same_lines(one: &[u8], other: &[u8]) -> bool {
    let lines = |bytes: &[u8]| -> Option<Vec<String>> {
        let lines = text(bytes).ok()?.lines().map(str::trim_end);
        Some(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
    };
    lines(one).is_some_and(|one| Some(one) == lines(other))
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The parser's errors draw a picture of several lines; the last one says what is wrong.
fn first_line(error: &str) -> String {
    let lines: Vec<&str> = error.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &*lines {
        [one] => (*one).to_owned(),
        [place, .., what] => format!("{place}: {what}"),
        [] => "it cannot be read".to_owned(),
    }
}

/// A file that is being edited. The tree ends lines with a newline alone.
struct File {
    tree: DocumentMut,
    has_mark: bool,
    has_returns: bool,
}

impl File {
    fn open(bytes: &[u8]) -> Result<Self, String> {
        let plain = text(bytes)?;
        let has_returns = plain.contains('\n') && !plain.replace("\r\n", "").contains('\n');
        let tree =
            plain.parse().map_err(|error: toml_edit::TomlError| first_line(&error.to_string()))?;
        Ok(Self { tree, has_mark: plain.len() < bytes.len(), has_returns })
    }

    fn close(self) -> Vec<u8> {
        let mut text = self.tree.to_string().replace("\r\n", "\n");
        if self.has_returns {
            text = text.replace('\n', "\r\n");
        }
        if self.has_mark {
            text.insert(0, '\u{feff}');
        }
        text.into_bytes()
    }

    /// Puts the item of before in the place of the one of now, or takes that one away and keeps the
    /// comments above it.
    fn put_back(&mut self, path: &[&str], then: Option<&Item>) {
        let Some((last, above)) = path.split_last() else { return };
        let mut holder: &mut dyn TableLike = self.tree.as_table_mut();
        for name in above {
            match holder.get_mut(name).and_then(Item::as_table_like_mut) {
                Some(inner) => holder = inner,
                None => return,
            }
        }
        let Some(now) = holder.get_mut(last) else { return };
        if let Some(then) = then {
            let position = now.as_table().and_then(toml_edit::Table::position);
            *now = then.clone();
            if let Some(table) = now.as_table_mut() {
                table.set_position(position);
            }
            return;
        }
        let Some(gone) = holder.remove(last) else { return };
        let Some(gone) = gone.as_table() else { return };
        let above = gone.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
        if let (Some(end), Some(position)) = (above.rfind('#'), gone.position()) {
            let end = above
                .get(end..)
                .and_then(|rest| rest.find('\n'))
                .map_or(above.len(), |at| end + at + 1);
            self.keep_comments(above.get(..end).unwrap_or_default(), position);
        }
    }

    /// Puts comments above the next table, or at the end.
    fn keep_comments(&mut self, comments: &str, position: isize) {
        let mut positions = Vec::new();
        each_table(self.tree.as_item_mut(), &mut |table| positions.extend(table.position()));
        positions.sort_unstable();
        let next = positions.into_iter().find(|next| *next > position);
        let Some(next) = next else {
            let end = self.tree.trailing().as_str().unwrap_or_default();
            let end = format!("{comments}{end}");
            self.tree.set_trailing(end);
            return;
        };
        each_table(self.tree.as_item_mut(), &mut |table| {
            if table.position() == Some(next) {
                let above = table.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
                let above = format!("{comments}{above}");
                table.decor_mut().set_prefix(above);
            }
        });
    }
}

/// Every table that has a header of its own.
fn each_table(item: &mut Item, act: &mut dyn FnMut(&mut toml_edit::Table)) {
    match item {
        Item::Table(table) => {
            if !table.is_implicit() && !table.is_dotted() {
                act(table);
            }
            for (_, item) in table.iter_mut() {
                each_table(item, act);
            }
        }
        Item::ArrayOfTables(all) => {
            for table in all.iter_mut() {
                act(table);
                for (_, item) in table.iter_mut() {
                    each_table(item, act);
                }
            }
        }
        Item::None | Item::Value(_) => {}
    }
}

fn find<'a>(table: &'a dyn TableLike, path: &[&str]) -> Option<&'a Item> {
    let (first, rest) = path.split_first()?;
    let item = table.get(first)?;
    if rest.is_empty() { Some(item) } else { find(item.as_table_like()?, rest) }
}

/// The table of this name, made where it is missing; an implicit one has no header of its own.
fn child<'a>(
    table: &'a mut dyn TableLike,
    name: &str,
    is_implicit: bool,
) -> Result<&'a mut dyn TableLike, String> {
    if table.get(name).is_none() {
        let mut new = toml_edit::Table::new();
        new.set_implicit(is_implicit);
        table.insert(name, Item::Table(new));
    }
    let found = table.get_mut(name).and_then(Item::as_table_like_mut);
    found.ok_or_else(|| format!("{name} is no table"))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
