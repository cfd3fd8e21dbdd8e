//! Files that are kept open and read repeatedly from their beginning. This is cheap enough for 20 and more readings per
//! second. `/proc` and `/sys` generate their text again on each read at offset 0 (Linux:
//! Documentation/filesystems/seq_file.rst).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::sampling_loop::{ReadError, Reader};

/// How often a pattern is matched again, to find new devices.
const RESCAN_INTERVAL_S: f64 = 1.0;
const CHUNK_BYTES: usize = 16 << 10;

/// The files of one target, which is a path or a pattern with `*`.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    target: String,
    pattern: bool,
    open: Vec<(PathBuf, File)>,
    /// Number of readings before the pattern is matched again.
    readings_until_rescan: u32,
    readings_per_rescan: u32,
}

impl Files {
    /// Creates the files of `target`, an absolute path that is resolved below `root`.
    pub fn new(root: &Path, target: &str, period_s: f64) -> Self {
        let readings_per_rescan = (RESCAN_INTERVAL_S / period_s).ceil().max(1.0) as u32;
        Self {
            root: root.to_owned(),
            target: target.to_owned(),
            pattern: target.contains('*'),
            open: Vec::new(),
            readings_until_rescan: 0,
            readings_per_rescan,
        }
    }

    fn read_one(&mut self, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let path = new_below(&self.root, &self.target);
        let failed = |error: io::Error| ReadError::Temporary(format!("{}: {error}", path.display()));
        if self.open.is_empty() {
            self.open.push((path.clone(), File::open(&path).map_err(failed)?));
        }
        let outcome = read_whole(&self.open[0].1, out);
        if outcome.is_err() {
            self.open.clear();
        }
        outcome.map_err(failed)
    }

    /// Reads all matching files, each after a line `==> path`. Files that have vanished are left out.
    fn read_matching(&mut self, out: &mut Vec<u8>) -> Result<(), ReadError> {
        if self.readings_until_rescan == 0 {
            self.rescan();
            self.readings_until_rescan = self.readings_per_rescan;
        }
        self.readings_until_rescan -= 1;
        let root = &self.root;
        self.open.retain(|(path, file)| {
            let start = out.len();
            out.extend_from_slice(b"==> /");
            out.extend_from_slice(path.strip_prefix(root).unwrap_or(path).as_os_str().as_encoded_bytes());
            out.push(b'\n');
            let read = read_whole(file, out);
            if read.is_err() {
                out.truncate(start);
            } else if out.last() != Some(&b'\n') {
                out.push(b'\n');
            }
            read.is_ok()
        });
        if self.open.is_empty() {
            return Err(ReadError::Temporary(format!("no file matches {}", self.target)));
        }
        Ok(())
    }

    fn rescan(&mut self) {
        let mut kept = std::mem::take(&mut self.open);
        for path in matching(&self.root, &self.target) {
            if let Some(place) = kept.iter().position(|(open, _)| *open == path) {
                self.open.push(kept.swap_remove(place));
            } else if let Ok(file) = File::open(&path) {
                self.open.push((path, file));
            }
        }
    }
}

impl Reader for Files {
    fn read(&mut self, out: &mut Vec<u8>) -> Result<(), ReadError> {
        if self.pattern { self.read_matching(out) } else { self.read_one(out) }
    }
}

fn new_below(root: &Path, target: &str) -> PathBuf {
    root.join(target.trim_start_matches('/'))
}

/// Reads to the end of the file. A `/proc` file may arrive in pieces, however large the buffer is.
fn read_whole(file: &File, out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    loop {
        let end = out.len();
        out.resize(end + CHUNK_BYTES, 0);
        match file.read_at(&mut out[end..], (end - start) as u64) {
            Ok(read) => {
                out.truncate(end + read);
                if read == 0 {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => out.truncate(end),
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        }
    }
}

/// Returns the existing paths below `root` that match `target`, sorted; `*` matches any part of one name.
fn matching(root: &Path, target: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in target.split('/').filter(|part| !part.is_empty()) {
        found = if part.contains('*') {
            let mut next: Vec<PathBuf> = found.iter().flat_map(|folder| entries(folder, part)).collect();
            next.sort();
            next
        } else {
            found.into_iter().map(|folder| folder.join(part)).collect()
        };
    }
    found.retain(|path| path.exists());
    found
}

fn entries(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(folder) else { return Vec::new() };
    listing
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name_matches(name, pattern)))
        .map(|entry| entry.path())
        .collect()
}

/// Whether the name matches the pattern. `*` matches any characters, but not a leading dot, as in a shell.
fn name_matches(name: &str, pattern: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn read(files: &mut Files) -> Result<String, ReadError> {
        let mut out = Vec::new();
        files.read(&mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_star_stands_for_part_of_one_name() {
        for (name, pattern, expected) in [
            ("sda", "sd*", true),
            ("sda", "*", true),
            ("nvme0n1", "nvme*n*", true),
            ("nvme0", "nvme*n*", false),
            ("aba", "*ab", false),
            ("a", "a*a", false),
            (".hidden", "*", false),
        ] {
            assert_eq!(name_matches(name, pattern), expected, "{name} {pattern}");
        }
    }

    #[test]
    fn a_pattern_joins_its_files_in_order_under_their_paths() {
        let folder = Folder::new();
        folder.write("sys/block/sdb/stat", "2");
        folder.write("sys/block/sda/stat", "1\n");
        let mut files = Files::new(&folder.0, "/sys/block/*/stat", 1.0);
        assert_eq!(read(&mut files).unwrap(), "==> /sys/block/sda/stat\n1\n==> /sys/block/sdb/stat\n2\n");
        folder.write("sys/block/sda/stat", "3\n");
        folder.write("sys/block/sdc/stat", "4\n");
        std::fs::remove_dir_all(folder.0.join("sys/block/sdb")).unwrap();
        assert_eq!(read(&mut files).unwrap(), "==> /sys/block/sda/stat\n3\n==> /sys/block/sdc/stat\n4\n");
    }

    #[test]
    fn a_file_larger_than_a_chunk_is_read_whole() {
        let folder = Folder::new();
        let text = "x".repeat(3 * CHUNK_BYTES + 7);
        folder.write("big", &text);
        assert_eq!(read(&mut Files::new(&folder.0, "/big", 1.0)).unwrap(), text);
    }

    #[test]
    fn a_missing_file_is_passing_trouble_and_read_once_it_is_there() {
        let folder = Folder::new();
        let mut files = Files::new(&folder.0, "/late", 1.0);
        assert!(matches!(read(&mut files), Err(ReadError::Temporary(_))));
        folder.write("late", "now");
        assert_eq!(read(&mut files).unwrap(), "now");
    }

    #[test]
    fn kernel_counters_change_between_readings_of_one_open_file() {
        let mut files = Files::new(Path::new("/"), "/proc/self/io", 1.0);
        let first = read(&mut files).unwrap();
        let second = read(&mut files).unwrap();
        assert_ne!(first, second);
    }
}
