//! A host with the installed plugin, and our daemon beside it.

use std::path::Path;

use compactd_tests::harness::host::codex::{Codex, Config, Request, Responses, wire};
use compactd_tests::harness::{Home, Process};
use serde_json::{Value, json};

/// What a person laid down, which every text has to hold.
const RULE: &str = "You must never touch port 48213.";
const HEAD: &str = "# Record kept by compactd: before compaction ";

/// A home with a host that has the plugin, and a daemon.
pub(super) struct Rig {
    home: Home,
    pub(super) host: Codex,
    daemon: Option<Process>,
}

impl Rig {
    /// The plugin is installed; its hooks are not approved yet.
    pub(super) fn installed(codex: &Path, home: Home, api: &Responses, config: &Config) -> Self {
        home.put_shim();
        let host = Codex::set_up(codex, &home, api, config);
        let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin");
        host.install_plugin(&plugins, "compactd@compactd");
        let daemon = Process::start(&home, &[]);
        Self { home, host, daemon: Some(daemon) }
    }

    pub(super) fn new(codex: &Path, home: Home, api: &Responses, config: &Config) -> Self {
        let rig = Self::installed(codex, home, api, config);
        assert_eq!(rig.host.trust().len(), 9);
        rig
    }

    /// One whose daemon answers a person's `/compact` with a fork.
    pub(super) fn forking(codex: &Path, api: &Responses, config: &Config) -> Self {
        let home = Home::new();
        let settings = "[codex]\non_manual_compact = \"fork\"\n";
        home.put(&home.join(".config/compactd/config.toml"), settings);
        Self::new(codex, home, api, config)
    }

    pub(super) fn daemon(&self) -> &Process {
        self.daemon.as_ref().unwrap()
    }

    /// The daemon dies and another one starts.
    pub(super) fn restart(&mut self) {
        self.daemon.take().unwrap().kill();
        self.daemon = Some(Process::start(&self.home, &[]));
    }

    /// Compactions of a thread, and how far its text is.
    pub(super) fn known(&self, thread: &str) -> (u64, Value) {
        let details = self.daemon().client.get(&format!("/v1/sessions/{thread}")).good();
        (details["compaction"].as_u64().unwrap(), details["recovery"].clone())
    }

    #[track_caller]
    pub(super) fn has_delivered(&self, thread: &str, number: u64) {
        let recovery = json!({"compaction": number, "state": "delivered"});
        assert_eq!(self.known(thread), (number, recovery));
    }
}

/// The compactions whose texts a request holds, in order.
#[track_caller]
pub(super) fn texts(request: &Request) -> Vec<u64> {
    let mut found = Vec::new();
    for item in request.input() {
        let text = wire::text(item);
        for part in text.split(HEAD).skip(1) {
            assert_eq!(item["role"], "developer", "{item}");
            assert!(part.contains(RULE), "{text}");
            assert!(part.contains("`compactctl recall CALL_ID`"), "{text}");
            found.push(part.split(' ').next().unwrap().parse().unwrap());
        }
    }
    found
}

pub(super) fn prompt(text: &str) -> String {
    format!("{RULE} {text}")
}
