//! The mod's types: by its own declarations, and by those that the host writes out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use compactd_tests::harness::Home;
use compactd_tests::harness::host::{Host, MockApi, Step, claude, compiler};
use serde_json::json;

use super::{checkout, plugin};

#[track_caller]
fn check(compiler: &Path, project: &Path) {
    let output = Command::new(compiler).arg("--project").arg(project).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// A file below a folder by its name.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.into_iter().find_map(|path| {
        if path.is_dir() {
            find(&path, name)
        } else {
            path.file_name().is_some_and(|own| own == name).then_some(path)
        }
    })
}

#[test]
fn the_mod_fits_its_own_declarations() {
    let Some(compiler) = compiler() else { return };
    check(&compiler, &checkout());
}

#[test]
fn the_mod_fits_the_hosts_declarations() {
    let (Some(compiler), Some(claude)) = (compiler(), claude()) else { return };
    let (home, api) = (Home::new(), MockApi::start([Step::text("Fine.")]));
    let folder = home.join("tmp");
    fs::create_dir(&folder).unwrap();
    // Any prompt with this skill makes the host write its declarations.
    Host::new(&claude, &home, &api)
        .with_env("CLAUDE_CODE_TMPDIR", &folder)
        .run(&["/plugin-authoring"]);
    let types = find(&folder, "claude-code.d.ts").expect("the host's declarations");
    let project = json!({
        "extends": checkout().join("tsconfig.json"),
        "include": [checkout().join("hooks"), types],
    });
    let path = home.join("tsconfig.json");
    fs::write(&path, project.to_string()).unwrap();
    check(&compiler, &path);
    // A check that sees nothing would pass as well.
    let broken = home.join("broken.ts");
    fs::write(
        &broken,
        "import type { Register } from 'claude-code'\nexport const r: Register = 1\n",
    )
    .unwrap();
    let project = json!({"extends": checkout().join("tsconfig.json"), "include": [broken, types]});
    fs::write(&path, project.to_string()).unwrap();
    let output = Command::new(compiler).arg("--project").arg(&path).output().unwrap();
    assert!(!output.status.success());
}

#[test]
fn the_host_finds_nothing_wrong_with_the_plugin() {
    let Some(claude) = claude() else { return };
    let (home, api) = (Home::new(), MockApi::start([]));
    let host = Host::new(&claude, &home, &api);
    let output =
        host.command(["plugin", "validate", plugin(&home).to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("Validation passed"), "{said}");
    assert!(said.contains("register.ts hooks: session.start, session.compact"), "{said}");
}
