//! Counts the commits in a session's replies as the server counts them (`xact_commit` in `pg_stat_database`).

use super::backend::TransactionStatus;

/// State of a session since the last ReadyForQuery.
#[derive(Debug, Default)]
pub struct Commits {
    /// Whether a command has completed.
    ran: bool,
    /// Whether the last command ended the transaction.
    ended: bool,
    /// Whether a transaction block was started and not ended.
    begun: bool,
    failed: bool,
}

impl Commits {
    /// Handles a CommandComplete. Returns how many commits it reports.
    #[inline]
    pub fn completed(&mut self, body: &[u8]) -> u64 {
        let commit = body.starts_with(b"COMMIT\0");
        self.ran = true;
        self.ended = commit || body.starts_with(b"ROLLBACK");
        let left = self.ended || body.starts_with(b"PREPARE TRANSACTION");
        self.begun = !left && (self.begun || matches!(body, b"BEGIN\0" | b"START TRANSACTION\0"));
        u64::from(commit)
    }

    /// Handles an EmptyQueryResponse.
    pub fn completed_empty(&mut self) {
        self.ran = true;
    }

    /// Handles an ErrorResponse.
    pub fn failed(&mut self) {
        self.failed = true;
    }

    /// Whether ReadyForQuery reports no transaction block although one was started.
    #[inline]
    pub fn contradict(&self, status: TransactionStatus) -> bool {
        self.begun && status == TransactionStatus::Idle
    }

    /// Handles a ReadyForQuery. Returns 1 if autocommit committed a command outside a transaction block, otherwise 0.
    #[inline]
    pub fn ready(&mut self, status: TransactionStatus) -> u64 {
        let Self { ran, ended, failed, .. } = std::mem::take(self);
        u64::from(status == TransactionStatus::Idle && ran && !ended && !failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_a_block_that_ended_so_or_a_command_outside_of_one() {
        let count = |tags: &[&[u8]], failed: bool, status| {
            let mut commits = Commits::default();
            let reported: u64 = tags.iter().map(|tag| commits.completed(tag)).sum();
            if failed {
                commits.failed();
            }
            reported + commits.ready(status)
        };
        assert_eq!(count(&[b"SELECT 1\0"], false, TransactionStatus::Idle), 1);
        assert_eq!(count(&[b"SELECT 1\0", b"SELECT 1\0"], false, TransactionStatus::Idle), 1);
        assert_eq!(count(&[b"BEGIN\0", b"SELECT 1\0", b"COMMIT\0"], false, TransactionStatus::Idle), 1);
        assert_eq!(count(&[b"ROLLBACK\0"], false, TransactionStatus::Idle), 0);
        assert_eq!(count(&[b"SELECT 1\0"], true, TransactionStatus::Idle), 0);
        assert_eq!(count(&[b"BEGIN\0"], false, TransactionStatus::InTransaction), 0);
        assert_eq!(count(&[], false, TransactionStatus::Idle), 0);
    }
}
