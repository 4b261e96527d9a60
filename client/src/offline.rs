//! Decides a session in this process, with the daemon's core.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use compactd_api::convert::View;
use compactd_api::dirs::Env;
use compactd_api::passes::{self, Pass};
use compactd_api::pins;
use compactd_api::sessions::Explain;
use compactd_core::index::{History, Index};
use compactd_core::record::{Host, Skip};
use compactd_core::rules::{Pins, Profile};
use compactd_core::settings::Settings;
use compactd_transcript::lineage::Gap;
use compactd_transcript::load::for_each_line;
use compactd_transcript::texts::{Texts, reread};
use rustix::fs::OFlags;

use crate::error::Error;

/// No file of a pass is larger: the largest contexts have some thousand results.
const MAX_PASS_BYTES: u64 = 64 << 20;

/// How much of a file is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// The first lines.
    Lines(usize),
    /// The longest beginning with no more than this percentage of the messages.
    Percent(u8),
}

/// How to decide.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which rows count.
    pub history: History,
    /// Which rules.
    pub profile: Profile,
    /// Their numbers.
    pub settings: Settings,
    /// What the person wants kept.
    pub pins: Pins,
    /// Tokens that may be left.
    pub budget: Option<u64>,
}

impl Options {
    fn view(&self) -> View<'_> {
        let Self { history, profile, budget, .. } = *self;
        View { history, profile, pins: &self.pins, budget }
    }
}

/// A session that was read and can be decided.
#[derive(Debug)]
pub struct Read {
    /// Its id, as its file's name gives it.
    pub session: String,
    /// Why the beginning of its history is missing.
    pub gap: Option<Gap>,
    /// The files of its history, the newest first.
    files: Vec<PathBuf>,
    index: Index,
    texts: BTreeMap<String, String>,
    options: Options,
}

impl Read {
    /// Reads a transcript from a file.
    ///
    /// # Errors
    /// It cannot be read, or is no transcript.
    pub fn file(path: &Path, extent: Extent, options: Options) -> Result<Self, Error> {
        let limit = match extent {
            Extent::Whole => None,
            Extent::Lines(lines) => Some(lines),
            Extent::Percent(percent) => Some(cut(path, percent, &options)?),
        };
        let mut index = None;
        let loaded = for_each_line(path, limit, |host, offset, line| {
            let index = index.get_or_insert_with(|| Index::new(host, &options.settings));
            index.apply(line, offset);
        })?;
        let mut index = index.unwrap_or_else(|| Index::new(loaded.place.host, &options.settings));
        for _ in 0..loaded.too_long {
            index.skip(Skip::TooLong);
        }
        index.settle();
        let mut texts = cut_texts(&index, &options);
        texts.read(path, limit)?;
        let session = loaded.place.agent.unwrap_or(loaded.place.key);
        let files = loaded.segments.into_iter().rev().map(|segment| segment.path).collect();
        Ok(Self { session, gap: loaded.gap, files, index, texts: texts.found(), options })
    }

    /// Reads a transcript that is already in memory.
    #[must_use]
    pub fn bytes(host: Host, session: &str, bytes: &[u8], options: Options) -> Self {
        let mut index = Index::new(host, &options.settings);
        let mut offset = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            index.apply(line.trim_ascii_end(), offset);
            offset += line.len() as u64;
        }
        index.settle();
        let mut texts = cut_texts(&index, &options);
        for line in bytes.split(|byte| *byte == b'\n') {
            texts.take(host, line);
        }
        let files = Vec::new();
        Self { session: session.to_owned(), gap: None, files, index, texts: texts.found(), options }
    }

    /// What a compaction would do.
    #[must_use]
    pub fn explain(&self) -> Explain<'_> {
        self.options.view().explain(&self.index, &self.session, &self.texts)
    }

    /// Whose session it is.
    #[must_use]
    pub fn host(&self) -> Host {
        self.index.host()
    }

    /// Compactions in its file.
    #[must_use]
    pub fn compactions(&self) -> u64 {
        self.index.facts().compactions
    }

    /// What the host's own summary should keep.
    #[must_use]
    pub fn focus(&self, max_chars: usize) -> Option<String> {
        let plan = self.index.focus_plan();
        reread(self.index.host(), &self.files, &plan).write(&plan, max_chars)
    }

    /// Where the session runs.
    #[must_use]
    pub fn cwd(&self) -> Option<&str> {
        self.index.facts().cwd.as_deref()
    }
}

