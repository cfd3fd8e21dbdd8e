//! How evenly the transactions are distributed over the clients.

use serde::{Deserialize, Serialize};

use super::clock;

/// The measured transactions of one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientWork {
    /// Number of transactions that succeeded inside the window.
    pub transactions: u64,
    /// Time of these transactions inside the window.
    pub busy_ns: u64,
}

/// Means and standard deviations over all clients, as in sysbench's "threads fairness". The standard deviations describe
/// exactly these clients, so they are divided by the number of clients and not by one less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PerClient {
    pub clients: usize,
    pub transactions_mean: f64,
    pub transactions_stdev: f64,
    pub busy_mean_s: f64,
    pub busy_stdev_s: f64,
}

impl PerClient {
    /// Returns the distribution over these clients, or None if there is no client.
    pub fn of(works: &[ClientWork]) -> Option<Self> {
        let spread = |value: fn(&ClientWork) -> f64| {
            let values = || works.iter().map(value);
            let mean = values().sum::<f64>() / works.len() as f64;
            let squares: f64 = values().map(|one| (one - mean).powi(2)).sum();
            (mean, (squares / works.len() as f64).sqrt())
        };
        let (transactions_mean, transactions_stdev) = spread(|one| one.transactions as f64);
        let (busy_mean_s, busy_stdev_s) = spread(|one| clock::to_seconds(one.busy_ns));
        let all = Self { clients: works.len(), transactions_mean, transactions_stdev, busy_mean_s, busy_stdev_s };
        (!works.is_empty()).then_some(all)
    }

    /// Returns the distribution over the clients of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (ours, theirs) = (self.clients as f64, other.clients as f64);
        let (transactions_mean, transactions_stdev) = pooled(
            (ours, self.transactions_mean, self.transactions_stdev),
            (theirs, other.transactions_mean, other.transactions_stdev),
        );
        let (busy_mean_s, busy_stdev_s) =
            pooled((ours, self.busy_mean_s, self.busy_stdev_s), (theirs, other.busy_mean_s, other.busy_stdev_s));
        let clients = self.clients + other.clients;
        Self { clients, transactions_mean, transactions_stdev, busy_mean_s, busy_stdev_s }
    }
}

/// Returns the mean and the standard deviation of two sets together. Each set is its size, its mean and its standard
/// deviation; at least one set is not empty. The variance of all values is the variance within each set plus the
/// variance between the means of the sets.
pub fn pooled(one: (f64, f64, f64), other: (f64, f64, f64)) -> (f64, f64) {
    let all = one.0 + other.0;
    let mean = (one.0 * one.1 + other.0 * other.1) / all;
    let squares = |(count, own_mean, stdev): (f64, f64, f64)| count * (stdev.powi(2) + (own_mean - mean).powi(2));
    (mean, ((squares(one) + squares(other)) / all).sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_together_are_distributed_like_all_their_clients(
            counts in prop::collection::vec(0u64..1000, 2..20), cut in 1usize..19,
        ) {
            let works: Vec<_> =
                counts.iter().map(|&n| ClientWork { transactions: n, busy_ns: n * 1_000_000 }).collect();
            let (left, right) = works.split_at(cut.min(works.len() - 1));
            let (whole, parts) = (PerClient::of(&works).unwrap(), PerClient::of(left).unwrap().plus(PerClient::of(right).unwrap()));
            prop_assert_eq!(whole.clients, parts.clients);
            prop_assert!((whole.transactions_mean - parts.transactions_mean).abs() < 1e-6);
            prop_assert!((whole.transactions_stdev - parts.transactions_stdev).abs() < 1e-6);
            prop_assert!((whole.busy_mean_s * 1000.0 - whole.transactions_mean).abs() < 1e-6);
            prop_assert!((whole.busy_stdev_s - parts.busy_stdev_s).abs() < 1e-6);
        }
    }

    #[test]
    fn no_client_has_no_distribution() {
        assert_eq!(PerClient::of(&[]), None);
    }
}
