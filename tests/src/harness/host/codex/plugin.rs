//! What the host has to be told before plugins and hooks run: where a plugin is, and that its hooks
//! are approved.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::setup::Codex;

/// Everything behind this line in `config.toml` is written by [`Codex::trust`].
const TRUST_MARK: &str = "# Approved by the test, as a person would at the prompt:";

impl Codex {
    /// Installs a plugin, such as `compactd@compactd`, from a folder that is a marketplace, by the
    /// host's own commands. Its hooks do not run before [`Self::trust`].
    ///
    /// # Panics
    /// The host refuses; what it said is told.
    #[track_caller]
    pub fn install_plugin(&self, marketplace: &Path, plugin: &str) {
        let folder = marketplace.canonicalize().unwrap();
        let add = ["marketplace".as_ref(), "add".as_ref(), folder.as_os_str()];
        for arguments in [&add[..], &["add".as_ref(), plugin.as_ref()]] {
            let output = self.command(["plugin"]).args(arguments).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }

    /// The hooks that the host finds for the working folder: `key`, `eventName`, `currentHash`,
    /// `trustStatus` and more.
    #[track_caller]
    #[must_use]
    pub fn hooks(&self) -> Vec<Value> {
        let mut server = self.app_server();
        let found = server.call("hooks/list", &json!({"cwds": [self.work()]}));
        found["data"][0]["hooks"].as_array().cloned().unwrap_or_default()
    }

    /// Approves every hook that the host finds, as a person would at the prompt, and gives them as
    /// they were. The approval is for a hook as it is now, and for a plugin as all its files are.
    #[track_caller]
    pub fn trust(&self) -> Vec<Value> {
        let found = self.hooks();
        let path = self.codex_home().join("config.toml");
        let text = fs::read_to_string(&path).unwrap();
        let before = text.split(TRUST_MARK).next().unwrap_or_default();
        let mut text = format!("{}\n\n{TRUST_MARK}\n", before.trim_end());
        for hook in &found {
            let hash = hook["currentHash"].as_str().unwrap();
            let (own, bundle) = hash.split_once('/').unwrap_or((hash, ""));
            writeln!(text, "[hooks.state.{}]\ntrusted_hash = \"{own}\"", hook["key"]).unwrap();
            if !bundle.is_empty() {
                writeln!(text, "trusted_content_hash = \"{bundle}\"").unwrap();
            }
        }
        fs::write(path, text).unwrap();
        found
    }
}
