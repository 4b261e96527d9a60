//! What is kept on disk of the texts of a thread, beside the texts themselves.

use serde::{Deserialize, Serialize};

use super::Track;

/// Number of the layout.
const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    format: u32,
    delivered: u64,
    texts: Vec<KeptText>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptText {
    compaction: u64,
    at: String,
}

/// Why bytes do not say how far a thread is.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeptError {
    /// Not what we write.
    #[error("not a file of kept texts")]
    NotKept(#[from] serde_json::Error),
    /// Written by another version.
    #[error("kept texts of format {0}, this version knows {FORMAT}")]
    Format(u32),
}

pub(super) fn parse(bytes: &[u8]) -> Result<Track, KeptError> {
    /// The number is looked at first: all else may differ.
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let Head { format } = serde_json::from_slice(bytes)?;
    if format != FORMAT {
        return Err(KeptError::Format(format));
    }
    let kept: Kept = serde_json::from_slice(bytes)?;
    Ok(Track::of(kept.delivered, kept.texts.into_iter().map(|text| (text.compaction, text.at))))
}

pub(super) fn print(track: &Track) -> Result<Vec<u8>, serde_json::Error> {
    let texts = track.texts().map(|(compaction, at)| KeptText { compaction, at: at.to_owned() });
    let kept = Kept { format: FORMAT, delivered: track.delivered(), texts: texts.collect() };
    serde_json::to_vec(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_again() {
        let track = Track::of(3, [(3, "a".to_owned()), (4, "b".to_owned())]);
        let bytes = print(&track).unwrap();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            r#"{"format":1,"delivered":3,"texts":[{"compaction":3,"at":"a"},{"compaction":4,"at":"b"}]}"#
        );
        assert_eq!(parse(&bytes).unwrap(), track);
        assert!(matches!(parse(b"{\"format\":2}"), Err(KeptError::Format(2))));
        assert!(matches!(parse(b"{}"), Err(KeptError::NotKept(_))));
    }
}
