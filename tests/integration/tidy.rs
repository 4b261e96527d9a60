//! House rules as tests: what a reviewer would have to look for by hand otherwise.
//!
//! Each test lists everything that is wrong, so that one run is enough to set it right.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use compactd_api::{ErrorCode, routes, settings};
use regex::Regex;
use serde_json::Value;

/// Licences that a dependency may have; of alternatives one is enough.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages in `Cargo.lock`, those of other systems included.
const PACKAGES_MAX: usize = 260;

/// Lines of a Rust file.
const LINES_MAX: usize = 500;

/// Files that may be longer, and how long.
const LONGER: &[(&str, usize, &str)] =
    &[("client/shim/tests/hook.rs", 600, "every way a hook can end, with one set of fake daemons")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Our files below `folder` with one of these endings, as paths from the root, in order.
fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut waiting = vec![root.join(folder)];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && !matches!(&*name, "target" | ".git" | ".cache" | "node_modules") {
                waiting.push(entry.path());
            } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
                let path = entry.path();
                found.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Every line of these files that `wrong` matches.
fn lines_with(files: &[String], wrong: &Regex) -> Vec<String> {
    let mut found = Vec::new();
    for path in files {
        let text = read(path);
        let lines = text.lines().zip(1..).filter(|(line, _)| wrong.is_match(line));
        found.extend(lines.map(|(line, number)| format!("{path}:{number}: {}", line.trim())));
    }
    found
}

/// All packages that the workspace is made of. Without the network; the packages of other systems
/// are left out where they were never fetched.
fn metadata() -> Value {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let narrower: [&[&str]; 4] = [
        &["--all-features"],
        &["--all-features", "--filter-platform", &host],
        &["--filter-platform", &host],
        &[],
    ];
    let mut said = String::new();
    for more in narrower {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked", "--offline"])
            .args(more)
            .current_dir(root())
            .output()
            .unwrap();
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).unwrap();
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    panic!("cargo metadata: {said}");
}

/// Whether an SPDX expression can be met: `OR` needs one side, `AND` both.
fn is_met(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(&words, &mut at);
    met && at == words.len()
}

fn any(words: &[&str], at: &mut usize) -> bool {
    let mut met = all(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(words, at);
    }
    met
}

fn all(words: &[&str], at: &mut usize) -> bool {
    let mut met = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at);
    }
    met
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(&word) = words.get(*at) else { return false };
    *at += 1;
    if word == "(" {
        let met = any(words, at);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return met && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let whole = words.get(*at - 1..*at + 2).map(|parts| parts.join(" "));
        *at += 2;
        return whole.is_some_and(|whole| LICENCES.contains(&&*whole));
    }
    LICENCES.contains(&word)
}

#[test]
fn licence_expressions() {
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "MIT OR LGPL-2.1-or-later",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
    ] {
        assert!(is_met(good), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH x", "(MIT", "MIT ISC"] {
        assert!(!is_met(bad), "{bad}");
    }
}

#[test]
fn dependencies_have_allowed_licences() {
    let metadata = metadata();
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_met(licence) {
            problems.push(format!("{} {}: {licence:?}", package["name"], package["version"]));
        }
    }
    none(&problems);
}

#[test]
fn there_are_few_dependencies() {
    let locked = read("Cargo.lock").lines().filter(|line| *line == "[[package]]").count();
    assert!(locked <= PACKAGES_MAX, "{locked} locked packages, at most {PACKAGES_MAX}");
}

#[test]
fn all_versions_are_the_workspace_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(read("Cargo.toml").contains(&format!("\nversion = \"{version}\"\n")));
    let mut problems = Vec::new();
    for path in files("", &["Cargo.toml"]) {
        let text = read(&path);
        for wanted in ["version", "edition", "rust-version", "license", "publish"] {
            if path != "Cargo.toml" && !text.contains(&format!("\n{wanted}.workspace = true\n")) {
                problems.push(format!("{path}: {wanted} is not the workspace's"));
            }
        }
    }
    let mut manifests = 0;
    for path in files("plugin", &[".json"]) {
        let manifest: Value = serde_json::from_str(&read(&path)).unwrap_or_else(|error| {
            panic!("{path}: {error}");
        });
        let plugins = manifest["plugins"].as_array().into_iter().flatten();
        for stated in plugins.chain([&manifest]).filter_map(|part| part["version"].as_str()) {
            manifests += 1;
            if stated != version {
                problems.push(format!("{path}: version {stated}, the workspace has {version}"));
            }
        }
    }
    none(&problems);
    assert!(manifests >= 3, "only {manifests} manifests of plugins state a version");
}

#[test]
fn rust_files_are_short_and_say_what_they_are() {
    let mut problems = Vec::new();
    for path in files("", &[".rs"]) {
        let text = read(&path);
        // `tests.rs` and `…_tests.rs` are part of the module that names them.
        let is_part = path.ends_with("/tests.rs") || path.ends_with("_tests.rs");
        if !is_part && !text.starts_with("//!") {
            problems.push(format!("{path}: does not begin with //!"));
        }
        let exception = LONGER.iter().find(|(longer, ..)| *longer == path);
        let max = exception.map_or(LINES_MAX, |(_, max, _)| *max);
        let lines = text.lines().count();
        if lines > max {
            problems.push(format!("{path}: {lines} lines, at most {max}"));
        }
    }
    for (path, _, why) in LONGER {
        let needed = root().join(path).exists() && read(path).lines().count() > LINES_MAX;
        if !needed {
            problems.push(format!("{path}: needs no exception any more ({why})"));
        }
    }
    none(&problems);
}

