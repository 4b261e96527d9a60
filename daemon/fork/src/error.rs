//! Why there is no fork. Every refusal says what, where, and what a person can do.

use std::io;
use std::path::PathBuf;

use compactd_core::record::codex::shape::Flaw;
use compactd_transcript::lineage::Gap;

/// Why there is no fork.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source cannot be read, or is no rollout.
    #[error(transparent)]
    Read(#[from] compactd_transcript::Error),
    /// A transcript of Claude Code.
    #[error("{path} is a session of Claude Code, which needs no fork")]
    NotCodex {
        /// The file.
        path: PathBuf,
    },
    /// The first record is no `session_meta` with an id.
    #[error("{path} does not begin with a session_meta record: {flaw}")]
    NoMeta {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        flaw: String,
    },
    /// The beginning of the history is missing, and no compaction stands in for it.
    #[error("{gap}")]
    Gap {
        /// What is missing.
        gap: Gap,
    },
    /// The history holds something that the host would not take, or would change.
    #[error("item {item} of the history (line {line} of the source): {flaw}")]
    Item {
        /// Its number in the history, from 0.
        item: usize,
        /// The line of the source, from 1, counted over all files of the history.
        line: u64,
        /// What is wrong, and where in the item.
        flaw: Flaw,
    },
    /// An encrypted item that stands for history is blank: nobody can read that history any more.
    #[error(
        "item {item} of the history (line {line} of the source) is a sealed compaction whose content \
         is gone: what it stood for cannot be had back"
    )]
    Sealed {
        /// Its number in the history, from 0.
        item: usize,
        /// The line of the source, from 1.
        line: u64,
    },
    /// The newest compaction is of the old kind, with a summary only.
    #[error(
        "the newest compaction of the thread (record of an old version) has a summary only: what \
         else the host kept is not written down"
    )]
    SummaryOnly,
    /// A legacy rollout in which turns were taken back behind a compaction: the host counts them in a way
    /// that can undo the compaction.
    #[error(
        "turns behind the newest compaction were taken back, in a rollout without ordinals: what is left cannot be told from the file"
    )]
    TakenBack,
    /// Nothing to go on with.
    #[error("{path} holds no conversation")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A file of the source is not the one any more that was begun with.
    #[error("{path} was changed while it was read: {change}")]
    Changed {
        /// The file.
        path: PathBuf,
        /// What became of it.
        change: &'static str,
    },
    /// Asked for in the place of a compaction, and nothing would go.
    #[error("nothing in the history can go: it was used later, is new, or is protected")]
    NothingGoes,
    /// Asked for in the place of a compaction, and not ready in time.
    #[error("the thread is too long to be forked while the host waits")]
    Late,
    /// Lines that are too long to be held were passed over.
    #[error("records too long to be carried (over 256 MiB): {lines}")]
    TooLong {
        /// How many.
        lines: u64,
    },
    /// The host passes over a compaction of the source that looks like one: what it goes on with is not
    /// what the file seems to say.
    #[error(
        "the compacted record in line {line} of the source is not one that the host takes: {flaw}"
    )]
    Doubt {
        /// The line of the source, from 1.
        line: u64,
        /// What is wrong with it, and where.
        flaw: Flaw,
    },
    /// A record that the fork has to repeat is not one that the host takes.
    #[error("the {kind} record of the source cannot be repeated: {flaw}")]
    Record {
        /// Its type.
        kind: String,
        /// What is wrong with it, and where.
        flaw: Flaw,
    },
    /// What was written is not what was meant: a fault of ours, found before the fork was offered.
    #[error("the fork does not read back as it was written: {what}")]
    Check {
        /// What differs.
        what: String,
    },
    /// The fork cannot be written.
    #[error("cannot {operation} {path}")]
    Write {
        /// What was tried.
        operation: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// What a person can do next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Read(error) => error.hint().to_owned(),
            Self::NotCodex { .. } => {
                "there `/compact` is answered in place: see `compactctl install`".into()
            }
            Self::NoMeta { .. } => "is it a whole rollout? its first line is missing or cut".into(),
            Self::Gap { gap } => gap.hint().to_owned(),
            Self::Record { kind, .. } if kind == "session_meta" => {
                "Codex itself does not load a thread with such a record: is it of another program?"
                    .into()
            }
            Self::Item { .. } | Self::Record { .. } | Self::Doubt { .. } => {
                "written like this, Codex would change it or pass over the whole history without a word; \
                 resume the thread itself"
                    .into()
            }
            Self::Sealed { .. } | Self::SummaryOnly | Self::TakenBack => {
                "resume the thread itself, with `codex resume`".into()
            }
            Self::Empty { .. } => "give a thread with at least one message".into(),
            Self::Changed { .. } => "nothing was left behind; fork it again".into(),
            Self::NothingGoes | Self::Late => "`compactctl fork` makes one at any time".into(),
            Self::TooLong { .. } => "resume the thread itself, with `codex resume`".into(),
            Self::Check { .. } => "nothing was left behind; please report this".into(),
            Self::Write { .. } => "nothing was left behind; check the folder and the disk".into(),
        }
    }

    pub(crate) fn write(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Write { operation, path, source }
    }
}
