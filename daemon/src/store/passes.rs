//! The files of passes: for each a small one that follows what becomes of it, and one with its results
//! that is written once. What stands there and cannot be read is never written over.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use compactd_api::passes;

use super::{Store, StoreError, read, write};
use crate::sessions::SessionKey;

/// A file of a pass that is larger is none of ours: the largest contexts have some thousand results.
const MAX_PASS_BYTES: u64 = 64 << 20;

impl Store {
    /// Numbers of the passes that are kept of a session, in no order; those of other versions too.
    ///
    /// # Errors
    /// The folder is there and cannot be listed, or is none of ours.
    pub fn pass_numbers(&self, key: &SessionKey) -> Result<Vec<u64>, StoreError> {
        let Some(folder) = self.passes_folder(key)? else { return Ok(Vec::new()) };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(StoreError::of("list", &folder))?,
        };
        let name = |entry: fs::DirEntry| passes::number_of(entry.file_name().to_str()?);
        Ok(entries.flatten().filter_map(name).collect())
    }

    /// The bytes of a pass, without its results.
    ///
    /// # Errors
    /// The file is there and cannot be read; it is left as it is.
    pub fn pass(&self, key: &SessionKey, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match self.passes_folder(key)? {
            Some(folder) => read(&folder.join(passes::file_name(number)), MAX_PASS_BYTES),
            None => Ok(None),
        }
    }

    /// The bytes of the results of a pass.
    ///
    /// # Errors
    /// The file is there and cannot be read; it is left as it is.
    pub fn results(&self, key: &SessionKey, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match self.passes_folder(key)? {
            Some(folder) => read(&folder.join(passes::results_name(number)), MAX_PASS_BYTES),
            None => Ok(None),
        }
    }

    /// Writes a pass; false if passes are not kept.
    ///
    /// # Errors
    /// The file cannot be written, or cannot be read as one of ours; what was there stays.
    pub fn save_pass(
        &self,
        key: &SessionKey,
        number: u64,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, StoreError> {
        let Some(folder) = self.passes_folder(key)? else { return Ok(false) };
        let path = folder.join(passes::file_name(number));
        replaceable(&path, |bytes| passes::parse(bytes).map(drop))?;
        write(&path, &bytes())?;
        Ok(true)
    }

    /// Writes the results of a pass; false if passes are not kept.
    ///
    /// # Errors
    /// As [`Self::save_pass`].
    pub fn save_results(
        &self,
        key: &SessionKey,
        number: u64,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, StoreError> {
        let Some(folder) = self.passes_folder(key)? else { return Ok(false) };
        let path = folder.join(passes::results_name(number));
        replaceable(&path, |bytes| passes::parse_results(bytes).map(drop))?;
        write(&path, &bytes())?;
        Ok(true)
    }

    /// Removes a pass with its results.
    ///
    /// # Errors
    /// It is there and stays.
    pub fn remove_pass(&self, key: &SessionKey, number: u64) -> Result<(), StoreError> {
        let Some(folder) = self.passes_folder(key)? else { return Ok(()) };
        for name in [passes::file_name(number), passes::results_name(number)] {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::of("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The folder with the passes of a session. A link in its place could lead anywhere: it is refused,
    /// as is another user's folder.
    fn passes_folder(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        let Some(state) = &self.state else { return Ok(None) };
        let folder = passes::folder(state, key.host, &key.id);
        for part in [passes::base(state), folder.clone()] {
            match fs::symlink_metadata(&part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(StoreError::of("look at", &part)(error)),
                Ok(metadata) if is_own_folder(&metadata) => {}
                Ok(_) => {
                    let kind = io::ErrorKind::PermissionDenied;
                    let refused = io::Error::new(kind, "not a folder of ours");
                    return Err(StoreError::of("use", &part)(refused));
                }
            }
        }
        Ok(Some(folder))
    }
}

fn is_own_folder(metadata: &fs::Metadata) -> bool {
    metadata.is_dir() && metadata.uid() == rustix::process::getuid().as_raw()
}

/// Whether a new file may take the place of what is at `path`: nothing, a file that `parse` knows, or a
/// link or pipe (only itself goes, nothing that it leads to).
fn replaceable(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<(), passes::PassError>,
) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::of("look at", path)(error)),
        Ok(metadata) if !metadata.is_file() => Ok(()),
        Ok(_) => {
            let Some(bytes) = read(path, MAX_PASS_BYTES)? else { return Ok(()) };
            parse(&bytes).map_err(io::Error::other).map_err(StoreError::of("write over", path))
        }
    }
}
