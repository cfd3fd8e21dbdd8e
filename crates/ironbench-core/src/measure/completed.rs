//! The number of transactions that this process has completed. Other threads can read this number at any time, so that
//! they can relate their own measurements of short periods to transactions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The counters of running threads, and the sum of the counters of threads that have ended.
static COUNTERS: Mutex<(Vec<Arc<Counter>>, u64)> = Mutex::new((Vec::new(), 0));

/// A counter on its own cache lines, so that counting threads do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// Counts the transactions of one thread. Dropping the value keeps the count.
#[derive(Debug)]
pub struct Completed(Arc<Counter>);

impl Default for Completed {
    fn default() -> Self {
        let counter = Arc::<Counter>::default();
        COUNTERS.lock().unwrap_or_else(PoisonError::into_inner).0.push(Arc::clone(&counter));
        Self(counter)
    }
}

impl Completed {
    /// Counts one transaction.
    #[inline]
    pub fn add(&mut self) {
        // Only this thread writes the counter, so no atomic addition is necessary.
        self.0.0.store(self.0.0.load(Relaxed) + 1, Relaxed);
    }
}

impl Drop for Completed {
    fn drop(&mut self) {
        let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        counters.0.retain(|one| !Arc::ptr_eq(one, &self.0));
        counters.1 += self.0.0.load(Relaxed);
    }
}

/// Returns the number of transactions that all threads have completed since the process started.
pub fn completed() -> u64 {
    let counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    counters.1 + counters.0.iter().map(|one| one.0.load(Relaxed)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_count_while_their_thread_runs_and_after_it_has_ended() {
        let before = completed();
        let mut own = Completed::default();
        (0..1000).for_each(|_| own.add());
        assert!(completed() >= before + 1000);
        drop(own);
        assert!(completed() >= before + 1000);
    }
}
