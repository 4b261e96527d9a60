//! Asks the host about our hooks: their hashes, and whether they are approved.
//!
//! Only the host knows how it hashes a hook, and it tells through `codex app-server`. That program
//! fills the folder it works in with databases and skills, and fetches a list of plugins. So it gets a
//! folder of its own with a copy of the plugin and of the settings that matter, no way out to the
//! network, and a limit of time. The hashes do not depend on where the folder is.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Codex;
use super::config::{self, Trust};
use crate::install::error::InstallError;
use crate::install::files;
use crate::install::plugin::ID;

/// What the question may take; the real host answers within a second.
const LIMIT: Duration = Duration::from_secs(20);
/// What its end may take once its input has ended.
const END: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// Where nothing listens.
const NOWHERE: &str = "http://127.0.0.1:1";
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"];

/// One hook of ours, as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The host's name of it, under which it is approved.
    pub key: String,
    /// Its event, as `preCompact`.
    pub event_name: String,
    /// It is not switched off.
    pub enabled: bool,
    /// Of the handler, and behind a slash of the whole plugin.
    pub current_hash: String,
    /// `trusted`, `untrusted`, `modified`, or `managed`.
    pub trust_status: String,
    #[serde(default)]
    plugin_id: Option<String>,
}

impl Hook {
    /// Whether the host runs it.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.enabled && self.is_trusted()
    }

    /// Whether it is approved as it is now.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        ["trusted", "managed"].contains(&&*self.trust_status)
    }

    /// What is to be written to approve it; `None` where the host tells no hash of the plugin.
    #[must_use]
    pub fn approval(&self) -> Option<(String, Trust)> {
        let (handler, content) = self.current_hash.split_once('/')?;
        let trust = Trust { handler: handler.to_owned(), content: content.to_owned() };
        Some((self.key.clone(), trust))
    }
}

/// Asks for every hook of ours.
///
/// # Errors
/// The host does not answer, or not in a way that is understood.
pub fn ask(codex: &Codex) -> Result<Vec<Hook>, InstallError> {
    ask_within(codex, LIMIT).map_err(|why| InstallError::Hooks { why })
}

fn ask_within(codex: &Codex, limit: Duration) -> Result<Vec<Hook>, String> {
    let scratch = tempfile::Builder::new()
        .prefix("compactctl-")
        .tempdir()
        .map_err(|error| format!("no folder for it can be made: {error}"))?;
    lay_out(codex, scratch.path())?;
    let mut command = codex.command();
    command.arg("app-server").current_dir(scratch.path()).env("CODEX_HOME", scratch.path());
    command.env("GIT_ALLOW_PROTOCOL", "file").env_remove("NO_PROXY").env_remove("no_proxy");
    command.envs(PROXIES.map(|name| (name, NOWHERE)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("it cannot be run: {error}"))?;
    let answer = match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => talk(input, output, scratch.path(), limit),
        _ => Err("it has no input".to_owned()),
    };
    end(&mut child);
    hooks(&answer?)
}

/// A folder for the host that holds nothing but what decides about our hooks.
fn lay_out(codex: &Codex, scratch: &Path) -> Result<(), String> {
    let told = |error: InstallError| error.told();
    let bytes = files::read(&codex.folder.config()).map_err(told)?.unwrap_or_default();
    let config = config::parse(&bytes)?;
    let failed = |error: io::Error| format!("the plugin cannot be copied: {error}");
    fs::write(scratch.join("config.toml"), config::extract(&config)).map_err(failed)?;
    let copy = codex.folder.copy();
    if let Ok(below) = copy.strip_prefix(&codex.folder.path) {
        copy_folder(&copy, &scratch.join(below)).map_err(failed)?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy_folder(&entry.path(), &to)?,
            kind if kind.is_file() => drop(fs::copy(entry.path(), to)?),
            _ => {}
        }
    }
    Ok(())
}

fn talk(
    mut input: ChildStdin,
    output: ChildStdout,
    folder: &Path,
    limit: Duration,
) -> Result<Value, String> {
    let deadline = Instant::now() + limit;
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let client = json!({"name": "compactctl", "version": env!("CARGO_PKG_VERSION")});
    let hello = json!({"clientInfo": client, "capabilities": {"experimentalApi": true}});
    let mut say = |value: Value| {
        writeln!(input, "{value}").map_err(|error| format!("it does not listen: {error}"))
    };
    say(json!({"id": 1, "method": "initialize", "params": hello}))?;
    answer(&lines, 1, deadline)?;
    say(json!({"method": "initialized", "params": {}}))?;
    say(json!({"id": 2, "method": "hooks/list", "params": {"cwds": [folder]}}))?;
    answer(&lines, 2, deadline)
}

