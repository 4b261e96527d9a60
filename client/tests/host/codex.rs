//! Codex, as far as a plugin sees it: what the real one was seen to do to its files (0.171.0).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use compactd_core::hash::hash;
use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item, Table, value};

use super::ID;

struct Host {
    folder: PathBuf,
}

/// Is the host, if a script asks for it: returns its exit status.
pub fn act() -> Option<i32> {
    let asked = std::env::var("FAKE_CODEX").ok()?;
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let named = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    if named.as_ref().is_some_and(|named| !named.is_dir()) {
        return fail("failed to resolve CODEX_HOME");
    }
    let host = Host { folder: named.unwrap_or_else(|| home.join(".codex")) };
    if fs::read_to_string(home.join("fail")).is_ok_and(|step| asked.contains(&step)) {
        return fail("the host says no");
    }
    let config = fs::read_to_string(host.config()).unwrap_or_default();
    let tree = match toml::from_str::<toml::Table>(config.trim_start_matches('\u{feff}')) {
        Ok(tree) => tree,
        Err(error) => return fail(&format!("failed to load configuration: {error}")),
    };
    fs::create_dir_all(host.folder.join("tmp/arg0-linux")).unwrap();
    match *asked.split(' ').collect::<Vec<_>>() {
        ["plugin", "marketplace", "add", path, "--json"] => host.add_marketplace(path)?,
        ["plugin", "add", ID, "--json"] if is_off(&tree, "plugins") => {
            return fail("plugin `compactd` was not found in marketplace `compactd`");
        }
        ["plugin", "add", ID, "--json"] => host.add()?,
        ["plugin", "marketplace", "remove", "compactd"] => host.edit(0o600, |tree| {
            tree["marketplaces"].as_table_mut().unwrap().remove("compactd").unwrap();
        }),
        ["features", "enable", name] => {
            host.edit(0o600, |tree| tree["features"][name] = value(true));
        }
        ["app-server"] => host.serve(),
        _ => panic!("the host does not know {asked}"),
    }
    Some(0)
}

fn fail(said: &str) -> Option<i32> {
    let _gone = writeln!(std::io::stderr(), "Error: {said}");
    Some(1)
}

impl Host {
    fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    fn edit(&self, mode: u32, change: impl FnOnce(&mut DocumentMut)) {
        let path = self.config();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut tree: DocumentMut = text.trim_start_matches('\u{feff}').parse().unwrap();
        change(&mut tree);
        let text = tree.to_string().replace("\r\n", "\n");
        // Also of a link that leads nowhere.
        let linked = fs::read_link(&path).map(|target| path.with_file_name("").join(target));
        let target = fs::canonicalize(&path).or(linked).unwrap_or(path);
        let new = target.with_extension("tmp");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(new, target).unwrap();
    }

    fn add_marketplace(&self, path: &str) -> Option<()> {
        fs::create_dir_all(self.folder.join(".tmp/marketplaces")).unwrap();
        let mode = fs::metadata(self.config()).map_or(0o644, |found| found.permissions().mode());
        self.edit(mode & 0o7777, |tree| {
            let entry = entry(tree, "marketplaces", "compactd");
            entry["source_type"] = value("local");
            entry["source"] = value(path);
        });
        Some(())
    }