/// Collects the texts of the results that are cut.
fn cut_texts(index: &Index, options: &Options) -> Texts {
    Texts::wanted(options.view().cut_ids(index))
}

/// Lines of the longest beginning that holds no more than `percent` of the messages.
fn cut(path: &Path, percent: u8, options: &Options) -> Result<usize, Error> {
    if percent >= 100 {
        return Ok(usize::MAX);
    }
    let part = |total: u32| u32::try_from(u64::from(total) * u64::from(percent) / 100);
    match options.history {
        History::Context => {
            let mut counts: Vec<u32> = Vec::new();
            let mut index = None;
            for_each_line(path, None, |host, offset, line| {
                let index = index.get_or_insert_with(|| Index::new(host, &options.settings));
                index.apply(line, offset);
                index.settle();
                counts.push(u32::try_from(index.messages()).unwrap_or(u32::MAX));
            })?;
            let most = part(counts.last().copied().unwrap_or_default()).unwrap_or(u32::MAX);
            Ok(counts.iter().rposition(|count| *count <= most).map_or(0, |at| at + 1))
        }
        History::Whole => {
            // Messages of the whole history only ever grow in number: the place can be halved.
            let messages = |lines: Option<usize>| -> Result<(u32, usize), Error> {
                let mut index = None;
                let loaded = for_each_line(path, lines, |host, offset, line| {
                    let index = index.get_or_insert_with(|| Index::new(host, &options.settings));
                    index.apply(line, offset);
                })?;
                let count = index.map_or(0, |index: Index| {
                    index.pass(History::Whole, options.profile, &options.pins).messages()
                });
                Ok((count, usize::try_from(loaded.lines).unwrap_or(usize::MAX)))
            };
            let (total, lines) = messages(None)?;
            let most = part(total).unwrap_or(u32::MAX);
            let (mut fits, mut exceeds) = (0, lines);
            while fits + 1 < exceeds {
                let middle = usize::midpoint(fits, exceeds);
                if messages(Some(middle))?.0 <= most {
                    fits = middle;
                } else {
                    exceeds = middle;
                }
            }
            Ok(fits)
        }
    }
}

/// What the person pinned in a session, as the daemon keeps it.
///
/// # Errors
/// The file is there and cannot be read or understood: deciding without it could show a pinned
/// result as one that goes.
pub fn pins(env: &Env, host: Host, id: &str) -> Result<Pins, Error> {
    let Some(state) = env.state_dir() else { return Ok(Pins::default()) };
    let path = pins::path(&state, host, id);
    let kept = match std::fs::read(&path) {
        Ok(bytes) => pins::parse(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pins::default()),
        Err(error) => Err(error),
    };
    kept.map_err(|source| Error::Pins { path, source })
}

/// The passes of a session as the daemon keeps them, the newest first. What is no pass of this version
/// is passed over. `boundaries` are those that the transcript holds.
#[must_use]
pub fn passes(env: &Env, host: Host, id: &str, boundaries: u64) -> Vec<Pass> {
    let Some(state) = env.state_dir() else { return Vec::new() };
    let folder = passes::folder(&state, host, id);
    // A link could lead anywhere.
    if !is_own_folder(&passes::base(&state)) || !is_own_folder(&folder) {
        return Vec::new();
    }
    let read = |entry: std::fs::DirEntry| {
        let number = passes::number_of(entry.file_name().to_str()?)?;
        let mut pass = passes::parse(&own_file(&entry.path())?).ok()?.pass;
        let results =
            || passes::parse_results(&own_file(&folder.join(passes::results_name(number)))?).ok();
        if let Some((at, results)) = results()
            && at == pass.item.at
        {
            pass.results = results;
        }
        pass.item.state = passes::settled(&pass.item, boundaries);
        (pass.item.number == number).then_some(pass)
    };
    let entries = std::fs::read_dir(&folder);
    let mut found: Vec<Pass> = entries.into_iter().flatten().flatten().filter_map(read).collect();
    found.sort_by_key(|pass| std::cmp::Reverse(pass.item.number));
    found
}

fn is_own_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && is_own(&found))
}

fn is_own(found: &std::fs::Metadata) -> bool {
    found.uid() == rustix::process::getuid().as_raw()
}

/// The bytes of a file that the daemon can have written; neither a link nor a pipe is one.
fn own_file(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || !is_own(&found) || found.len() > MAX_PASS_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_PASS_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
