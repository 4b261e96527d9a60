//! The fork itself: read, decide, write, read back, publish.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use compactd_api::fork::{ForkAnswer, ForkCounters, ForkSource};
use compactd_core::record::Host;
use compactd_core::record::json::{self, Raw};
use compactd_core::rules::{Pins, Profile};
use compactd_core::settings::Settings;
use compactd_transcript::Transcript;
use compactd_transcript::lineage::first_line;
use compactd_transcript::load::chain_of;
use uuid::Uuid;

use crate::body::Identity;
use crate::check;
use crate::decide::{Decided, Wish, beside, decide};
use crate::error::Error;
use crate::history::Item;
use crate::intake::{Intake, record};
use crate::lock;
use crate::rewrite::Gone;
use crate::seal;
use crate::source::Watched;
use crate::splice::quote;
use crate::write::{Draft, Moment};

/// How to fork.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Codex home to write to if the source lies in none.
    pub home: PathBuf,
    /// Which rules.
    pub profile: Profile,
    /// Their numbers.
    pub settings: Settings,
    /// What the person wants kept.
    pub pins: Pins,
    /// Tokens that may be left, counted as [`ForkAnswer::tokens_after`] is. `None`: the smaller of 60% of the
    /// window and 90% of `threshold`, by the host's own count.
    pub budget: Option<u64>,
    /// Tokens at which the host compacts by itself, where it was set.
    pub threshold: Option<u64>,
    /// Decide and check only.
    pub dry_run: bool,
    /// For a fork in the place of a compaction: only if something goes, and not later than this.
    pub in_place: Option<SystemTime>,
}

/// The line that goes on with a thread.
fn resume_command(thread: &str, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("codex resume {thread} -m {}", word(model)),
        None => format!("codex resume {thread}"),
    }
}

/// A word for a shell.
fn word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./:@".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Forks the thread whose newest file is `source`. The source is only read.
///
/// # Errors
/// It cannot be forked, or not truly; then nothing is left behind.
pub fn fork(source: &Path, options: &Options) -> Result<ForkAnswer, Error> {
    let origin = Origin::of(source)?;
    let moment = Moment::now();
    let identity = Identity {
        id: Uuid::now_v7().to_string(),
        old: origin.ids.clone(),
        now: moment.utc(),
        is_paginated: origin.is_paginated,
    };
    let meta = record(origin.line.as_bytes())
        .and_then(|(text, whole)| identity.meta(text, whole, &origin.id))
        .ok_or_else(|| no_meta(source, "it has no payload"))?;
    check::added(&meta, "session_meta")?;
    let home = home_of(source).unwrap_or_else(|| options.home.clone());
    let place = Draft::place(&home, &identity.id, &moment);
    let (identity, meta, origin) = (&identity, &*meta, &origin);
    let job = Job { source, options, identity, meta, origin, place: &place };
    // What a host writes from now on is not in the fork.
    let source_is_live = lock::is_held(&home, &origin.id);
    let (mut answer, path) = if options.dry_run {
        (job.run(io::sink())?.0, place)
    } else {
        let draft = Draft::start(&home, &identity.id, &moment)?;
        let (answer, items, seal) = job.run(BufWriter::new(draft.file()))?;
        seal::put(draft.file(), meta, &seal).map_err(Error::write("write", &place))?;
        check::read_back(draft.path(), &items, answer.records, identity.is_paginated)?;
        draft.settle(source)?;
        if options.in_place.is_some_and(|until| SystemTime::now() > until) {
            return Err(Error::Late);
        }
        (answer, draft.publish()?)
    };
    answer.path = path.to_string_lossy().into_owned();
    answer.source.live = source_is_live;
    Ok(answer)
}

/// What the first line of the source says.
struct Origin {
    line: String,
    /// The thread.
    id: String,
    /// All ids that the records of its history may name it by.
    ids: BTreeSet<String>,
    is_paginated: bool,
    /// The base instructions.
    instructions: String,
    files: Watched,
}

