//! The real binaries. Cargo does not build those of other packages for a test, so they are built
//! here, once.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Where the programs are.
#[derive(Debug)]
pub struct Binaries {
    pub compactd: PathBuf,
    pub compactctl: PathBuf,
    pub hook: PathBuf,
}

/// The programs, built on the first call.
#[must_use]
pub fn binaries() -> &'static Binaries {
    static BUILT: OnceLock<Binaries> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> Binaries {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--message-format=json", "--quiet"])
        .args(["-p", "compactd", "-p", "compactctl", "-p", "compactd-hook", "--bins"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "the binaries cannot be built");
    let text = String::from_utf8(output.stdout).unwrap();
    let find = |name: &str| -> PathBuf {
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["target"]["name"] == name)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .unwrap_or_else(|| panic!("cargo names no {name}"))
    };
    Binaries {
        compactd: find("compactd"),
        compactctl: find("compactctl"),
        hook: find("compactd-hook"),
    }
}
