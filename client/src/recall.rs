//! Finding a tool result in transcripts, and reading it from there.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use compactd_api::convert;
use compactd_api::recall::{Recall, RecallSession};
use compactd_core::record::{Host, MAX_LINE_BYTES, json};
use compactd_transcript::texts::{Search, line_at};
use compactd_transcript::{Error, Transcript};

use crate::find::OnDisk;

/// What one session has under an id.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The session; a sub-agent's own id.
    pub session: String,
    /// What was found there.
    pub search: Search,
}

/// Why a result cannot be given back.
#[derive(Debug, thiserror::Error)]
pub enum Unrecalled {
    /// Nobody has it.
    #[error("no result {id} was found")]
    Unknown {
        /// What was asked for.
        id: String,
    },
    /// Only what a compaction left in its place.
    #[error("of result {id} only the note of a compaction was found")]
    OnlyNotes {
        /// What was asked for.
        id: String,
    },
    /// It is an image or the like.
    #[error("result {id} holds no text, only an image or other data")]
    NoText {
        /// What was asked for.
        id: String,
    },
    /// Sessions have different results under the id.
    #[error("{} sessions have a result {id}, and not the same", sessions.len())]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// The sessions.
        sessions: Vec<String>,
    },
}

impl Unrecalled {
    /// A next step.
    #[must_use]
    pub fn hint(&self) -> Cow<'_, str> {
        match self {
            Self::Unknown { .. } => {
                "`compactctl explain SESSION` shows the ids of its results".into()
            }
            Self::OnlyNotes { .. } => {
                "the session was copied from one that had it; that one may be gone".into()
            }
            Self::NoText { .. } => "`--json` prints the value in the transcript".into(),
            Self::Ambiguous { sessions, .. } => {
                format!("say which with --session: {}", sessions.join(", ")).into()
            }
        }
    }
}

/// Reads what the daemon says where it is. A session that is another by now is searched whole.
#[must_use]
pub fn read(places: &Recall) -> Vec<Hit> {
    let mut hits = Vec::new();
    for found in &places.found {
        let Some(host) = convert::host(found.host) else { continue };
        let mut search = at_places(host, found, &places.id);
        let wants_more = !search.is_done(false) || search.call.is_none();
        if wants_more && let Some(file) = found.files.last() {
            search = Search::file(Path::new(file), &places.id).unwrap_or(search);
        }
        hits.push(Hit { session: found.session.clone(), search });
    }
    hits
}

fn at_places(host: Host, found: &RecallSession, id: &str) -> Search {
    let mut files: Vec<Transcript> =
        found.files.iter().filter_map(|path| Transcript::open(Path::new(path)).ok()).collect();
    let mut search = Search::default();
    let results = found.results.iter().filter(|place| !place.noted);
    let places = results
        .map(|place| (place.offset, Some(place.chars)))
        .chain(found.calls.iter().map(|offset| (*offset, None)));
    for (offset, chars) in places {
        if chars.is_some() && search.is_done(false) {
            continue;
        }
        for file in &mut files {
            let line = line_at(file, offset, MAX_LINE_BYTES).ok().flatten();
            let Some(line) = line else { continue };
            let mut there = Search::default();
            let path: PathBuf = file.path().to_path_buf();
            there.take(host, &path, offset, &line, id);
            // It must be as long as the index saw it.
            let length =
                there.original.as_ref().map(|original| original.text.chars().count() as u64);
            if chars.is_some() && length != chars {
                continue;
            }
            if chars.is_some() {
                if search.original.is_none() || there.is_done(false) {
                    search.original = there.original;
                }
            } else {
                search.take(host, &path, offset, &line, id);
            }
            break;
        }
    }
    search
}

/// Searches a session's file; `None` if it has no trace of the id.
///
/// # Errors
/// The file cannot be read.
pub fn search(session: &OnDisk, id: &str) -> Result<Option<Hit>, Error> {
    let search = Search::file(&session.path, id)?;
    Ok(search.has_any().then(|| Hit { session: session.id.clone(), search }))
}

/// The one thing that is meant. Copies of it (a forked session has them) are the same.
///
/// # Errors
/// There is none, only notes are left, or sessions have different ones.
pub fn one<'a>(id: &str, hits: &'a [Hit], wants_call: bool) -> Result<&'a Search, Unrecalled> {
    // A fork may hold no more than a shortened call, or what is left of a result.
    let any_whole = hits.iter().any(|hit| hit.search.is_done(wants_call));
    let has = |hit: &&Hit| {
        value(hit, wants_call).is_some() && (!any_whole || hit.search.is_done(wants_call))
    };
    let having: Vec<&Hit> = hits.iter().filter(has).collect();
    let Some(first) = having.first() else {
        let id = id.to_owned();
        let has_note = hits.iter().any(|hit| hit.search.has_note);
        return Err(if has_note && !wants_call {
            Unrecalled::OnlyNotes { id }
        } else {
            Unrecalled::Unknown { id }
        });
    };
    if having.iter().any(|hit| value(hit, wants_call) != value(first, wants_call)) {
        let sessions = having.iter().map(|hit| hit.session.clone()).collect();
        return Err(Unrecalled::Ambiguous { id: id.to_owned(), sessions });
    }
    Ok(&first.search)
}