    fn add(&self) -> Option<()> {
        let text = fs::read_to_string(self.config()).unwrap();
        let tree: toml::Table = toml::from_str(&text).unwrap();
        let source = PathBuf::from(tree["marketplaces"]["compactd"]["source"].as_str()?);
        let manifest = fs::read(source.join(".agents/plugins/marketplace.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let plugin = source.join(manifest["plugins"][0]["source"]["path"].as_str()?);
        let about = fs::read(plugin.join(".codex-plugin/plugin.json")).unwrap();
        let about: Value = serde_json::from_slice(&about).unwrap();
        let copies = self.folder.join("plugins/cache/compactd/compactd");
        let _none = fs::remove_dir_all(&copies);
        copy(&plugin, &copies.join(about["version"].as_str()?));
        self.edit(0o600, |tree| entry(tree, "plugins", ID)["enabled"] = value(true));
        Some(())
    }

    fn hooks(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.config()).unwrap();
        let tree: toml::Table = toml::from_str(&text).unwrap();
        let is_off = is_off(&tree, "hooks") || is_off(&tree, "plugins");
        let copies = self.folder.join("plugins/cache/compactd/compactd");
        let Some(Ok(copy)) = fs::read_dir(copies).ok().and_then(|mut all| all.next()) else {
            return Vec::new();
        };
        if is_off {
            return Vec::new();
        }
        let mut files = BTreeMap::new();
        read_all(&copy.path(), &mut files);
        let content = format!("sha256:{:x}", hash(format!("{:?}", files.values()).as_bytes()));
        let about = fs::read(copy.path().join("hooks/hooks.json")).unwrap();
        let about: Value = serde_json::from_slice(&about).unwrap();
        let state = tree.get("hooks").and_then(|hooks| hooks.get("state"));
        let hook = |(event, entry): (&String, &Value)| {
            let key = format!("{ID}:hooks/hooks.json:{}:0:0", snake(event));
            let own = format!("sha256:{:x}", hash(entry.to_string().as_bytes()));
            let known = state.and_then(|state| state.get(&key));
            let is = |name: &str, hash: &str| {
                known.and_then(|known| known.get(name)?.as_str()).is_some_and(|known| known == hash)
            };
            let status = match known.is_some_and(|known| known.get("trusted_hash").is_some()) {
                false => "untrusted",
                true if is("trusted_hash", &own) && is("trusted_content_hash", &content) => {
                    "trusted"
                }
                true => "modified",
            };
            let off = known.and_then(|known| known.get("enabled")?.as_bool()) == Some(false);
            json!({
                "key": key, "eventName": camel(event), "enabled": !off, "trustStatus": status,
                "currentHash": format!("{own}/{content}"), "pluginId": ID, "source": "plugin",
            })
        };
        about["hooks"].as_object().unwrap().iter().map(hook).collect()
    }

    /// Answers on stdio until its input ends, and fills its folder as the real one does.
    fn serve(&self) {
        fs::write(self.folder.join("state_5.sqlite"), "x").unwrap();
        // The test's own words stand on the line.
        let mut out = std::io::stdout();
        writeln!(out).unwrap();
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let message: Value = serde_json::from_str(&line).unwrap();
            let result = match message["method"].as_str().unwrap() {
                "initialize" => json!({"codexHome": self.folder}),
                "hooks/list" => json!({"data": [{"hooks": self.hooks(), "errors": []}]}),
                _ => continue,
            };
            let answer = json!({"id": message["id"], "result": result});
            writeln!(out, "{answer}").unwrap();
            out.flush().unwrap();
        }
    }
}

fn is_off(tree: &toml::Table, feature: &str) -> bool {
    let found = tree.get("features").and_then(|all| all.get(feature));
    found.is_some_and(|found| found.as_bool() == Some(false))
}

fn entry<'a>(tree: &'a mut DocumentMut, table: &str, name: &str) -> &'a mut Item {
    let mut outer = Table::new();
    outer.set_implicit(true);
    let outer = tree.entry(table).or_insert(Item::Table(outer));
    if let Some(inline) = outer.as_inline_table() {
        *outer = Item::Table(inline.clone().into_table());
    }
    outer.as_table_mut().unwrap().entry(name).or_insert(Item::Table(Table::new()))
}

fn camel(event: &str) -> String {
    let (first, rest) = event.split_at(1);
    format!("{}{rest}", first.to_lowercase())
}

fn snake(event: &str) -> String {
    let letter = |letter: char| match letter.is_uppercase() {
        true => format!("_{}", letter.to_lowercase()),
        false => letter.to_string(),
    };
    event.chars().map(letter).collect::<String>().trim_start_matches('_').to_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn read_all(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, found);
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}
