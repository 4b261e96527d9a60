//! The plugins, as they are carried in this program and laid out for the hosts.
//!
//! Claude Code reads a plugin of a folder marketplace in place, so these files are what runs; Codex
//! copies it, and runs the hooks of the copy once a person has approved its bytes.

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::Value;

/// Name of the plugin and of its marketplace.
pub const NAME: &str = "compactd";
/// How the host names the plugin.
pub const ID: &str = "compactd@compactd";

/// A file that is carried in this program.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    /// Path in its folder.
    pub path: &'static str,
    /// Permissions.
    pub mode: u32,
    /// Content.
    pub bytes: &'static [u8],
}

macro_rules! carried {
    ($folder:literal $($mode:literal $path:literal)*) => {
        &[$(Carried {
            path: $path,
            mode: $mode,
            bytes: include_bytes!(concat!("../../../plugin/", $folder, "/", $path)),
        }),*]
    };
}

/// The whole plugin. A new file in `plugin/claude` gets its line here; a test compares both.
pub const FILES: &[Carried] = carried! { "claude"
    0o644 ".claude-plugin/plugin.json"
    0o644 "README.md"
    0o755 "bin/compactd-hook"
    0o644 "hooks/hooks.json"
    0o644 "hooks/notes.ts"
    0o644 "hooks/register.ts"
    0o644 "hooks/rewrite.ts"
    0o644 "hooks/wire.ts"
};

/// The whole plugin for Codex, likewise from `plugin/codex`.
pub const CODEX: &[Carried] = carried! { "codex"
    0o644 ".codex-plugin/plugin.json"
    0o644 "README.md"
    0o755 "bin/compactd-hook"
    0o644 "hooks/hooks.json"
};

const CODEX_MARKETPLACE: &str = include_str!("../../../plugin/.agents/plugins/marketplace.json");
const MARKETPLACE: &str = include_str!("../../../plugin/.claude-plugin/marketplace.json");

/// A file to be laid out: path in its marketplace, permissions, content.
pub type LaidOut = (PathBuf, u32, Cow<'static, [u8]>);

/// Every file of the local marketplace of Claude Code.
#[must_use]
pub fn marketplace() -> Vec<LaidOut> {
    // In the repository the plugin lies beside the other host's and is named after its own.
    let manifest = MARKETPLACE.replace("\"./claude\"", "\"./compactd\"");
    laid_out(".claude-plugin/marketplace.json", manifest, FILES)
}

/// Every file of the local marketplace of Codex.
#[must_use]
pub fn codex_marketplace() -> Vec<LaidOut> {
    let manifest = CODEX_MARKETPLACE.replace("\"./codex\"", "\"./compactd\"");
    laid_out(".agents/plugins/marketplace.json", manifest, CODEX)
}

/// The events that a plugin hooks.
#[must_use]
pub fn events(files: &[Carried]) -> Vec<String> {
    let carried = files.iter().find(|file| file.path == "hooks/hooks.json");
    let hooks: Value =
        carried.and_then(|file| serde_json::from_slice(file.bytes).ok()).unwrap_or_default();
    let events = hooks.get("hooks").and_then(Value::as_object);
    events.into_iter().flat_map(|events| events.keys().cloned()).collect()
}

fn laid_out(path: &str, manifest: String, files: &'static [Carried]) -> Vec<LaidOut> {
    let manifest = (PathBuf::from(path), 0o644, manifest.into_bytes().into());
    let plugin = files
        .iter()
        .map(|file| (PathBuf::from(NAME).join(file.path), file.mode, Cow::Borrowed(file.bytes)));
    [manifest].into_iter().chain(plugin).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    /// What lies with the plugin for its development only.
    fn is_part(path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap();
        !(path.contains("node_modules/")
            || path.ends_with(".test.ts")
            || path.ends_with(".d.ts")
            || ["package.json", "package-lock.json", "tsconfig.json", ".gitignore"].contains(&name))
    }

    fn files(root: &Path, folder: &Path, found: &mut BTreeMap<String, (u32, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(root, &path, found);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
            found.insert(name, (mode, fs::read(&path).unwrap()));
        }
    }

    #[test]
    fn the_carried_plugins_are_those_in_the_repository() {
        for (name, carried) in [("claude", FILES), ("codex", CODEX)] {
            compare(name, carried);
        }
    }

    fn compare(name: &str, carried: &[Carried]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin").join(name);
        let mut there = BTreeMap::new();
        files(&root, &root, &mut there);
        there.retain(|path, _| is_part(path));
        let carried: BTreeMap<String, (u32, Vec<u8>)> = carried
            .iter()
            .map(|file| (file.path.to_owned(), (file.mode, file.bytes.to_vec())))
            .collect();
        let names = |files: &BTreeMap<String, (u32, Vec<u8>)>| {
            files.iter().map(|(name, (mode, _))| format!("{mode:o} {name}")).collect::<Vec<_>>()
        };
        assert_eq!(names(&carried), names(&there), "not what is in plugin/{name}");
        assert_eq!(carried, there);
    }

    #[test]
    fn the_marketplaces_lead_to_the_plugins() {
        for (files, source, plugin) in [
            (marketplace(), "/plugins/0/source", ".claude-plugin/plugin.json"),
            (codex_marketplace(), "/plugins/0/source/path", ".codex-plugin/plugin.json"),
        ] {
            let manifest: Value = serde_json::from_slice(&files[0].2).unwrap();
            assert_eq!(manifest["name"], NAME);
            assert_eq!(manifest["plugins"][0]["name"], NAME);
            let source = manifest.pointer(source).unwrap().as_str().unwrap();
            let plugin = Path::new(source).strip_prefix(".").unwrap().join(plugin);
            let (_, _, bytes) = files.iter().find(|(path, ..)| *path == plugin).unwrap();
            let plugin: Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
            assert_eq!(ID, format!("{}@{}", plugin["name"].as_str().unwrap(), NAME));
        }
    }

    #[test]
    fn the_plugins_hook_what_the_repository_says() {
        for files in [FILES, CODEX] {
            let events = events(files);
            for event in ["PreCompact", "PostCompact", "SessionStart", "SessionEnd"] {
                assert!(events.iter().any(|known| known == event), "{events:?}");
            }
        }
    }
}
