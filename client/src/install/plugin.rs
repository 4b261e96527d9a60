//! The plugin for Claude Code, as it is carried in this program and laid out for the host.
//!
//! The host reads a plugin of a folder marketplace in place, so these files are what runs.

use std::borrow::Cow;
use std::path::PathBuf;

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
    ($($mode:literal $path:literal)*) => {
        &[$(Carried {
            path: $path,
            mode: $mode,
            bytes: include_bytes!(concat!("../../../plugin/claude/", $path)),
        }),*]
    };
}

/// The whole plugin. A new file in `plugin/claude` gets its line here; a test compares both.
pub const FILES: &[Carried] = carried! {
    0o644 ".claude-plugin/plugin.json"
    0o644 "README.md"
    0o755 "bin/compactd-hook"
    0o644 "hooks/hooks.json"
    0o644 "hooks/notes.ts"
    0o644 "hooks/register.ts"
    0o644 "hooks/rewrite.ts"
    0o644 "hooks/wire.ts"
};

const MARKETPLACE: &str = include_str!("../../../plugin/.claude-plugin/marketplace.json");

/// Every file of the local marketplace: path in it, permissions, content.
#[must_use]
pub fn marketplace() -> Vec<(PathBuf, u32, Cow<'static, [u8]>)> {
    // In the repository the plugin lies beside the other host's and is named after its own.
    let manifest = MARKETPLACE.replace("\"./claude\"", "\"./compactd\"");
    let manifest =
        (PathBuf::from(".claude-plugin/marketplace.json"), 0o644, manifest.into_bytes().into());
    let plugin = FILES
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

    use serde_json::Value;

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
    fn the_carried_plugin_is_the_one_in_the_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin/claude");
        let mut there = BTreeMap::new();
        files(&root, &root, &mut there);
        there.retain(|path, _| is_part(path));
        let carried: BTreeMap<String, (u32, Vec<u8>)> = FILES
            .iter()
            .map(|file| (file.path.to_owned(), (file.mode, file.bytes.to_vec())))
            .collect();
        let names = |files: &BTreeMap<String, (u32, Vec<u8>)>| {
            files.iter().map(|(name, (mode, _))| format!("{mode:o} {name}")).collect::<Vec<_>>()
        };
        assert_eq!(names(&carried), names(&there), "FILES is not what is in plugin/claude");
        assert_eq!(carried, there);
    }

    #[test]
    fn the_marketplace_leads_to_the_plugin() {
        let files = marketplace();
        let manifest: Value = serde_json::from_slice(&files[0].2).unwrap();
        assert_eq!(manifest["name"], NAME);
        assert_eq!(manifest["plugins"][0]["name"], NAME);
        let source = manifest["plugins"][0]["source"].as_str().unwrap();
        let plugin =
            Path::new(source).strip_prefix(".").unwrap().join(".claude-plugin/plugin.json");
        let (_, _, bytes) = files.iter().find(|(path, ..)| *path == plugin).unwrap();
        let plugin: Value = serde_json::from_slice(bytes).unwrap();
        assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(ID, format!("{}@{}", plugin["name"].as_str().unwrap(), NAME));
    }
}
