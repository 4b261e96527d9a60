//! The file in which a session's pins are kept, below the state folder. Daemon and client read it;
//! only the daemon writes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use compactd_core::record::Host;
use compactd_core::rules::Pins;
use serde::{Deserialize, Serialize};

/// Number of the layout.
const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    format: u32,
    ids: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// Why bytes are no pins.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    /// Not what we write.
    #[error("not a file of pins")]
    NotPins(#[from] serde_json::Error),
    /// Written by another version.
    #[error("pins of format {0}, this version knows {FORMAT}")]
    Format(u32),
}

/// Where the pins of a session are kept, below the state folder.
#[must_use]
pub fn path(state: &Path, host: Host, id: &str) -> PathBuf {
    state.join("pins").join(format!("{}-{id}.json", host.name()))
}

/// Reads a file of pins.
///
/// # Errors
/// It is none of this version's: deciding without it could take what the person wants kept.
pub fn parse(bytes: &[u8]) -> Result<Pins, PinsError> {
    let kept: Kept = serde_json::from_slice(bytes)?;
    if kept.format != FORMAT {
        return Err(PinsError::Format(kept.format));
    }
    Ok(Pins { ids: kept.ids, files: kept.files })
}

/// The bytes of a file of pins.
#[must_use]
pub fn print(pins: &Pins) -> Vec<u8> {
    let kept = Kept { format: FORMAT, ids: pins.ids.clone(), files: pins.files.clone() };
    serde_json::to_vec_pretty(&kept).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let pins = Pins {
            ids: BTreeSet::from(["toolu_1".to_owned()]),
            files: BTreeSet::from(["/w/a \"b\".rs".to_owned()]),
        };
        assert_eq!(parse(&print(&pins)).unwrap(), pins);
        let newer = br#"{"format":2,"ids":[],"files":[]}"#;
        assert!(matches!(parse(newer), Err(PinsError::Format(2))));
        assert!(matches!(parse(b"{"), Err(PinsError::NotPins(_))));
    }
}
