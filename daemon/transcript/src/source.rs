//! An open transcript: a regular file, plain or packed with zstd, read by offset.
//!
//! Memory maps are not used: another process that truncates a mapped file kills the reader.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zstd::stream::read::Decoder;

use crate::error::Error;
use crate::identity::Stat;

/// Bytes asked of the file or the decoder at once.
pub const CHUNK_BYTES: usize = 128 * 1024;

/// Largest window a packed file may ask for, as a power of two: 16 MiB.
///
/// Enough for every level up to 19; beyond it a file of a few bytes could claim 2 GiB.
const WINDOW_LOG_MAX: u32 = 24;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An open transcript.
pub struct Transcript {
    path: PathBuf,
    file: File,
    unpacked: Option<Unpacked>,
}

impl Transcript {
    /// Opens a regular file. Links are followed; pipes and devices are refused without blocking.
    ///
    /// # Errors
    /// The file is missing, forbidden, a directory or not regular, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = open_regular(path)?;
        let mut magic = [0; 4];
        let read = read_at(&file, &mut magic, 0).map_err(|e| Error::from_io(path, "read", e))?;
        let is_packed = magic == ZSTD_MAGIC || (read > 0 && has_packed_name(path));
        let unpacked = if is_packed {
            Some(Unpacked::start(&file).map_err(|e| unpack_error(path, e))?)
        } else {
            None
        };
        Ok(Self { path: path.to_path_buf(), file, unpacked })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Packed with zstd: offsets then count unpacked bytes.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.unpacked.is_some()
    }

    /// Asks the system about the open file, which may no longer be the one at its path.
    ///
    /// # Errors
    /// The system refuses.
    pub fn stat(&self) -> Result<Stat, Error> {
        self.file
            .metadata()
            .map(|metadata| Stat::of(&metadata))
            .map_err(|e| Error::from_io(&self.path, "stat", e))
    }

    /// Reads transcript bytes from `offset` on; 0 at the end. For a packed file going back by more
    /// than [`CHUNK_BYTES`] means unpacking from its start again.
    ///
    /// # Errors
    /// The system refuses, or packed data is broken.
    pub fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        match &mut self.unpacked {
            None => read_at(&self.file, buffer, offset)
                .map_err(|e| Error::from_io(&self.path, "read", e)),
            Some(unpacked) => unpacked
                .read_at(&self.file, buffer, offset)
                .map_err(|e| unpack_error(&self.path, e)),
        }
    }

    /// Reads bytes as they are on disk, packed or not.
    pub(crate) fn read_raw_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = read_at(&self.file, &mut buffer[filled..], offset + filled as u64)
                .map_err(|e| Error::from_io(&self.path, "read", e))?;
            if read == 0 {
                break;
            }
            filled += read;
        }
        Ok(filled)
    }
}

/// Opens without blocking and refuses what is not a regular file.
fn open_regular(path: &Path) -> Result<File, Error> {
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            // A socket cannot be opened at all (ENXIO): say what it is instead.
            return Err(match std::fs::metadata(path) {
                Ok(found) if !found.is_file() && !found.is_dir() => {
                    Error::NotRegular { path: path.to_path_buf(), operation: "open" }
                }
                _ => Error::from_io(path, "open", error),
            });
        }
    };
    let metadata = file.metadata().map_err(|e| Error::from_io(path, "stat", e))?;
    if metadata.is_dir() {
        return Err(Error::IsDirectory { path: path.to_path_buf(), operation: "open" });
    }
    if !metadata.is_file() {
        return Err(Error::NotRegular { path: path.to_path_buf(), operation: "open" });
    }
    Ok(file)
}

fn has_packed_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn unpack_error(path: &Path, source: io::Error) -> Error {
    Error::Zstd { path: path.to_path_buf(), source }
}