impl Origin {
    fn of(source: &Path) -> Result<Self, Error> {
        let (host, chain) = chain_of(source)?;
        if host != Host::Codex {
            return Err(Error::NotCodex { path: source.to_path_buf() });
        }
        let mut ids = BTreeSet::new();
        let (mut newest, mut files) = (None, Watched::default());
        for segment in &chain.segments {
            let mut file = Transcript::open(&segment.path)?;
            files.add(&segment.path, &file)?;
            let line = first_line(&mut file)?.unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let id = thread_id(&line);
            ids.extend(id.clone());
            newest = Some((line, id));
        }
        let Some((line, Some(id))) = newest else {
            return Err(no_meta(source, "it names no thread"));
        };
        let payload = json::value(line.trim()).and_then(|whole| whole.member("payload"));
        let mode = payload.and_then(|payload| payload.member("history_mode")).and_then(Raw::text);
        let is_paginated = mode.as_deref() == Some("paginated");
        let instructions = payload
            .and_then(|payload| payload.member("base_instructions")?.member("text")?.text())
            .map_or_else(String::new, |text| text.into_owned());
        Ok(Self { id, ids, is_paginated, instructions, line, files })
    }
}

fn thread_id(line: &str) -> Option<String> {
    let whole = json::value(line.trim())?;
    let is_meta = whole.kind().as_deref() == Some("session_meta");
    let id = whole.member("payload")?.member("id")?.text()?;
    is_meta.then(|| id.into_owned())
}

fn no_meta(source: &Path, flaw: &str) -> Error {
    Error::NoMeta { path: source.to_path_buf(), flaw: flaw.to_owned() }
}

/// The Codex home that a rollout lies in.
#[must_use]
pub fn home_of(source: &Path) -> Option<PathBuf> {
    let source = std::path::absolute(source).ok()?;
    let is_tree = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions")
    };
    source.ancestors().skip(1).find(is_tree)?.parent().map(Path::to_path_buf)
}

/// Base instructions stand among so many items at the start.
const FIRST: usize = 8;

/// Whether an item begins with this text, as far as a look at its start tells.
fn says(item: &Item, text: &str) -> bool {
    let start: String = text.chars().take(200).collect();
    let start = quote(&start);
    !text.is_empty() && item.raw.contains(start.trim_end_matches('"'))
}

/// What a fork is made from.
struct Job<'a> {
    source: &'a Path,
    options: &'a Options,
    identity: &'a Identity,
    meta: &'a str,
    origin: &'a Origin,
    /// Where the fork will stand.
    place: &'a Path,
}

fn counters(decided: &Decided) -> ForkCounters {
    let Decided { results, gone, .. } = *decided;
    ForkCounters {
        results,
        kept: results.saturating_sub(gone.dropped + gone.truncated),
        truncated: gone.truncated,
        dropped: gone.dropped,
        inputs: gone.inputs,
        texts: gone.texts,
    }
}

