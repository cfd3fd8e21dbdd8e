//! Memory mapped directly from the kernel, with or without huge pages, and freed immediately when dropped.

use ironbench_core::{Error, Result};

/// Whether the kernel may use huge pages for the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Huge {
    Yes,
    No,
    /// The kernel uses the setting of the machine.
    Default,
}

/// Anonymous private memory of 64-bit words, which are initially zero. A page is allocated when it is first accessed.
pub struct Region {
    start: *mut u64,
    bytes: usize,
}

// SAFETY: the region has a single owner, like a Box.
unsafe impl Send for Region {}

impl Region {
    pub fn new(bytes: usize, huge: Huge) -> Result<Self> {
        let bytes = bytes / 8 * 8;
        // SAFETY: this is a new mapping, used only here.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes.max(8),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            let cause = std::io::Error::last_os_error();
            return Err(Error::failure("memory", format!("cannot allocate {bytes} bytes: {cause}")));
        }
        let region = Self { start: start.cast(), bytes };
        let advice = match huge {
            Huge::Yes => libc::MADV_HUGEPAGE,
            Huge::No => libc::MADV_NOHUGEPAGE,
            Huge::Default => return Ok(region),
        };
        // SAFETY: this value owns the mapping. Kernels without huge pages reject the advice. The actual pages are
        // checked later.
        unsafe { libc::madvise(start, bytes.max(8), advice) };
        Ok(region)
    }

    pub fn words(&self) -> &[u64] {
        // SAFETY: the memory is mapped, aligned to a page, and shared only while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes / 8) }
    }

    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: the memory is mapped and aligned to a page, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes / 8) }
    }

    /// Returns how many bytes are in huge pages, from /proc/self/smaps. Returns None if the kernel does not report it.
    pub fn huge_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let (start, end) = (self.start as u64, self.start as u64 + self.bytes as u64);
        let (mut ours, mut found) = (false, None);
        for line in text.lines() {
            if let Some((from, to)) = mapping(line) {
                ours = from < end && to > start;
            } else if ours && let Some(rest) = line.strip_prefix("AnonHugePages:") {
                let kib: u64 = rest.trim().trim_end_matches(" kB").trim().parse().ok()?;
                found = Some(found.unwrap_or(0) + kib * 1024);
            }
        }
        // The kernel may have merged this mapping with adjacent ones. Therefore the result is limited to the size of
        // this mapping.
        found.map(|bytes| bytes.min(self.bytes as u64))
    }

    /// Returns the number of pages on each NUMA node, in the format of /proc/self/numa_maps (`N0=262144`). Returns None
    /// if the file is missing.
    pub fn nodes(&self) -> Option<String> {
        let text = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
        let start = self.start as u64;
        let lines =
            text.lines().filter_map(|line| Some((u64::from_str_radix(line.split(' ').next()?, 16).ok()?, line)));
        let (_, line) = lines.filter(|(at, _)| *at <= start).max_by_key(|(at, _)| *at)?;
        let nodes: Vec<_> = line.split(' ').filter(|word| is_node(word)).collect();
        (!nodes.is_empty()).then(|| nodes.join(" "))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the memory with this length, and it has not been unmapped since.
        unsafe { libc::munmap(self.start.cast(), self.bytes.max(8)) };
    }
}

/// Returns the start and end of a mapping if the line of smaps is the first line of a mapping. Returns None for other
/// lines.
fn mapping(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

fn is_node(word: &str) -> bool {
    word.strip_prefix('N').and_then(|rest| rest.split_once('=')).is_some_and(|(node, _)| node.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_as_zeros_and_keeps_what_is_written() {
        let mut region = Region::new(1 << 20, Huge::No).unwrap();
        assert!(region.words().iter().all(|&word| word == 0));
        region.words_mut()[77] = 5;
        assert_eq!(region.words()[77], 5);
        assert_eq!(region.words().len(), (1 << 20) / 8);
    }

    #[test]
    fn memory_that_may_not_be_huge_is_not() {
        let mut region = Region::new(8 << 20, Huge::No).unwrap();
        region.words_mut().fill(1);
        assert!(region.huge_bytes().is_none_or(|bytes| bytes == 0));
    }

    #[test]
    fn lines_of_smaps_and_numa_maps_are_told_apart() {
        assert_eq!(mapping("7f00-7f80 rw-p 00000000 00:00 0"), Some((0x7f00, 0x7f80)));
        assert_eq!(mapping("AnonHugePages:      0 kB"), None);
        assert!(is_node("N0=262144") && !is_node("Nx=1") && !is_node("anon=5"));
    }
}
