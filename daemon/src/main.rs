//! `compactd`: reads its configuration, takes its socket, and runs until it is told to stop.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use compactd::config;
use compactd::run::{Setup, run};
use compactd::serve;
use compactd::store::Store;
use compactd::telemetry;
use compactd_api::config::Config;

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
    let config = match config::read(arguments.config.as_deref(), &settings) {
        Ok(config) => config,
        Err(error) => {
            let hint = Hint(error.hint().to_owned());
            complain(&anyhow::Error::new(error).context(hint));
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    telemetry::start(&config.settings().log);
    serve::hide_panic_messages();
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
    let bound = serve::take_socket(&config.env).map_err(|error| {
        let hint = error.hint().map(Hint);
        let error = anyhow::Error::new(error);
        match hint {
            Some(hint) => error.context(hint),
            None => error,
        }
    })?;
    let snapshots = config.settings().index.snapshot.then(|| config.env.cache_dir()).flatten();
    let setup = Setup {
        settings: config.settings().clone(),
        roots: config::roots(config),
        store: Store::new(snapshots, config.env.state_dir()),
        socket: bound.guard.path().unwrap_or(Path::new("")).to_path_buf(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(socket = %setup.socket.display(), version, "listening");
    let result = runtime.block_on(async {
        let stop = serve::signals(|| tracing::info!("settings are read at the next start"))?;
        let _pings = tokio::spawn(serve::activation::watchdog());
        serve::activation::notify_ready("answering");
        run(setup, bound.listener, async {
            let signal = stop.await;
            tracing::info!(signal, "stopping");
        })
        .await
    });
    // A plain drop would wait for a session that is being read, however long that takes.
    runtime.shutdown_timeout(Duration::from_secs(1));
    // Whoever waits for the lock finds all state saved.
    drop(bound.guard);
    Ok(result?)
}

fn setting(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "a setting is given as NAME=VALUE".to_owned())
}

/// What a person can do about an error.
#[derive(Debug)]
struct Hint(String);

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[expect(clippy::print_stderr, reason = "the one place where the daemon speaks to a person")]
fn complain(error: &anyhow::Error) {
    let hint = error.downcast_ref::<Hint>();
    let mut chain = error.chain().skip(usize::from(hint.is_some()));
    if let Some(first) = chain.next() {
        eprintln!("error: {first}");
    }
    for cause in chain {
        eprintln!("caused by: {cause}");
    }
    if let Some(Hint(hint)) = hint {
        eprintln!("hint: {hint}");
    }
}