impl Job<'_> {
    /// Reads the source and writes the fork. Gives the new history too.
    fn run(&self, out: impl Write) -> Result<(ForkAnswer, Vec<Item>, String), Error> {
        let mut intake = Intake::new(self.identity, &self.options.settings, out);
        intake.write(self.meta);
        let loaded = check::for_each_line(self.source, |offset, line| intake.line(line, offset))?;
        self.origin.files.check(&loaded.segments)?;
        if loaded.too_long > 0 {
            return Err(Error::TooLong { lines: loaded.too_long });
        }
        if let Some(gap) = loaded.gap.clone().filter(|_| !intake.history.is_compacted) {
            return Err(Error::Gap { gap });
        }
        if intake.history.is_torn_up && !self.identity.is_paginated {
            return Err(Error::TakenBack);
        }
        if let Some((line, flaw)) = intake.history.doubt.take() {
            return Err(Error::Doubt { line: u64::from(line) + 1, flaw });
        }
        if intake.history.is_summary_only {
            return Err(Error::SummaryOnly);
        }
        if intake.history.items.is_empty() {
            return Err(Error::Empty { path: self.source.to_path_buf() });
        }
        check::items(&intake.history.items)?;
        intake.index.settle();
        let decided = self.decide(&mut intake);
        if self.options.in_place.is_some() && decided.gone == Gone::default() {
            return Err(Error::NothingGoes);
        }
        intake.history.pair();
        check::items(&intake.history.items)?;
        let tokens_after =
            decided.ratio.tokens(decided.chars_after + self.beside(&intake.history.items));
        self.append(&mut intake, tokens_after)?;
        intake.flush().map_err(Error::write("write", self.place))?;
        let mut notes = Vec::new();
        if loaded.gap.is_some() {
            notes.push(
                "the oldest records are missing in the source; a compaction stands in for them"
                    .into(),
            );
        }
        if intake.left_out > 0 {
            let lines = if intake.left_out == 1 { "line" } else { "lines" };
            notes.push(format!(
                "{} {lines} of the source that Codex passes over, not in the fork",
                intake.left_out
            ));
        }
        if !intake.companions.has_world() {
            notes.push(
                "the source is of a Codex that kept no world state: the host adds its initial context \
                 once more"
                    .into(),
            );
        }
        let companions = intake.companions;
        let answer = ForkAnswer {
            thread_id: self.identity.id.clone(),
            path: String::new(),
            resume_command: resume_command(&self.identity.id, companions.model.as_deref()),
            tokens_before: decided.tokens_before,
            tokens_after,
            source: ForkSource {
                thread_id: self.origin.id.clone(),
                path: self.source.to_string_lossy().into_owned(),
                live: false,
            },
            model: companions.model,
            host_tokens: companions.host_tokens,
            window_tokens: companions.window_tokens,
            level: decided.level.into(),
            target: decided.target,
            over_target: decided.is_over,
            counters: counters(&decided),
            items: intake.history.items.len() as u64,
            records: intake.written,
            dry_run: self.options.dry_run,
            notes,
        };
        Ok((answer, intake.history.items, intake.sealing.text()))
    }

    fn decide<W: Write>(&self, intake: &mut Intake<'_, W>) -> Decided {
        let since = intake.history.items.iter().skip(intake.counted);
        let wish = Wish {
            budget: self.options.budget,
            threshold: self.options.threshold,
            window: intake.companions.window_tokens,
            host_tokens: intake.companions.host_tokens,
            since: since.map(|item| item.raw.chars().count() as u64).sum(),
            beside: self.beside(&intake.history.items),
        };
        let Options { profile, pins, .. } = self.options;
        decide(&mut intake.history.items, &intake.index, *profile, pins, wish)
    }

    fn beside(&self, items: &[Item]) -> u64 {
        // Of some models they stand in the history too.
        let instructions = &self.origin.instructions;
        let is_there = items.iter().take(FIRST).any(|item| says(item, instructions));
        let instructions = if is_there { 0 } else { instructions.chars().count() as u64 };
        items.iter().map(beside).sum::<u64>() + instructions
    }

    /// Writes the records behind the body, each checked first.
    fn append<W: Write>(&self, intake: &mut Intake<'_, W>, tokens: u64) -> Result<(), Error> {
        let window = Uuid::now_v7().to_string();
        let items = intake.history.items.iter().map(|item| item.raw.as_str());
        let compacted = intake.companions.compacted(&window, items);
        let turn = intake.history.has_taken_back.then(|| Uuid::now_v7().to_string());
        for (kind, payload) in intake.companions.added(compacted, tokens, turn.as_deref()) {
            let ordinal = if self.identity.is_paginated {
                format!(r#""ordinal":{},"#, intake.written)
            } else {
                String::new()
            };
            let now = &self.identity.now;
            let line =
                format!(r#"{{"timestamp":"{now}",{ordinal}"type":"{kind}","payload":{payload}}}"#);
            check::added(&line, kind)?;
            intake.write(&line);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_and_words() {
        let home = |path: &str| home_of(Path::new(path));
        assert_eq!(home("/h/.codex/sessions/2026/x.jsonl"), Some(PathBuf::from("/h/.codex")));
        assert_eq!(home("/h/archived_sessions/x.jsonl"), Some(PathBuf::from("/h")));
        assert_eq!(home("/h/x.jsonl"), None);
        assert_eq!(word("gpt-5.5"), "gpt-5.5");
        assert_eq!(word("a b'c"), r"'a b'\''c'");
    }
}