/// Reads a file from its start by offset, so that no file position is shared.
struct FromStart {
    file: File,
    offset: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(&self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// The unpacked bytes as if they could be read at any offset.
struct Unpacked {
    decoder: Decoder<'static, io::BufReader<FromStart>>,
    /// The last chunk: a bounded slice of lines ends inside it, and the next one starts there.
    chunk: Vec<u8>,
    /// Offset of the first byte behind `chunk`.
    end: u64,
}

impl Unpacked {
    fn start(file: &File) -> io::Result<Self> {
        let mut decoder = Decoder::new(FromStart { file: file.try_clone()?, offset: 0 })?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(Self { decoder, chunk: Vec::new(), end: 0 })
    }

    fn read_at(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset < self.chunk_start() {
            *self = Self::start(file)?;
        }
        while offset >= self.end {
            if self.next_chunk()? == 0 {
                return Ok(0);
            }
        }
        let skipped = usize::try_from(offset - self.chunk_start()).map_err(io::Error::other)?;
        let rest = &self.chunk[skipped..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn chunk_start(&self) -> u64 {
        self.end - self.chunk.len() as u64
    }

    fn next_chunk(&mut self) -> io::Result<usize> {
        let mut next = std::mem::take(&mut self.chunk);
        next.clear();
        let read = self.decoder.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut next);
        // What was unpacked before an error still counts; the error comes again at the next call.
        self.end += next.len() as u64;
        let length = next.len();
        self.chunk = next;
        match read {
            Err(error) if length == 0 => Err(error),
            _ => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    fn read_all(path: &Path, step: usize) -> Result<Vec<u8>, Error> {
        let mut file = Transcript::open(path)?;
        let (mut all, mut buffer) = (Vec::new(), vec![0; step]);
        loop {
            let read = file.read_at(&mut buffer, all.len() as u64)?;
            if read == 0 {
                return Ok(all);
            }
            all.extend_from_slice(&buffer[..read]);
        }
    }

    #[test]
    fn refuses_what_is_no_regular_file_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let paths = [pipe, socket, "/dev/zero".into(), dir.path().into(), dir.path().join("none")];
        std::thread::spawn(move || {
            for path in paths {
                sender.send(Transcript::open(&path).err()).unwrap();
            }
        });
        let next = || receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        assert!(matches!(next(), Error::NotRegular { .. }));
        assert!(matches!(next(), Error::NotRegular { .. }));
        assert!(matches!(next(), Error::NotRegular { .. }));
        assert!(matches!(next(), Error::IsDirectory { .. }));
        assert!(matches!(next(), Error::NotFound { .. }));
    }

    #[test]
    fn follows_a_link_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "one\n").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("b.jsonl")).unwrap();
        assert_eq!(read_all(&dir.path().join("b.jsonl"), 2).unwrap(), b"one\n");
    }

    #[test]
    fn packed_bytes_can_be_read_at_any_offset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl.zst");
        let bytes: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
        // Two frames, as appending tools write them.
        let mut on_disk = packed(&bytes[..700_000]);
        on_disk.extend(packed(&bytes[700_000..]));
        std::fs::write(&path, on_disk).unwrap();
        assert_eq!(read_all(&path, 50_000).unwrap(), bytes);
        let mut file = Transcript::open(&path).unwrap();
        assert!(file.is_packed());
        for offset in [1_500_000_usize, 10, 1_599_990, 0, 700_000] {
            let mut buffer = [0; 8];
            let read = file.read_at(&mut buffer, offset as u64).unwrap();
            assert_eq!(buffer[..read], bytes[offset..offset + read]);
        }
        assert_eq!(file.read_at(&mut [0; 8], 1_600_000).unwrap(), 0);
    }

    #[test]
    fn a_packed_file_may_not_claim_a_huge_window() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bomb.jsonl.zst");
        let mut encoder = zstd::Encoder::new(File::create(&path).unwrap(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
        encoder.finish().unwrap();
        assert!(matches!(read_all(&path, 4096), Err(Error::Zstd { .. })));
    }

    #[test]
    fn a_cut_packed_file_gives_its_start_and_then_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cut.jsonl.zst");
        let whole = packed(&(0..200_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
        assert!(matches!(read_all(&path, 4096), Err(Error::Zstd { .. })));
        std::fs::write(&path, "plain text").unwrap();
        assert!(matches!(read_all(&path, 4096), Err(Error::Zstd { .. })));
    }
}
