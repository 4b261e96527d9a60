//! Puts the sources together and remembers where each value came from.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Settings;
use super::suggest::{last, nearest};
use super::table::{ROWS, Row};

/// Where values may come from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Name and value of each setting on the command line.
    pub cli: &'a [(String, String)],
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The configuration file and what it holds; `None` if there is none.
    pub file: Option<(&'a Path, &'a str)>,
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("cli", &self.cli).finish_non_exhaustive()
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// This environment variable.
    Environment(&'static str),
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => path.display().fmt(f),
            Self::Environment(name) => f.write_str(name),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// A value that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The setting.
    pub name: &'static str,
    /// Who said it.
    pub origin: Origin,
    /// What was said, shortened.
    pub value: String,
    /// What would have been right.
    pub expected: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, origin, value, expected } = self;
        write!(
            f,
            "setting {name} from {origin} ignored: {value} is not a value it takes ({expected})"
        )
    }
}

/// A key that no setting has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key with its section.
    pub key: String,
    /// What may have been meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " (did you mean {suggestion}?)"),
            None => Ok(()),
        }
    }
}

/// Why there are no settings: the program ends with status 78.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The file is no TOML.
    #[error("cannot read {} as TOML", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// The file has keys that mean nothing.
    #[error("unknown keys in {}: {}", path.display(), list(keys))]
    UnknownKeys {
        /// The file.
        path: PathBuf,
        /// The keys.
        keys: Vec<UnknownKey>,
    },
    /// The command line names a setting that does not exist.
    #[error("unknown setting {0}")]
    UnknownSetting(UnknownKey),
}

fn list(keys: &[UnknownKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Settings with their origins.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The values that count.
    pub settings: Settings,
    /// Where each came from, in the order of [`super::table()`].
    pub origins: Vec<Origin>,
    /// Values that were not taken; to be logged once.
    pub warnings: Vec<Warning>,
}

/// One line of `config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The setting.
    pub name: &'static str,
    /// Its value as TOML.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

impl Resolved {
    /// The lines of `config show --origin`.
    #[must_use]
    pub fn show(&self) -> Vec<Shown> {
        let mut settings = self.settings.clone();
        let show = |(row, origin): (&Row, &Origin)| Shown {
            name: row.name,
            value: (row.slot)(&mut settings).show(),
            origin: origin.clone(),
        };
        ROWS.iter().zip(&self.origins).map(show).collect()
    }

    fn set(&mut self, at: usize, origin: Origin, value: Given<'_>) {
        let Some(row) = ROWS.get(at) else { return };
        let slot = (row.slot)(&mut self.settings);
        let expected = slot.kind();
        let taken = match value {
            Given::Text(text) => slot.set_text(text),
            Given::Toml(value) => slot.set_toml(value),
            Given::Unreadable => false,
        };
        if !taken {
            let value = match value {
                Given::Text(text) => format!("\"{text}\""),
                Given::Toml(value) => value.to_string(),
                Given::Unreadable => "text that is not UTF-8".to_owned(),
            };
            let value = value.chars().take(80).collect();
            self.warnings.push(Warning { name: row.name, origin, value, expected });
        } else if let Some(slot) = self.origins.get_mut(at) {
            *slot = origin;
        }
    }
}

#[derive(Clone, Copy)]
enum Given<'a> {
    Text(&'a str),
    Toml(&'a toml::Value),
    Unreadable,
}

/// Reads all sources.
///
/// # Errors
/// A file that is no TOML, or a name that no setting has.
pub fn resolve(sources: Sources<'_>) -> Result<Resolved, SettingsError> {
    let mut resolved = Resolved {
        settings: Settings::default(),
        origins: vec![Origin::Default; ROWS.len()],
        warnings: Vec::new(),
    };
    if let Some((path, text)) = sources.file {
        let table = text.parse::<toml::Table>().map_err(|source| SettingsError::Syntax {
            path: path.to_path_buf(),
            source: Box::new(source),
        })?;
        let mut keys = Vec::new();
        flatten("", &table, &mut |name, value| match position(name) {
            Some(at) => resolved.set(at, Origin::File(path.to_path_buf()), Given::Toml(value)),
            None => keys.push(unknown(name)),
        });
        if !keys.is_empty() {
            return Err(SettingsError::UnknownKeys { path: path.to_path_buf(), keys });
        }
    }
    for (at, row) in ROWS.iter().enumerate() {
        let Some(value) = (sources.env)(row.env).filter(|value| !value.is_empty()) else {
            continue;
        };
        let value = value.to_str().map_or(Given::Unreadable, Given::Text);
        resolved.set(at, Origin::Environment(row.env), value);
    }
    for (name, value) in sources.cli {
        let at = position(name).ok_or_else(|| SettingsError::UnknownSetting(unknown(name)))?;
        resolved.set(at, Origin::CommandLine, Given::Text(value));
    }
    Ok(resolved)
}

fn position(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.name == name)
}

/// Calls `each` with every setting of the file. A section is looked into; a table in the place of a
/// value is that value (of the wrong kind), and an unknown section is one unknown key.
fn flatten(prefix: &str, table: &toml::Table, each: &mut impl FnMut(&str, &toml::Value)) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) if is_section(&name) => flatten(&name, inner, each),
            _ => each(&name, value),
        }
    }
}

