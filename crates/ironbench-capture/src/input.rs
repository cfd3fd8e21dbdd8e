//! Reads log files piece by piece. The files may be compressed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// Size of a piece.
const PIECE: usize = 1 << 20;
/// Maximum length of an entry that is read. A longer entry is damaged, or contains a statement that no replay could
/// send in reasonable time.
const LONGEST: usize = 1 << 26;

/// The bytes of a file that have been read but not consumed.
pub struct Buffer {
    source: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    is_complete: bool,
    /// Whether the decompressor has requested bytes after the end of the file. Always false without compression.
    at_end: Arc<AtomicBool>,
    is_truncated: bool,
}

impl Buffer {
    /// Opens a file. gzip and zstd are recognised by their first bytes. `read` counts the bytes of the file itself.
    pub fn open(path: &Path, read: &Arc<AtomicU64>) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut magic = [0; 4];
        let (known, error) = read_up_to(&mut file, &mut magic);
        error.map_or(Ok(()), Err)?;
        let whole = io::Cursor::new(magic).take(known as u64).chain(file);
        let at_end = Arc::<AtomicBool>::default();
        let counted = Counted { source: whole, read: Arc::clone(read), at_end: Arc::clone(&at_end) };
        let counted = BufReader::with_capacity(PIECE, counted);
        Ok(match magic {
            [0x1f, 0x8b, ..] => Self { at_end, ..Self::new(Box::new(MultiGzDecoder::new(counted))) },
            [0x28, 0xb5, 0x2f, 0xfd] => {
                Self { at_end, ..Self::new(Box::new(Frames { source: Some(counted), frame: None })) }
            }
            _ => Self::new(Box::new(counted)),
        })
    }

    pub fn new(source: Box<dyn Read + Send>) -> Self {
        let (bytes, at_end) = (Vec::new(), Arc::default());
        Self { source, bytes, start: 0, end: 0, is_complete: false, at_end, is_truncated: false }
    }

    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Whether `unread` reaches to the end of the file.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the file is compressed and ends in the middle of the compressed data.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
    }

    /// Reads more bytes. Returns false at the end of the file. Also returns false if `LONGEST` bytes are unread,
    /// because no entry is that long. If the compressed data are truncated, the file ends where they end.
    pub fn read_more(&mut self) -> io::Result<bool> {
        if self.is_complete || self.unread().len() >= LONGEST {
            return Ok(false);
        }
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let wanted = (self.end + PIECE).max(2 * self.end);
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        let (count, error) = read_up_to(&mut self.source, &mut self.bytes[self.end..]);
        self.end += count;
        self.is_complete = self.end < self.bytes.len();
        match error {
            Some(error) if !self.at_end.load(Relaxed) => return Err(error),
            Some(_) => (self.is_complete, self.is_truncated) = (true, true),
            None => {}
        }
        Ok(count > 0)
    }
}

/// Fills the buffer, or reads to the end of the file or to an error. Returns the number of bytes read, and the error.
fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> (usize, Option<io::Error>) {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(error)),
        }
    }
    (filled, None)
}

struct Counted<R> {
    source: R,
    read: Arc<AtomicU64>,
    /// Set when a caller requests bytes after the end.
    at_end: Arc<AtomicBool>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.read.fetch_add(count as u64, Relaxed);
        if count == 0 && !buffer.is_empty() {
            self.at_end.store(true, Relaxed);
        }
        Ok(count)
    }
}

type Frame<R> = StreamingDecoder<R, ruzstd::decoding::FrameDecoder>;

/// The frames of a zstd file, one after the other.
struct Frames<R: Read> {
    source: Option<BufReader<R>>,
    frame: Option<Box<Frame<BufReader<R>>>>,
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame.read(buffer)?;
                if count > 0 {
                    return Ok(count);
                }
                self.source = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut source) = self.source.take() else { return Ok(0) };
            if io::BufRead::fill_buf(&mut source)?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new(source).map_err(|error| io::Error::other(error.to_string()))?;
            self.frame = Some(Box::new(frame));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_read_whole_however_it_is_compressed() {
        let folder = std::env::temp_dir().join(format!("ironbench-capture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text: Vec<u8> = (0..300_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text[..1000]).unwrap();
        let mut two = gzip.finish().unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text[1000..]).unwrap();
        two.extend(gzip.finish().unwrap());
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let mut frames = ruzstd::encoding::compress_to_vec(&text[..1000], level);
        frames.extend(ruzstd::encoding::compress_to_vec(&text[1000..], level));
        for (name, bytes) in [("plain", text.clone()), ("gzip", two), ("zstd", frames), ("empty", Vec::new())] {
            let path = folder.join(name);
            std::fs::write(&path, &bytes).unwrap();
            let read = Arc::new(AtomicU64::new(0));
            let mut buffer = Buffer::open(&path, &read).unwrap();
            let mut found = Vec::new();
            while buffer.read_more().unwrap() {
                found.extend_from_slice(buffer.unread());
                buffer.consume(buffer.unread().len());
            }
            assert!(found == if name == "empty" { Vec::new() } else { text.clone() }, "{name}");
            assert_eq!(read.load(Relaxed), bytes.len() as u64, "{name}");
            assert!(!buffer.is_truncated(), "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Returns the contents of a file, and whether its compressed data are truncated.
    fn read(bytes: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        let place = std::env::temp_dir().join(format!("ironbench-input-{:?}", std::thread::current().id()));
        std::fs::write(&place, bytes)?;
        let opened = Buffer::open(&place, &Arc::default());
        std::fs::remove_file(&place)?;
        let (mut buffer, mut found) = (opened?, Vec::new());
        while buffer.read_more()? {
            found.extend_from_slice(buffer.unread());
            buffer.consume(buffer.unread().len());
        }
        Ok((found, buffer.is_truncated()))
    }

    #[test]
    fn truncated_compressed_data_are_read_as_far_as_they_reach() {
        let text: Vec<u8> = (0..300_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let zstd = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
        for packed in [gzip.finish().unwrap(), zstd] {
            for cut in [6, packed.len() / 2, packed.len() - 1] {
                let (found, is_truncated) = read(&packed[..cut]).unwrap();
                assert!(is_truncated && text.starts_with(&found), "{cut}");
                assert!(found.len() > text.len() / 3 || cut == 6, "{cut}: {}", found.len());
            }
        }
    }

    #[test]
    fn damaged_compressed_data_are_an_error() {
        let text: Vec<u8> = (0..300_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let mut packed = gzip.finish().unwrap();
        let checksum = packed.len() - 8;
        packed[checksum] ^= 1;
        assert!(read(&packed).is_err());
    }
}
