//! The arguments, with the help that people read.

mod fork;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use compactd_api::passes::LAST;
use compactd_api::sessions::Pin;
use compactd_api::words;

pub use fork::{ForkArgs, ForksArgs};

use crate::install::Which;

/// Shows what a compaction would keep of a coding agent's session, and why.
///
/// It reads the sessions that Claude Code and Codex keep on this machine and never changes them.
#[derive(Debug, Parser)]
#[command(
    name = "compactctl",
    version,
    propagate_version = false,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  compactctl watch                       follow the sessions of this machine
  compactctl compact session.jsonl       decide one file, without a daemon
  compactctl explain 3f2a                the session whose id starts with 3f2a
  compactctl recall toolu_01AbCd         a result that a compaction took away

Exit status: 0 done, 1 failed, 2 wrong usage, 3 `status`: no daemon is running.
Set NO_COLOR to have no colour, COMPACTD_SOCKET to name the daemon's socket."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Follow this machine's sessions and show what a compaction would keep
    #[command(after_help = "\
When no daemon answers, one is started for as long as this command runs. On a terminal the view is
drawn again when something changes, until Ctrl-C; elsewhere it is printed once. On a machine without
any session a sample is shown.

Examples:
  compactctl watch               the newest session in detail
  compactctl watch 3f2a          this session in detail
  compactctl watch --once        print the view and end")]
    Watch(WatchArgs),
    /// Tell whether the daemon runs and is well (exit status 3: it does not run)
    Status(JsonArgs),
    /// List the known sessions, the newest first
    Sessions(SessionsArgs),
    /// Show the daemon's counters since its start
    Stats(JsonArgs),
    /// Show what the last compaction did with a session, and what the next would do
    #[command(after_help = "\
Asks the daemon; without one the session's file is found and decided in this process, and the passes
are read from the state folder. --json prints what `compact --json` does, with the last pass in \"pass\"
(null if there was none; not with --now); with --pass the pass alone.

Examples:
  compactctl explain 3f2a91c0                  a session by the beginning of its id
  compactctl explain 3f2a91c0 --all            every result, the kept ones too
  compactctl explain 3f2a91c0 --pass 2         what compaction 2 did
  compactctl explain 3f2a91c0 --now --json | jq .totals")]
    Explain(ExplainArgs),
    /// Give back a tool result that a compaction took away, byte for byte
    #[command(after_help = "\
The bytes are read from the transcript and go to stdout as they are, without a newline behind them.
Copies and notes that later compactions wrote under the same id are passed over. Without --session the
sessions that the daemon has in memory are searched, then all of this machine. A lone surrogate, which
is no text, comes as U+FFFD; --json shows it as it was written.

Examples:
  compactctl recall toolu_01AbCd                   what the model read then
  compactctl recall toolu_01AbCd --call            the input of the call
  compactctl recall toolu_01AbCd --json            the value in the transcript, images too
  compactctl recall toolu_01AbCd --session 3f2a    where several sessions have the id")]
    Recall(RecallArgs),
    /// Show the text that a host's own summary is asked to keep
    Focus(FocusArgs),
    /// Decide a session or a transcript file in this process, without a daemon
    #[command(after_help = "\
TARGET is a transcript (.jsonl or .jsonl.zst), or the id of a session on this machine, or the beginning
of one. Nothing is written: the decisions are shown, the transcript stays as it is.

--cut P takes the longest beginning of the file that holds no more than floor(total * P / 100) messages,
where messages are counted by the chosen --history and total is their number in the whole file. With
--history whole these are the lines before the start of message number floor(total * P / 100), from 0.