fn answer(lines: &Receiver<String>, id: u64, deadline: Instant) -> Result<Value, String> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => "it does not answer in time".to_owned(),
            RecvTimeoutError::Disconnected => "it ended without an answer".to_owned(),
        })?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message.get("id").and_then(Value::as_u64) != Some(id) || message.get("method").is_some()
        {
            continue;
        }
        return match (message.get("result"), message.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, error) => {
                let said = error.and_then(|error| error.get("message")?.as_str());
                Err(format!("it refuses: {}", said.unwrap_or("no reason given")))
            }
        };
    }
}

/// Its input has ended; whatever does not end with it is ended, its own children too.
fn end(child: &mut Child) {
    let deadline = Instant::now() + END;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(LOOK);
    }
    // The number of the group stays taken until the child is waited for below.
    if matches!(child.try_wait(), Ok(None)) {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let _gone = child.wait();
    }
}

fn hooks(answer: &Value) -> Result<Vec<Hook>, String> {
    let lists = answer.get("data").and_then(Value::as_array);
    let lists = lists.ok_or("its answer has no list of hooks")?;
    let mut hooks = Vec::new();
    for hook in lists.iter().filter_map(|list| list.get("hooks")?.as_array()).flatten() {
        let hook: Hook = serde_json::from_value(hook.clone())
            .map_err(|error| format!("its list of hooks is not understood: {error}"))?;
        if hook.plugin_id.as_deref() == Some(ID) {
            hooks.push(hook);
        }
    }
    Ok(hooks)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;
    use crate::install::places::CodexFolder;

    fn host(home: &Path, script: &str) -> Codex {
        let (text, program) = (home.join("text"), home.join("codex"));
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
        // Another process copies: a file that this one has open for writing cannot be run.
        assert!(Command::new("cp").arg(&text).arg(&program).status().unwrap().success());
        let folder = CodexFolder::new(home, None);
        fs::create_dir_all(folder.copy().join("1/bin")).unwrap();
        fs::write(folder.copy().join("1/bin/x"), "x").unwrap();
        fs::write(folder.config(), "secret = 1\n").unwrap();
        Codex { program, folder, from: home.to_path_buf() }
    }

    const HOOK: &str = r#"{"key":"compactd@compactd:h:pre_compact:0:0","eventName":"preCompact","enabled":true,"currentHash":"sha256:a/sha256:b","trustStatus":"untrusted","pluginId":"compactd@compactd"}"#;

    #[test]
    fn the_host_is_asked_in_a_folder_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let script = format!(
            "read a; echo noise; echo '{{\"id\":1,\"result\":{{}}}}'; read b; read c\n\
             cp -r \"$CODEX_HOME\" {home}/seen; echo \"$PWD $HTTPS_PROXY\" >{home}/where\n\
             echo '{{\"method\":\"x\",\"id\":2}}'\n\
             echo '{{\"id\":2,\"result\":{{\"data\":[{{\"hooks\":[{HOOK},{other}]}}]}}}}'; cat >/dev/null",
            home = home.path().display(),
            other = HOOK.replace("compactd@compactd\"", "other@x\""),
        );
        let hooks = ask_within(&host(home.path(), &script), LIMIT).unwrap();
        assert_eq!(hooks.len(), 1);
        assert!(!hooks[0].runs());
        let (key, trust) = hooks[0].approval().unwrap();
        assert_eq!(key, "compactd@compactd:h:pre_compact:0:0");
        assert_eq!((&*trust.handler, &*trust.content), ("sha256:a", "sha256:b"));
        let seen = home.path().join("seen");
        assert_eq!(
            fs::read_to_string(seen.join("plugins/cache/compactd/compactd/1/bin/x")).unwrap(),
            "x"
        );
        assert!(!fs::read_to_string(seen.join("config.toml")).unwrap().contains("secret"));
        let place = fs::read_to_string(home.path().join("where")).unwrap();
        let (folder, proxy) = place.trim().split_once(' ').unwrap();
        assert_eq!(proxy, NOWHERE);
        assert!(!Path::new(folder).exists(), "{folder} is left");
    }

    #[test]
    fn a_host_that_does_not_answer_is_told() {
        let hello = "read a; echo '{\"id\":1,\"result\":{}}'; read b; read c;";
        for (script, limit, words) in [
            ("exit 3".to_owned(), LIMIT, "it "),
            (format!("{hello} exec sleep 100"), Duration::from_millis(300), "in time"),
            (format!("{hello} exit 0"), LIMIT, "without an answer"),
            (
                format!("{hello} echo '{{\"id\":2,\"error\":{{\"message\":\"no such method\"}}}}'"),
                LIMIT,
                "it refuses: no such method",
            ),
            (format!("{hello} echo '{{\"id\":2,\"result\":{{}}}}'"), LIMIT, "no list of hooks"),
        ] {
            let home = tempfile::tempdir().unwrap();
            let why = ask_within(&host(home.path(), &script), limit).unwrap_err();
            assert!(why.contains(words), "{script}: {why}");
        }
    }
}