fn is_section(name: &str) -> bool {
    sections().any(|section| section == name)
}

fn sections() -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter_map(|row| row.name.split_once('.')).map(|(section, _)| section)
}

fn unknown(name: &str) -> UnknownKey {
    let names = || ROWS.iter().map(|row| row.name);
    let suggestion = names()
        .find(|known| last(known) == last(name))
        .or_else(|| nearest(name, names()))
        .or_else(|| {
            let key = nearest(last(name), names().map(last))?;
            names().find(|known| last(known) == key)
        })
        .or_else(|| nearest(name, sections()));
    UnknownKey { key: name.to_owned(), suggestion: suggestion.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{LogFormat, OnManualCompact};
    use crate::words::Profile;

    fn run(
        cli: &[(&str, &str)],
        env: &[(&str, &str)],
        file: &str,
    ) -> Result<Resolved, SettingsError> {
        let cli: Vec<_> = cli.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let env =
            |name: &str| env.iter().find(|pair| pair.0 == name).map(|pair| OsString::from(pair.1));
        resolve(Sources { cli: &cli, env: &env, file: Some((Path::new("/c.toml"), file)) })
    }

    fn origin(resolved: &Resolved, name: &str) -> Origin {
        resolved.show().into_iter().find(|shown| shown.name == name).unwrap().origin
    }

    #[test]
    fn nothing_is_the_default() {
        let resolved = resolve(Sources { cli: &[], env: &|_| None, file: None }).unwrap();
        assert_eq!(resolved.settings, Settings::default());
        assert!(resolved.origins.iter().all(|origin| *origin == Origin::Default));
        assert_eq!(run(&[], &[], "").unwrap(), resolved);
    }

    #[test]
    fn precedence() {
        let file = "[rules]\npin_last = 1\nrecent_results = 1\ngeneric_above = 1\n";
        let env = [("COMPACTD_RULES_PIN_LAST", "2"), ("COMPACTD_RULES_RECENT_RESULTS", "2")];
        let resolved = run(&[("rules.pin_last", "3")], &env, file).unwrap();
        let rules = &resolved.settings.rules;
        assert_eq!((rules.pin_last, rules.recent_results, rules.generic_above), (3, 2, 1));
        assert_eq!(origin(&resolved, "rules.pin_last"), Origin::CommandLine);
        assert_eq!(
            origin(&resolved, "rules.recent_results").to_string(),
            "COMPACTD_RULES_RECENT_RESULTS"
        );
        assert_eq!(origin(&resolved, "rules.generic_above").to_string(), "/c.toml");
        assert_eq!(origin(&resolved, "rules.profile").to_string(), "default");
    }

    #[test]
    fn every_kind_from_every_source() {
        let file = r#"
            [roots]
            claude = ["/a", "~/b"]
            [index]
            snapshot = false
            [rules]
            profile = "reference"
            min_removal_fraction = 1
            rerunnable = ["make list"]
            [codex]
            on_manual_compact = "fork"
            [log]
            format = "json"
        "#;
        let env = [
            ("COMPACTD_ROOTS_CODEX", "/x:~/y"),
            ("COMPACTD_RULES_RERUNNABLE_TESTS", "make test, tox"),
            ("COMPACTD_LOG", "debug"),
            ("COMPACTD_INDEX_SNAPSHOT", "On"),
            ("COMPACTD_RULES_MIN_REMOVAL_FRACTION", "0.25"),
            ("COMPACTD_FOCUS_MAX_CHARS", "500"),
            ("COMPACTD_WATCH_SWEEP_S", ""),
        ];
        let resolved = run(&[], &env, file).unwrap();
        assert_eq!(resolved.warnings, []);
        let Settings { roots, index, rules, focus, codex, watch, log } = resolved.settings;
        assert_eq!(roots.claude, ["/a", "~/b"]);
        assert_eq!(roots.codex, ["/x", "~/y"]);
        assert!(index.snapshot);
        assert_eq!(rules.profile, Profile::Reference);
        assert!((rules.min_removal_fraction - 0.25).abs() < f64::EPSILON);
        assert_eq!(rules.rerunnable, ["make list"]);
        assert_eq!(rules.rerunnable_tests, ["make test", "tox"]);
        assert_eq!(focus.max_chars, 500);
        assert_eq!(codex.on_manual_compact, OnManualCompact::Fork);
        assert_eq!(watch.sweep_s, 30);
        assert_eq!((log.level.as_str(), log.format), ("debug", LogFormat::Json));
    }

    #[test]
    fn a_bad_value_warns_and_the_next_source_counts() {
        let file = "[index]\nmemory_mb = 64\n[rules]\npin_last = \"six\"\nprofile = \"deepest\"\n";
        let env = [("COMPACTD_INDEX_MEMORY_MB", "lots"), ("COMPACTD_ROOTS_CLAUDE", "a/b")];
        let resolved = run(&[("watch.poll_ms", "1")], &env, file).unwrap();
        assert_eq!(resolved.settings.index.memory_mb, 64);
        assert_eq!(resolved.settings.rules, Settings::default().rules);
        assert_eq!(resolved.settings.watch.poll_ms, 1_000);
        assert!(matches!(origin(&resolved, "index.memory_mb"), Origin::File(_)));
        let lines: Vec<_> = resolved.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 5);
        assert!(lines.contains(
            &"setting index.memory_mb from COMPACTD_INDEX_MEMORY_MB ignored: \"lots\" is not a value it takes \
              (whole number from 16 to 1048576)"
                .to_owned()
        ));
        for bad in ["-1", "1.5", "nan", "inf"] {
            let resolved = run(&[("rules.min_removal_fraction", bad)], &[], "").unwrap();
            assert_eq!(resolved.warnings.len(), 1, "{bad}");
        }
        // A section where a value belongs, and a value where a section belongs.
        assert_eq!(run(&[], &[], "[rules.pin_last]\nx = 1\n").unwrap().warnings.len(), 1);
        assert!(run(&[], &[], "rules = 3\n").is_err());
    }

    #[test]
    fn unknown_keys() {
        let suggested = |file: &str| match run(&[], &[], file).unwrap_err() {
            SettingsError::UnknownKeys { keys, .. } => {
                keys.into_iter().map(|key| key.suggestion.unwrap_or_default()).collect::<Vec<_>>()
            }
            other => panic!("{other}"),
        };
        assert_eq!(suggested("[rules]\npin_lats = 1\n"), ["rules.pin_last"]);
        assert_eq!(suggested("memory_mb = 1\n"), ["index.memory_mb"]);
        assert_eq!(suggested("[indx]\nmemory_mb = 1\n"), ["index"]);
        assert_eq!(
            suggested("[watch]\nlevel = \"info\"\n[rules]\nqqqqqq = 1\n"),
            ["", "log.level"]
        );
        assert_eq!(
            run(&[], &[], "[rules]\nrecent_result = 3\n").unwrap_err().to_string(),
            "unknown keys in /c.toml: rules.recent_result (did you mean rules.recent_results?)"
        );
        assert_eq!(
            run(&[("log.levle", "x")], &[], "").unwrap_err().to_string(),
            "unknown setting log.levle (did you mean log.level?)"
        );
    }

    #[test]
    fn no_toml() {
        let error = run(&[], &[], "[rules\n").unwrap_err();
        assert_eq!(error.to_string(), "cannot read /c.toml as TOML");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_not_utf8() {
        use std::os::unix::ffi::OsStringExt as _;
        let env = |name: &str| (name == "COMPACTD_LOG").then(|| OsString::from_vec(vec![0xff]));
        let resolved = resolve(Sources { cli: &[], env: &env, file: None }).unwrap();
        assert_eq!((resolved.warnings.len(), resolved.settings), (1, Settings::default()));
    }
}
