//! The seal in a fork's first record: length and hash of all that stands behind it. By it the file is
//! known to be as it was written, before it may be removed.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

/// Stands in its place until the file is whole: 20 digits of length, 16 of hash.
pub(crate) const BLANK: &str = "00000000000000000000-0000000000000000";

/// What was written so far.
#[derive(Default)]
pub(crate) struct Sealing {
    bytes: u64,
    hash: Xxh3,
}

impl Sealing {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    pub(crate) fn text(&self) -> String {
        format!("{:020}-{:016x}", self.bytes, self.hash.digest())
    }
}

/// Puts a seal in the place of the blank one in the first line of a file.
pub(crate) fn put(file: &File, first: &str, seal: &str) -> io::Result<()> {
    match first.find(BLANK) {
        Some(at) => file.write_all_at(seal.as_bytes(), at as u64),
        None => Err(io::Error::other("the first record has no place for a seal")),
    }
}

/// The seal that a file should have.
pub(crate) fn of(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(128 * 1024, File::open(path)?);
    file.skip_until(b'\n')?;
    let mut sealing = Sealing::default();
    let mut chunk = vec![0; 128 * 1024];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(sealing.text()),
            Ok(read) => sealing.add(chunk.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_of_what_stands_behind_the_first_line() {
        let first = format!("{{\"seal\":\"{BLANK}\"}}");
        let rest = "a\nb".repeat(100_000);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{first}\n{rest}")).unwrap();
        let mut sealing = Sealing::default();
        rest.as_bytes().chunks(999).for_each(|chunk| sealing.add(chunk));
        let seal = sealing.text();
        assert_eq!((seal.len(), of(file.path()).unwrap()), (BLANK.len(), seal.clone()));
        let open = std::fs::OpenOptions::new().write(true).open(file.path()).unwrap();
        put(&open, &first, &seal).unwrap();
        assert_eq!(of(file.path()).unwrap(), seal);
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, format!("{{\"seal\":\"{seal}\"}}\n{rest}"));
        std::fs::write(file.path(), text.replace("ba\nb", "ba\nc")).unwrap();
        assert_ne!(of(file.path()).unwrap(), seal);
        assert!(put(&open, "{}", &seal).is_err());
    }
}