#[test]
fn nothing_is_put_off() {
    let put_off = Regex::new(concat!(r"#\[igno", r"re|\bTO", r"DO\b|\bFIX", r"ME\b")).unwrap();
    none(&lines_with(&files("", &[".rs", ".toml", ".sh", ".md", ".conf", ".service"]), &put_off));
}

#[test]
fn the_core_is_pure() {
    let impure = Regex::new(
        r"std::(fs|net|env|thread|process|os)\b|\b(Instant|SystemTime)\b|\b(tokio|tracing)::|println!",
    )
    .unwrap();
    let mut files = files("daemon/core/src", &[".rs"]);
    files.retain(|path| !path.ends_with("tests.rs") && !path.contains("/tests/"));
    none(&lines_with(&files, &impure));
    let manifest = read("daemon/core/Cargo.toml");
    for runtime in ["tokio", "axum", "tracing", "rustix", "notify"] {
        assert!(!manifest.contains(&format!("\n{runtime}")), "the core depends on {runtime}");
    }
}

#[test]
fn dependencies_point_one_way() {
    let allowed: [(&str, &[&str]); 7] = [
        ("client/shim", &[]),
        ("daemon/core", &[]),
        ("daemon/transcript", &["core"]),
        ("daemon/api", &["core"]),
        ("daemon/fork", &["api", "core", "transcript"]),
        ("daemon", &["api", "core", "fork", "transcript"]),
        ("client", &["api", "core", "fork", "transcript"]),
    ];
    let own = Regex::new(r"(?m)^compactd(?:-(\w+))?\.workspace").unwrap();
    let mut problems = Vec::new();
    for (folder, allowed) in allowed {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        let needed = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for package in own.captures_iter(needed) {
            let name = package.get(1).map_or("compactd", |name| name.as_str());
            if !allowed.contains(&name) {
                problems.push(format!("{folder} must not depend on {name}"));
            }
        }
    }
    none(&problems);
}

#[test]
fn the_docs_have_every_setting() {
    let docs = read("docs/config.md");
    let table = settings::markdown_table();
    assert!(docs.contains(&table), "put this table into docs/config.md:\n\n{table}");
}

#[test]
fn the_docs_have_every_route_and_error() {
    let docs = read("docs/api.md");
    let mut problems = Vec::new();
    for route in routes::ALL {
        if !docs.contains(&format!("| `{}` | `{}` |", route.method, route.path)) {
            problems.push(format!("docs/api.md: no row for {} {}", route.method, route.path));
        }
    }
    for code in ErrorCode::ALL.iter().filter(|code| **code != ErrorCode::Other) {
        if !docs.contains(&format!("| `{}` | {} |", code.name(), code.status())) {
            problems.push(format!("docs/api.md: no row for {} ({})", code.name(), code.status()));
        }
    }
    none(&problems);
}

#[test]
fn words_are_those_of_the_glossary() {
    let mut docs = files("", &[".md"]);
    docs.retain(|path| !path.starts_with("tests/fixtures/") && path != "docs/glossary.md");
    let wrong = Regex::new(
        // The option `--prune` is a name.
        r"(?i)(\b(chats?|chat history|prun(es|ed|ing)|garbage[- ]collect\w*|compression ratio)\b|(^|[^-])\bprune\b)",
    )
    .unwrap();
    none(&lines_with(&docs, &wrong));
}

#[test]
fn no_path_of_a_machine() {
    let mut ours = files("", &[".rs", ".toml", ".md", ".sh", ".json", ".service", ".socket"]);
    // Recorded and invented sessions have invented folders in them.
    ours.retain(|path| !path.starts_with("tests/"));
    ours.push(".ci/run".to_owned());
    let path =
        Regex::new(r"/r[o]ot/|/h[o]me/[a-z]+/\.(cargo|rustup)|(^|[^a-z~>.])/w[o]rk/").unwrap();
    none(&lines_with(&ours, &path));
}

#[test]
fn links_in_the_docs_lead_somewhere() {
    let link = Regex::new(r"\]\(([^)#:]+)(#[^)]*)?\)").unwrap();
    let mut problems = Vec::new();
    for path in files("", &[".md"]) {
        let folder = root().join(&path).parent().unwrap().to_path_buf();
        for found in link.captures_iter(&read(&path)) {
            // Written by its own command; not there in every checkout.
            if &found[1] != "BENCHMARKS.md" && !folder.join(&found[1]).exists() {
                problems.push(format!("{path}: {} does not exist", &found[1]));
            }
        }
    }
    none(&problems);
}

#[test]
fn the_readme_and_the_ci_run_the_same_tests() {
    let readme = read("README.md");
    let command = "cargo test --workspace";
    assert!(readme.lines().any(|line| line == command));
    assert!(read(".ci/run").contains(command));
    let commands: BTreeSet<&str> = ["watch", "status", "sessions", "stats", "explain", "compact"]
        .into_iter()
        .filter(|command| !readme.contains(&format!("| `compactctl {command}")))
        .collect();
    assert!(commands.is_empty(), "README.md has no row for {commands:?}");
}
