//! `compactd`: reads its configuration, takes its socket, and runs until it is told to stop.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use compactd::config::Config;
use compactd::run::{Setup, run};
use compactd::serve;
use compactd::store::Store;
use compactd::telemetry;

/// Follows the sessions of coding agents and answers over a Unix socket.
///
/// Exit status: 0 stopped cleanly, 1 failed at run time (another daemon runs, no socket),
/// 2 wrong usage, 78 bad configuration.
#[derive(Debug, Parser)]
#[command(name = "compactd", version)]
struct Arguments {
    /// Read this file instead of the usual config.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one setting, as in `--set index.memory_mb=64`; may be given again.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Log level or filter, as in `debug` or `compactd=trace`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// Form of the log: auto, human, journal or json.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

const BAD_CONFIGURATION: u8 = 78;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut settings = arguments.settings;
    settings.extend(arguments.log.map(|level| ("log.level".to_owned(), level)));
    settings.extend(arguments.log_format.map(|format| ("log.format".to_owned(), format)));
    let config = match Config::read(arguments.config.as_deref(), &settings) {
        Ok(config) => config,
        Err(error) => {
            complain(&anyhow::Error::new(error));
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    telemetry::start(&config.settings().log);
    for warning in &config.resolved.warnings {
        tracing::warn!("{warning}");
    }
    match start(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn start(config: &Config) -> anyhow::Result<()> {
    let bound = serve::take_socket(&config.env)?;
    let snapshots = config.settings().index.snapshot.then(|| config.env.cache_dir()).flatten();
    let setup = Setup {
        settings: config.settings().clone(),
        roots: config.roots(),
        store: Store::new(snapshots, config.env.state_dir()),
        socket: bound.path().to_path_buf(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tracing::info!(socket = %setup.socket.display(), version = env!("CARGO_PKG_VERSION"), "listening");
    runtime.block_on(async {
        let stopped = serve::stop_signal()?;
        run(setup, bound.listener()?, stopped).await
    })?;
    drop(bound);
    Ok(())
}

fn setting(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "a setting is given as NAME=VALUE".to_owned())
}

#[expect(clippy::print_stderr, reason = "the one place where the daemon speaks to a person")]
fn complain(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("caused by: {cause}");
    }
}
