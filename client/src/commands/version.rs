//! `version`.

use compactd_api::PROTOCOL;
use compactd_core::index::SNAPSHOT_FORMAT;
use serde::Serialize;

use crate::cli::JsonArgs;
use crate::error::Error;
use crate::terminal::Ui;

#[derive(Serialize)]
struct Version {
    version: &'static str,
    /// Set by the build of a release.
    commit: Option<&'static str>,
    protocol: u32,
    formats: Formats,
    features: Vec<&'static str>,
}

#[derive(Serialize)]
struct Formats {
    snapshot: u32,
}

pub(super) fn run(args: &JsonArgs, ui: &Ui) -> Result<(), Error> {
    let version = env!("CARGO_PKG_VERSION");
    if !args.json {
        return ui.print(&format!("compactctl {version}\n"));
    }
    ui.print_json(&Version {
        version,
        commit: option_env!("COMPACTD_COMMIT"),
        protocol: PROTOCOL,
        formats: Formats { snapshot: SNAPSHOT_FORMAT },
        features: if cfg!(feature = "async") { vec!["async"] } else { Vec::new() },
    })
}