--json prints {\"host\",\"session\",\"profile\",\"history\",\"lines\",\"messages\",\"results\":[{\"id\",\"tool\",\"chars\",
\"tokens_est\",\"decision\":\"keep|truncate|drop\",\"call\":\"kept|shortened|removed\",\"rule\",\"reason\",\"left\"?}],
\"totals\":{...}}; with --budget also \"escalation\":{\"budget\",\"left\",\"level\",\"texts\":[...]}; `left` is the text that stands in the place of a result that is not kept.

Examples:
  compactctl compact ~/.claude/projects/-home-me-api/3f2a91c0.jsonl
  compactctl compact rollout.jsonl.zst --profile reference --history whole --cut 70 --json
  compactctl compact session.jsonl --lines 500
  compactctl compact session.jsonl --budget 60000")]
    Compact(CompactArgs),
    /// Fork a Codex thread: the same rollout under a new id, with the shortened history
    #[command(after_help = "\
Codex has no way to replace a compaction. It can resume a thread whose newest compaction is ours: a copy
of the rollout under a new id, in which what stays of the history stands word for word. The source is
only read, and may be in use. The fork is checked record by record before it is offered; what Codex
would not take is refused with the reason. Go on with the line that is printed, with the same model:
another one could make Codex compact at once.

SESSION is the id of a thread, the beginning of one, or a rollout (.jsonl or .jsonl.zst). The fork is
written below `sessions` in the same Codex home, else in CODEX_HOME or ~/.codex.

--json prints {\"thread_id\",\"path\",\"resume_command\",\"tokens_before\",\"tokens_after\",\"source\":{...},
\"model\"?,\"level\":\"rules|cuts|texts|summary\",\"over_target\",\"counters\":{...},\"items\",\"records\",\"dry_run\",
\"notes\"?:[...]}.

Examples:
  compactctl fork 01a22bab                    fork, and print how to go on
  compactctl fork 01a22bab --dry-run          what would go
  compactctl fork 01a22bab --budget 60000     cut further, to 60,000 tokens")]
    Fork(ForkArgs),
    /// List the forks made here; --prune removes old ones that nobody went on with
    Forks(ForksArgs),
    /// List what is pinned in a session
    Pins(PinsArgs),
    /// Keep a result, or every read of a file, whatever the rules say
    #[command(after_help = "\
Examples:
  compactctl pin 3f2a --id toolu_01AbCd      this result
  compactctl pin 3f2a --file src/main.rs     every read of this file")]
    Pin(PinArgs),
    /// Take a pin back
    Unpin(PinArgs),
    /// Show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Install programs, plugin and service for this user, reversibly
    #[command(after_help = "\
Copies compactd, compactctl and compactd-hook to ~/.local/share/compactd/bin, makes the daemon a service
where a systemd user manager answers, and installs the plugin through the own commands of each host that
is found: Claude Code, Codex. Without one the rest is done, and the commands to run later are told (exit
status 0). Codex skips a plugin's hooks, without a word, until you trust them: start `codex` once and do
so, or give --trust-hooks, which writes to its config.toml what its own question would write.
Running it again changes nothing, or brings a new version. What was there before is kept in
~/.local/state/compactd/install.json, so that `uninstall` can put it back byte for byte.

Examples:
  compactctl install --dry-run      say what would be done
  compactctl install
  compactctl install --host codex --trust-hooks
  compactctl install --claude ~/bin/claude --no-service")]
    Install(InstallArgs),
    /// Undo `install`: put back what was there before
    #[command(after_help = "\
Runs Claude Code's own commands, then puts the saved bytes of the hosts' files back where nothing else
has changed in them since; where something has, the file stays as it is, without the plugin. Codex is not
needed for it.
Pins, passes and recovery texts, which hold words of the sessions, are kept unless --purge is given; a
configuration file is always kept.")]
    Uninstall(UninstallArgs),
    /// Check the installation, and name for each problem the command that mends it
    #[command(after_help = "\
Looks only, changes nothing. Exit status 1: a check failed (a warning is no failure).

--json prints {\"healthy\":bool,\"version\":\"…\",\"checks\":[{\"name\":\"…\",\"state\":\"ok|warn|fail\",
\"evidence\":\"…\",\"fix\":\"…\"?}]}; `fix` is one command, and absent where nothing is to be done.")]
    Doctor(JsonArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  compactctl completions bash > ~/.local/share/bash-completion/completions/compactctl")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version(JsonArgs),
}

/// Only whether JSON is wanted.
#[derive(Debug, Args)]
pub struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Session to show in detail, by id or the beginning of one; the newest if absent
    pub session: Option<String>,
    /// Print once and end
    #[arg(long)]
    pub once: bool,
}

/// Of `sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Only the sessions of this host
    #[arg(long)]
    pub host: Option<HostName>,
    /// At most so many; 0 is all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: u64,
}

/// Which rules, which rows, and how to show the outcome.
#[derive(Debug, Clone, Copy, Args)]
pub struct DecideArgs {
    /// Rules to use; the configured ones (`standard`) if absent
    #[arg(long)]
    pub profile: Option<ProfileName>,
    /// What the host would send next, or the whole file as one history
    #[arg(long, default_value = "context")]
    pub history: HistoryName,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// List every result
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
}

/// Of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Session id, or the beginning of one
    pub session: String,
    /// Only this pass: the number of its compaction, or `last`
    #[arg(long, value_name = "N|last", value_parser = pass_name, conflicts_with = "now")]
    pub pass: Option<String>,
    /// Only what a compaction would do now
    #[arg(long)]
    pub now: bool,
    /// How to decide and show.
    #[command(flatten)]
    pub decide: DecideArgs,
}

/// A pass by its number, or the newest.
fn pass_name(text: &str) -> Result<String, &'static str> {
    let is_number = text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    if is_number || text == LAST { Ok(text.to_owned()) } else { Err("a number, or last") }
}

