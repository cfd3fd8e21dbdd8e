//! The executable mappings of a process. With them, an address is converted to a file and an offset.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Index of a mapped file in `Files`.
pub type FileId = u32;

/// Paths of mapped files.
#[derive(Default)]
pub struct Files {
    paths: Vec<String>,
    ids: std::collections::HashMap<String, FileId>,
}

impl Files {
    pub fn id(&mut self, path: &str) -> FileId {
        if let Some(&id) = self.ids.get(path) {
            return id;
        }
        let id = self.paths.len() as FileId;
        self.paths.push(path.to_owned());
        self.ids.insert(path.to_owned(), id);
        id
    }

    pub fn path(&self, id: FileId) -> &str {
        &self.paths[id as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    end: u64,
    offset: u64,
    file: FileId,
}

/// The address space of a process. Forked processes share it until one of them adds a mapping.
#[derive(Debug)]
pub struct Space {
    /// ID of the current mappings. The ID changes when a mapping is added.
    id: u64,
    mappings: BTreeMap<u64, Mapping>,
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}

impl Default for Space {
    fn default() -> Self {
        Self { id: next_id(), mappings: BTreeMap::new() }
    }
}

impl Clone for Space {
    fn clone(&self) -> Self {
        Self { id: next_id(), mappings: self.mappings.clone() }
    }
}

impl PartialEq for Space {
    fn eq(&self, other: &Self) -> bool {
        self.mappings == other.mappings
    }
}

impl Space {
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Adds a mapping. The new mapping replaces older mappings at the same addresses, because the kernel does not
    /// report when a mapping is removed.
    pub fn map(&mut self, start: u64, length: u64, offset: u64, file: FileId) {
        let end = start.saturating_add(length);
        let covered: Vec<_> = self.mappings.range(..end).rev().map(|(&at, &old)| (at, old)).collect();
        for (at, old) in covered.into_iter().take_while(|(_, old)| old.end > start) {
            self.mappings.remove(&at);
            if at < start {
                self.mappings.insert(at, Mapping { end: start, ..old });
            }
            if old.end > end {
                self.mappings.insert(end, Mapping { offset: old.offset + (end - at), ..old });
            }
        }
        self.mappings.insert(start, Mapping { end, offset, file });
        self.id = next_id();
    }

    /// Returns the file at an address, and the offset in the file.
    pub fn find(&self, address: u64) -> Option<(FileId, u64)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then(|| (mapping.file, address - start + mapping.offset))
    }

    /// Returns start, end, offset in the file, and file of each mapping.
    pub fn mappings(&self) -> impl Iterator<Item = (u64, u64, u64, FileId)> {
        self.mappings.iter().map(|(&start, mapping)| (start, mapping.end, mapping.offset, mapping.file))
    }

    /// Parses `/proc/PID/maps` (proc_pid_maps(5)).
    pub fn of_maps(maps: &str, files: &mut Files) -> Self {
        let mut space = Self::default();
        for line in maps.lines() {
            let mut fields = line.splitn(6, ' ');
            let mut next = || fields.next().unwrap_or_default();
            let (range, rights, offset) = (next(), next(), next());
            let (_device, _inode, path) = (next(), next(), next().trim_start());
            if rights.as_bytes().get(2) != Some(&b'x') {
                continue;
            }
            let number = |text| u64::from_str_radix(text, 16).ok();
            let Some((start, end)) = range.split_once('-') else { continue };
            if let (Some(start), Some(end), Some(offset)) = (number(start), number(end), number(offset)) {
                space.map(start, end.saturating_sub(start), offset, files.id(path));
            }
        }
        space
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_replaces_the_part_that_it_covers() {
        let mut space = Space::default();
        space.map(0x1000, 0x4000, 0, 1);
        space.map(0x2000, 0x1000, 0x500, 2);
        assert_eq!(space.find(0xfff), None);
        assert_eq!(space.find(0x1fff), Some((1, 0xfff)));
        assert_eq!(space.find(0x2010), Some((2, 0x510)));
        assert_eq!(space.find(0x3000), Some((1, 0x2000)));
        assert_eq!(space.find(0x4fff), Some((1, 0x3fff)));
        assert_eq!(space.find(0x5000), None);
    }

    #[test]
    fn maps_of_proc_contain_names_with_spaces_and_only_executable_parts_count() {
        let maps = "55d0-55e0 r--p 00000000 08:01 123    /usr/bin/a\n\
                    55e0-55f0 r-xp 00000010 08:01 123    /opt/my db/a (deleted)\n\
                    7f00-7f10 r-xp 00000000 00:00 0 \n";
        let mut files = Files::default();
        let space = Space::of_maps(maps, &mut files);
        assert_eq!(space.find(0x55d0), None);
        let (file, offset) = space.find(0x55e4).unwrap();
        assert_eq!((files.path(file), offset), ("/opt/my db/a (deleted)", 0x14));
        let (file, _) = space.find(0x7f00).unwrap();
        assert_eq!(files.path(file), "");
    }
}
