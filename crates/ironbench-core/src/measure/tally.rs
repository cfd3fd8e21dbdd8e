//! What a driving thread has counted since its clients connected. Only ever grows; a window is the difference of two.

use std::collections::BTreeMap;

/// Counts of one kind of transaction (for scripts: one script).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions that ended well.
    pub transactions: u64,
    /// Transactions given up after an error.
    pub failed: u64,
    /// Attempts that ended in a serialization failure or deadlock and were repeated.
    pub retries: u64,
    /// Transactions that ended, well or not, and had been repeated at least once.
    pub retried: u64,
}

impl Counts {
    pub fn plus(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            failed: self.failed + other.failed,
            retries: self.retries + other.retries,
            retried: self.retried + other.retried,
        }
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            transactions: self.transactions - earlier.transactions,
            failed: self.failed - earlier.failed,
            retries: self.retries - earlier.retries,
            retried: self.retried - earlier.retried,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub kinds: Vec<Counts>,
    /// Commits of the engine: a script of three statements without BEGIN makes three.
    pub commits: u64,
    /// Errors by SQLSTATE (or a class of ours), repeated attempts included.
    pub errors: BTreeMap<String, u64>,
    /// The first message of each class.
    pub messages: BTreeMap<String, String>,
}

impl Tally {
    pub fn new(kinds: usize) -> Self {
        Self { kinds: vec![Counts::default(); kinds], ..Self::default() }
    }

    pub fn error(&mut self, class: &str, message: &str) {
        match self.errors.get_mut(class) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(class.to_owned(), 1);
                self.messages.insert(class.to_owned(), message.to_owned());
            }
        }
    }

    pub fn total(&self) -> Counts {
        self.kinds.iter().fold(Counts::default(), |sum, kind| sum.plus(*kind))
    }

    pub fn merge(&mut self, other: &Self) {
        self.kinds.resize(self.kinds.len().max(other.kinds.len()), Counts::default());
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            *mine = mine.plus(*theirs);
        }
        self.commits += other.commits;
        for (class, count) in &other.errors {
            *self.errors.entry(class.clone()).or_default() += count;
        }
        for (class, message) in &other.messages {
            self.messages.entry(class.clone()).or_insert_with(|| message.clone());
        }
    }

    /// What was counted after `earlier`, an older state of the same tally.
    pub fn since(&self, earlier: &Self) -> Self {
        let errors = self.errors.iter().filter_map(|(class, &count)| {
            let new = count - earlier.errors.get(class).copied().unwrap_or(0);
            (new > 0).then(|| (class.clone(), new))
        });
        let errors: BTreeMap<_, _> = errors.collect();
        let messages = self.messages.iter().filter(|(class, _)| errors.contains_key(*class));
        Self {
            kinds: self.kinds.iter().zip(&earlier.kinds).map(|(now, then)| now.since(*then)).collect(),
            commits: self.commits - earlier.commits,
            messages: messages.map(|(class, message)| (class.clone(), message.clone())).collect(),
            errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_difference_of_two_states() {
        let mut tally = Tally::new(2);
        tally.kinds[0].transactions = 5;
        tally.error("40001", "first");
        let before = tally.clone();
        tally.kinds[1].transactions = 3;
        tally.error("40001", "second");
        tally.error("42P01", "no table");
        let window = tally.since(&before);
        assert_eq!(window.total().transactions, 3);
        assert_eq!(window.errors, BTreeMap::from([("40001".into(), 1), ("42P01".into(), 1)]));
        assert_eq!(window.messages["40001"], "first");
        let mut sum = before;
        sum.merge(&window);
        assert_eq!(sum, tally);
    }
}
