//! What an installation would do, as data: looked up first, shown by `--dry-run`, done by `apply`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::hosts::Which;
use super::places::Places;
use super::service;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Create,
    /// It takes the place of another.
    Replace,
    /// It is there already.
    Keep,
}

/// Where the content of a file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A program beside ours.
    File(PathBuf),
    /// This program.
    Carried(Cow<'static, [u8]>),
}

/// A file to be there afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStep {
    /// Where.
    pub path: PathBuf,
    /// With these permissions.
    pub mode: u32,
    /// With this in it.
    pub content: Content,
    /// What that means.
    pub change: Change,
}

/// What happens with the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Service {
    /// It becomes a service.
    Enable,
    /// The service gets a new program or new units.
    Restart,
    /// It is a service already.
    Keep,
    /// The hooks start it when it is needed, because of this.
    OnDemand(String),
}

/// What happens in the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// These commands of its own are run.
    Run(Vec<Vec<String>>),
    /// It has the plugin already.
    Keep,
    /// It is not there; these commands would have to be run.
    Later(Vec<Vec<String>>),
    /// It is left alone.
    Out,
}

/// Everything that would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Files.
    pub files: Vec<FileStep>,
    /// Files of an older version.
    pub stale: Vec<PathBuf>,
    /// The daemon.
    pub service: Service,
    /// Claude Code.
    pub claude: Host,
    /// Codex.
    pub codex: Host,
    /// Codex's hooks are to be approved.
    pub trust: bool,
}

impl Plan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.files.iter().all(|file| file.change == Change::Keep)
            && self.stale.is_empty()
            && !matches!(self.service, Service::Enable | Service::Restart)
            && !matches!(self.claude, Host::Run(_))
            && !matches!(self.codex, Host::Run(_))
            && !self.trust
    }

    /// Whether this program is put in place anew.
    #[must_use]
    pub fn renews(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.path == path && file.change == Change::Replace)
    }

    /// One line for each thing that would be done.
    #[must_use]
    pub fn lines(&self, places: &Places) -> Vec<String> {
        let mut lines = Vec::new();
        for file in &self.files {
            let word = match file.change {
                Change::Keep => continue,
                Change::Create => "create",
                Change::Replace => "replace",
            };
            let from = match &file.content {
                Content::File(from) => format!(" from {}", places.shown(from)),
                Content::Carried(_) => String::new(),
            };
            lines.push(format!("{word} {} (mode {:o}){from}", places.shown(&file.path), file.mode));
        }
        lines.extend(self.stale.iter().map(|path| format!("remove {}", places.shown(path))));
        let manager: &[&[&str]] = match &self.service {
            Service::Enable => &service::ENABLE,
            Service::Restart => &service::RESTART,
            Service::Keep | Service::OnDemand(_) => &[],
        };
        lines.extend(manager.iter().map(|args| format!("run `{}`", service::shown(args))));
        let claude = (Which::Claude, &self.claude, places.claude.files().to_vec());
        let codex = (Which::Codex, &self.codex, vec![places.codex.config()]);
        for (which, host, files) in [claude, codex] {
            if let Host::Run(commands) = host {
                let name = which.name();
                lines.extend(
                    files.iter().map(|path| {
                        format!("save {} before {name} changes it", places.shown(path))
                    }),
                );
                lines.extend(commands.iter().map(|args| format!("run `{}`", which.typed(args))));
            }
        }
        if self.trust {
            let config = places.shown(&places.codex.config());
            lines.push(format!(
                "approve the plugin's hooks in {config}, by what Codex says of them"
            ));
        }
        if !lines.is_empty() {
            lines.push(format!(
                "write the record of all this to {}",
                places.shown(&places.record())
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use compactd_api::dirs::{Env, Os};

    use super::*;

    fn plan(change: Change, service: Service, claude: Host) -> Plan {
        let content = Content::File("/build/compactd".into());
        let path = PathBuf::from("/h/.local/share/compactd/bin/compactd");
        let files = vec![FileStep { path, mode: 0o755, content, change }];
        let codex = claude.clone();
        Plan { files, stale: Vec::new(), service, trust: codex != Host::Keep, claude, codex }
    }

    #[test]
    fn a_plan_says_all_that_it_does_and_nothing_else() {
        let lookup = |name: &str| (name == "HOME").then(|| "/h".into());
        let places = Places::new(&Env::from_lookup(Os::Linux, lookup), &lookup).unwrap();
        let later = Host::Later(vec![vec!["plugin".to_owned()]]);
        let on_demand = || Service::OnDemand("x".to_owned());
        let done = plan(Change::Keep, on_demand(), Host::Keep);
        assert!(done.is_done() && done.lines(&places).is_empty());
        let done = Plan { trust: false, ..plan(Change::Keep, on_demand(), later) };
        assert!(done.is_done() && done.lines(&places).is_empty());
        let commands = vec![vec!["plugin".to_owned(), "install".to_owned()]];
        let all = plan(Change::Replace, Service::Enable, Host::Run(commands));
        assert!(!all.is_done() && all.renews(Path::new("/h/.local/share/compactd/bin/compactd")));
        assert_eq!(
            all.lines(&places),
            [
                "replace ~/.local/share/compactd/bin/compactd (mode 755) from /build/compactd",
                "run `systemctl --user daemon-reload`",
                "run `systemctl --user enable --now compactd.socket compactd.service`",
                "save ~/.claude/settings.json before Claude Code changes it",
                "save ~/.claude/plugins/known_marketplaces.json before Claude Code changes it",
                "save ~/.claude/plugins/installed_plugins.json before Claude Code changes it",
                "save ~/.claude.json before Claude Code changes it",
                "run `claude plugin install`",
                "save ~/.codex/config.toml before Codex changes it",
                "run `codex plugin install`",
                "approve the plugin's hooks in ~/.codex/config.toml, by what Codex says of them",
                "write the record of all this to ~/.local/state/compactd/install.json",
            ]
        );
    }
}
