//! The hook's whole process against `/bin/true`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::scratch::Scratch;
use crate::servers::Server;
use crate::table::{Table, in_turn};

const INPUT: &str = r#"{"session_id":"5f1c7a7e-33a2-4a10-9d0b-5c1ef2f6a001","transcript_path":"/home/dev/.claude/projects/-work-app/5f1c7a7e-33a2-4a10-9d0b-5c1ef2f6a001.jsonl","cwd":"/work/app","permission_mode":"default","hook_event_name":"UserPromptSubmit","prompt":"Please look at why the retry of the upload queue waits for the lease of the other worker, and whether the limit in the config is read at all; the log of yesterday's run is in /var/log/app/upload.log and shows took_us values that cannot be right for that many records."}"#;

pub(crate) fn bench(table: &mut Table) {
    let Some(shim) = build() else {
        table.row("shim", "could not be built", "", "≤ 1.2");
        return;
    };
    let scratch = Scratch::new();
    let daemon = Server::start("daemon", scratch.path());
    let mut ours = process(&shim, &daemon.socket);
    let mut null = process(Path::new("/bin/true"), &daemon.socket);
    let times = in_turn(400, &mut [&mut ours, &mut null]);
    let what = format!("shim, whole process ({} B in, 204), to /bin/true", INPUT.len());
    table.cost(&what, &times[0], &times[1], "≤ 1.2");
    daemon.stop();
}

fn process(program: &Path, socket: &Path) -> impl FnMut() + use<> {
    let mut command = Command::new(program);
    command
        .args(["claude", "UserPromptSubmit"])
        .env("COMPACTD_SOCKET", socket)
        .env("COMPACTD_HOOK_START", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    move || {
        let mut child = command.spawn().unwrap();
        // `/bin/true` may be gone before it is written to.
        drop(child.stdin.take().unwrap().write_all(INPUT.as_bytes()));
        assert!(child.wait().unwrap().success());
    }
}

/// The static build to install (`client/shim/README.md`).
fn build() -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO")?;
    let output = Command::new(cargo)
        .args(["rustc", "-q", "-p", "compactd-hook", "--bin", "compactd-hook", "--profile", "hook"])
        .args(["--message-format", "json", "--"])
        .args(["-C", "target-feature=+crt-static", "-C", "relocation-model=static"])
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}
