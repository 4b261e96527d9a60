//! `compact`: a file or a session, decided in this process.

use std::path::{Path, PathBuf};

use compactd_api::ids::is_id;
use compactd_api::words;
use compactd_api::{Profile, convert};
use compactd_core::index::History;
use compactd_core::rules::Pins;
use compactd_transcript::Roots;
use compactd_transcript::layout::has_transcript_name;

use super::{configuration, print_read};
use crate::cli::{CompactArgs, DecideArgs};
use crate::config::Config;
use crate::error::Error;
use crate::find;
use crate::offline::{self, Extent, Options, Read};
use crate::terminal::Ui;

pub(super) fn run(args: &CompactArgs, ui: &Ui) -> Result<(), Error> {
    let config = configuration(ui)?;
    let extent = match (args.lines, args.cut) {
        (Some(lines), _) => Extent::Lines(lines),
        (None, Some(percent)) => Extent::Percent(percent),
        (None, None) => Extent::Whole,
    };
    let roots = crate::config::roots(&config);
    let read = if is_file(&args.target) {
        let pins = pins_of(&config, &roots, &args.target)?;
        let options = Options { budget: args.budget, ..options(&config, &args.decide, pins) };
        Read::file(&args.target, extent, options)?
    } else {
        let id = args.target.to_string_lossy();
        session(&config, &roots, &id, extent, &args.decide, args.budget)?
    };
    print_read(&read, &args.decide, ui)
}

/// A session of this machine, by its id or the beginning of it.
pub(super) fn session(
    config: &Config,
    roots: &Roots,
    wanted: &str,
    extent: Extent,
    decide: &DecideArgs,
    budget: Option<u64>,
) -> Result<Read, Error> {
    let known = find::on_disk(roots);
    let ids: Vec<&str> = known.iter().map(|session| session.id.as_str()).collect();
    let id = find::resolve(wanted, &ids)?;
    let path = known.iter().find(|session| session.id == id).map(|session| session.path.clone());
    let path: PathBuf = path.unwrap_or_default();
    let pins = pins_of(config, roots, &path)?;
    let options = Options { budget, ..options(config, decide, pins) };
    let mut read = Read::file(&path, extent, options)?;
    id.clone_into(&mut read.session);
    Ok(read)
}

/// Whether a target names a file; else it is an id.
pub(super) fn is_file(target: &Path) -> bool {
    target.symlink_metadata().is_ok()
        || has_transcript_name(target)
        || target.components().count() != 1
        || !target.to_str().is_some_and(is_id)
}

/// A file inside the hosts' folders is a session that may have pins.
pub(super) fn pins_of(config: &Config, roots: &Roots, path: &Path) -> Result<Pins, Error> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match roots.admit(&path) {
        Some(place) => {
            offline::pins(&config.env, place.host, place.agent.as_ref().unwrap_or(&place.key))
        }
        None => Ok(Pins::default()),
    }
}

fn options(config: &Config, decide: &DecideArgs, pins: Pins) -> Options {
    let profile = decide.profile.map(Profile::from).and_then(convert::profile);
    Options {
        history: match words::History::from(decide.history) {
            words::History::Whole => History::Whole,
            words::History::Context | words::History::Other => History::Context,
        },
        profile: profile.unwrap_or_else(|| crate::config::profile(config)),
        settings: crate::config::rules(config),
        pins,
        budget: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_ids() {
        for target in ["./x", "a/b", "/x", "x.jsonl", "x.jsonl.zst", "no id", "..", ""] {
            assert!(is_file(Path::new(target)), "{target}");
        }
        assert!(!is_file(Path::new("3f2a91c0")));
    }
}
