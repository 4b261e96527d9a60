//! The log: to stderr, for people, for the journal or as JSON. Never content of a transcript.

use std::fmt;
use std::io::IsTerminal as _;

use compactd_api::settings::{Log, LogFormat};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Starts logging as configured. A filter that makes no sense gives one warning and `info`.
pub fn start(log: &Log) {
    let (filter, wrong) = match EnvFilter::try_new(&log.level) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    let journal = match log.format {
        LogFormat::Journal => true,
        LogFormat::Human | LogFormat::Json => false,
        LogFormat::Auto | LogFormat::Other => std::env::var_os("JOURNAL_STREAM").is_some(),
    };
    let ansi = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let started = if log.format == LogFormat::Json {
        builder.json().try_init()
    } else if journal {
        builder.event_format(Journal).try_init()
    } else {
        builder.with_ansi(ansi).try_init()
    };
    if let Err(error) = started {
        tracing::debug!(error, "logging was started already");
    }
    if let Some(error) = wrong {
        tracing::warn!(filter = log.level, %error, "log filter not understood, info is used");
    }
}

/// `<6>message field=value`: the journal knows the time and reads the priority.
struct Journal;

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{priority}>")?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
