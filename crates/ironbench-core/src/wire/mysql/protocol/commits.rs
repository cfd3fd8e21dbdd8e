//! Counts the commits in a session's replies, and tracks whether a transaction is open.

use super::backend::Done;

#[derive(Debug)]
pub struct Commits {
    /// Whether the session has an open transaction, as of the last reply.
    in_transaction: bool,
    /// Whether a failed statement may have opened a transaction. This is possible unless the session is known to use
    /// autocommit. Error packets do not contain the status flags that would show it.
    opens_by_itself: bool,
    /// Whether the command ends a transaction without a commit.
    rolls_back: bool,
    /// Whether a transaction has ended since the command was sent.
    ended: bool,
}

impl Default for Commits {
    fn default() -> Self {
        Self { in_transaction: false, opens_by_itself: true, rolls_back: false, ended: false }
    }
}

impl Commits {
    /// Prepares for the reply to a command. `rolls_back` is true if the command ends a transaction without a commit.
    #[inline]
    pub fn expect(&mut self, rolls_back: bool) {
        (self.rolls_back, self.ended) = (rolls_back, false);
    }

    /// Handles the end of a statement. Returns how many commits it reports.
    #[inline]
    pub fn done(&mut self, done: Done) -> u64 {
        let before = std::mem::replace(&mut self.in_transaction, done.is_in_transaction());
        self.opens_by_itself = !done.commits_by_itself();
        if before && !self.in_transaction {
            self.ended = true;
            return u64::from(!self.rolls_back);
        }
        // Outside a transaction, autocommit has committed the command.
        u64::from(!done.has_more() && !self.in_transaction && !self.ended && !self.rolls_back)
    }

    pub fn is_in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Whether a transaction may be open after a failed command. If so, it must be rolled back.
    pub fn may_be_in_transaction(&self) -> bool {
        self.in_transaction || self.opens_by_itself
    }
}

/// Whether one of the statements is a `ROLLBACK` of the transaction (not `ROLLBACK TO` a savepoint).
pub fn is_rollback(text: &str) -> bool {
    text.split(';').any(|statement| {
        let mut words = statement.split_whitespace();
        words.next().is_some_and(|first| first.eq_ignore_ascii_case("rollback"))
            && !words.any(|word| word.eq_ignore_ascii_case("to"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::status::{AUTOCOMMIT, IN_TRANSACTION, MORE_RESULTS};
    use super::*;

    #[test]
    fn only_what_ends_the_transaction_is_a_rollback() {
        assert!(is_rollback("rollback;") && is_rollback("begin; ROLLBACK WORK;"));
        assert!(!is_rollback("ROLLBACK TO a;") && !is_rollback("rollback to savepoint a") && !is_rollback("SELECT 1"));
    }

    #[test]
    fn a_commit_ends_a_transaction_or_a_command_outside_of_one() {
        let count = |rolls_back: bool, before: u16, replies: &[u16]| {
            let mut commits = Commits::default();
            commits.done(Done { status: before, ..Done::default() });
            commits.expect(rolls_back);
            replies.iter().map(|status| commits.done(Done { status: *status, ..Done::default() })).sum::<u64>()
        };
        assert_eq!(count(false, AUTOCOMMIT, &[AUTOCOMMIT]), 1);
        assert_eq!(count(false, AUTOCOMMIT, &[AUTOCOMMIT | IN_TRANSACTION]), 0);
        assert_eq!(count(false, IN_TRANSACTION, &[AUTOCOMMIT]), 1);
        assert_eq!(count(true, IN_TRANSACTION, &[AUTOCOMMIT]), 0);
        // `begin; …; commit` in one command.
        let open = IN_TRANSACTION | MORE_RESULTS;
        assert_eq!(count(false, AUTOCOMMIT, &[open, open, AUTOCOMMIT]), 1);
    }
}
