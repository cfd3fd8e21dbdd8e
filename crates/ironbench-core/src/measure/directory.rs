//! Result codes of an LDAP directory, and the number of entries that its searches returned.

use std::collections::BTreeMap;

/// Counts of a directory's final answers, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    pub success: u64,
    /// Searches that were successful. A search also counts if it returned as many entries as the size limit that it
    /// requested.
    pub searches: u64,
    /// The part of `searches` that returned no entry.
    pub empty_searches: u64,
    /// Entries returned by all searches.
    pub entries: u64,
    pub size_limited: u64,
    pub compare_true: u64,
    pub compare_false: u64,
}

impl Answers {
    /// Counts a search that succeeded and returned this many entries.
    #[inline]
    pub fn search(&mut self, entries: u64) {
        self.searches += 1;
        self.empty_searches += u64::from(entries == 0);
        self.entries += entries;
    }

    /// Returns the counts that are not zero, by name. The result is empty if no directory answered.
    pub fn figures(&self) -> BTreeMap<String, f64> {
        let figures = [
            ("directory_success", self.success),
            ("directory_searches", self.searches),
            ("directory_empty_searches", self.empty_searches),
            ("directory_entries", self.entries),
            ("directory_size_limited", self.size_limited),
            ("directory_compare_true", self.compare_true),
            ("directory_compare_false", self.compare_false),
        ];
        let counted = figures.into_iter().filter(|(_, count)| *count > 0);
        counted.map(|(name, count)| (name.to_owned(), count as f64)).collect()
    }

    pub fn plus(self, other: Self) -> Self {
        self.each(other, |mine, theirs| mine + theirs)
    }

    pub fn since(self, earlier: Self) -> Self {
        self.each(earlier, |now, then| now - then)
    }

    fn each(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            success: of(self.success, other.success),
            searches: of(self.searches, other.searches),
            empty_searches: of(self.empty_searches, other.empty_searches),
            entries: of(self.entries, other.entries),
            size_limited: of(self.size_limited, other.size_limited),
            compare_true: of(self.compare_true, other.compare_true),
            compare_false: of(self.compare_false, other.compare_false),
        }
    }
}