/// What is asked for, as a session has it, and whether it holds more than text. A copy may be written
/// in another way, so a result is compared as the model read it.
fn value(hit: &Hit, wants_call: bool) -> Option<(&str, bool)> {
    if wants_call {
        return hit.search.call.as_deref().map(|call| (call, false));
    }
    hit.search.original.as_ref().map(|original| (original.text.as_str(), original.is_opaque))
}

/// A call's input as JSON. Codex keeps it as JSON inside a string.
#[must_use]
pub fn input(raw: &str) -> String {
    let inner = json::value(raw).and_then(json::Raw::text);
    match inner {
        Some(text) if json::looks_like_object(&text).is_some() => text.into_owned(),
        _ => raw.to_owned(),
    }
}

/// The file in which the host keeps an output of which the model read a preview only.
#[must_use]
pub fn persisted(text: &str) -> Option<&str> {
    let text = text.strip_prefix("<persisted-output>")?;
    let path = text.split_once("saved to: ")?.1;
    path.lines().next().map(str::trim).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use compactd_transcript::texts::Original;

    use super::*;

    fn hit(session: &str, raw: Option<&str>, has_note: bool) -> Hit {
        let original = raw.map(|raw| Original {
            path: PathBuf::from("/s.jsonl"),
            offset: 0,
            text: raw.to_owned(),
            raw: raw.to_owned(),
            is_opaque: false,
        });
        let mut search = Search::default();
        search.original = original;
        search.has_note = has_note;
        Hit { session: session.to_owned(), search }
    }

    #[test]
    fn copies_are_one_and_different_results_are_told() {
        let hits = [hit("a", None, true), hit("b", Some("x"), false), hit("c", Some("x"), true)];
        assert_eq!(one("t", &hits, false).unwrap().original.as_ref().unwrap().raw, "x");
        let hits = [hit("a", Some("x"), false), hit("b", Some("y"), false)];
        let error = one("t", &hits, false).unwrap_err();
        assert_eq!(error.to_string(), "2 sessions have a result t, and not the same");
        assert_eq!(error.hint(), "say which with --session: a, b");
        assert!(matches!(one("t", &hits[..0], false), Err(Unrecalled::Unknown { .. })));
        let noted = [hit("a", None, true)];
        assert!(matches!(one("t", &noted, false), Err(Unrecalled::OnlyNotes { .. })));
        assert!(matches!(one("t", &hits, true), Err(Unrecalled::Unknown { .. })));
    }

    #[test]
    fn copies_may_be_written_otherwise_and_left_overs_do_not_count() {
        let mut other = hit("b", Some("a"), false);
        other.search.original.as_mut().unwrap().raw = r#"[{"type":"text","text":"a"}]"#.to_owned();
        let hits = [hit("a", Some("a"), false), other];
        assert!(one("t", &hits, false).is_ok());
        let mut image = hit("b", Some("a"), false);
        image.search.original.as_mut().unwrap().is_opaque = true;
        let left = format!("a\n{}", compactd_core::note::NON_TEXT);
        let hits = [hit("a", Some(&left), false), image.clone()];
        assert!(one("t", &hits, false).unwrap().original.as_ref().unwrap().is_opaque);
        assert_eq!(one("t", &hits[..1], false).unwrap().original.as_ref().unwrap().text, left);
        let hits = [hit("a", Some("a"), false), image];
        assert!(matches!(one("t", &hits, false), Err(Unrecalled::Ambiguous { .. })));
    }

    #[test]
    fn inputs_are_json() {
        for (raw, shown) in [
            (r#"{"b": 1.0}"#, r#"{"b": 1.0}"#),
            (r#""{\"command\":\"ls\"}""#, r#"{"command":"ls"}"#),
            (r#""*** Begin Patch""#, r#""*** Begin Patch""#),
            ("", ""),
        ] {
            assert_eq!(input(raw), shown);
        }
    }

    #[test]
    fn persisted_outputs_name_their_file() {
        let text = "<persisted-output>\nOutput too large (171.5KB). Full output saved to: /h/x.txt\n\nPreview";
        assert_eq!(persisted(text), Some("/h/x.txt"));
        assert_eq!(persisted("Full output saved to: /h/x.txt"), None);
        assert_eq!(persisted("<persisted-output>\nnothing"), None);
    }
}