/// Of `recall`.
#[derive(Debug, Args)]
pub struct RecallArgs {
    /// Id of the result, as `explain` shows it
    pub id: String,
    /// Only in this session and its sub-agents: an id, or the beginning of one
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// Print the JSON value that holds it in the transcript, as it was written
    #[arg(long)]
    pub json: bool,
    /// Print the input of the call instead, as JSON
    #[arg(long)]
    pub call: bool,
}

/// Of `focus`.
#[derive(Debug, Args)]
pub struct FocusArgs {
    /// Session id, or the beginning of one
    pub session: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Of `compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Transcript file, session id, or the beginning of a session id
    pub target: PathBuf,
    /// How to decide and show.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Look only at the rows of the first PERCENT of the messages (see below)
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub cut: Option<u8>,
    /// Look only at the first N lines
    #[arg(long, value_name = "N", conflicts_with = "cut")]
    pub lines: Option<usize>,
    /// Make it fit so many tokens: cut further results and old assistant texts as needed
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,
}

/// Of `pins`.
#[derive(Debug, Args)]
pub struct PinsArgs {
    /// Session id, or the beginning of one
    pub session: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Of `pin` and `unpin`.
#[derive(Debug, Args)]
pub struct PinArgs {
    /// Session id, or the beginning of one
    pub session: String,
    /// What to keep.
    #[command(flatten)]
    pub what: PinTarget,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A result or a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PinTarget {
    /// Id of a result, as `explain` shows it
    #[arg(long)]
    id: Option<String>,
    /// A file; relative to where the session runs
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
}

impl PinTarget {
    /// As it goes over the wire.
    #[must_use]
    pub fn pin(&self) -> Pin {
        match (&self.id, &self.file) {
            (Some(id), _) => Pin::Id(id.clone()),
            (None, file) => Pin::File(file.clone().unwrap_or_default()),
        }
    }
}

/// Of `install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The only host to install the plugin in; every one that is found if absent
    #[arg(long)]
    pub host: Option<InstallHost>,
    /// Claude Code's program, if it is not in PATH
    #[arg(long, value_name = "PATH")]
    pub claude: Option<PathBuf>,
    /// Codex's program, if it is not in PATH
    #[arg(long, value_name = "PATH")]
    pub codex: Option<PathBuf>,
    /// Approve the plugin's hooks in Codex, which it otherwise skips until you do so in it
    #[arg(long)]
    pub trust_hooks: bool,
    /// Let the hooks start the daemon, also where systemd could
    #[arg(long)]
    pub no_service: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// A host that the plugin can be installed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InstallHost {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
}

impl From<InstallHost> for Which {
    fn from(name: InstallHost) -> Self {
        match name {
            InstallHost::Claude => Self::Claude,
            InstallHost::Codex => Self::Codex,
        }
    }
}

/// Of `uninstall`.
#[derive(Debug, Args)]
pub struct UninstallArgs {
    /// Claude Code's program, if it is not in PATH
    #[arg(long, value_name = "PATH")]
    pub claude: Option<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Remove pins, passes, recovery texts, other state and snapshots too
    #[arg(long)]
    pub purge: bool,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show every setting and its value
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A host by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HostName {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
}

impl From<HostName> for words::Host {
    fn from(name: HostName) -> Self {
        match name {
            HostName::Claude => Self::Claude,
            HostName::Codex => Self::Codex,
        }
    }
}

/// A set of rules by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// The five published rules; calls go with their results
    Reference,
    /// The same rules; every call stays, long inputs are shortened
    Standard,
}

impl From<ProfileName> for words::Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Reference => Self::Reference,
            ProfileName::Standard => Self::Standard,
        }
    }
}

/// A part of a session by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HistoryName {
    /// What the host would send next
    Context,
    /// The whole file as one history
    Whole,
}

impl From<HistoryName> for words::History {
    fn from(name: HistoryName) -> Self {
        match name {
            HistoryName::Context => Self::Context,
            HistoryName::Whole => Self::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_pin_is_one_thing() {
        let parse = |more: &[&str]| {
            Arguments::try_parse_from(["compactctl", "pin", "s"].iter().chain(more))
        };
        assert!(parse(&["--id", "x"]).is_ok());
        assert!(parse(&[]).is_err());
        assert!(parse(&["--id", "x", "--file", "y"]).is_err());
    }

    #[test]
    fn cut_and_lines_exclude_each_other() {
        let parse = |more: &[&str]| {
            Arguments::try_parse_from(["compactctl", "compact", "t"].iter().chain(more))
        };
        assert!(parse(&["--cut", "50"]).is_ok() && parse(&["--lines", "0"]).is_ok());
        assert!(parse(&["--cut", "50", "--lines", "3"]).is_err());
        assert!(parse(&["--cut", "101"]).is_err());
    }
}
