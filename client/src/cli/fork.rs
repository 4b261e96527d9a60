//! The arguments of `fork` and `forks`.

use std::path::PathBuf;

use clap::Args;

use super::ProfileName;

/// Arguments of `fork`.
#[derive(Debug, Args)]
pub struct ForkArgs {
    /// A thread's id, the beginning of one, or a rollout
    #[arg(value_name = "SESSION")]
    pub session: PathBuf,
    /// Tokens that may be left [default: the smaller of 60% of the window and 90% of Codex's threshold]
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,
    /// Set of rules [default: as configured]
    #[arg(long, value_enum)]
    pub profile: Option<ProfileName>,
    /// Decide and check, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `forks`.
#[derive(Debug, Args)]
pub struct ForksArgs {
    /// Remove forks that nobody went on with, that no other thread was made from, and that are older
    /// than --older-than days
    #[arg(long)]
    pub prune: bool,
    /// Days since a fork was last written to
    #[arg(long, value_name = "DAYS", default_value_t = 7, requires = "prune")]
    pub older_than: u64,
    /// With --prune: say what would be removed
    #[arg(long, requires = "prune")]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
