use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_client_has_one_thread_and_threads_differ_by_at_most_one(clients in 1usize..10_000, threads in 1usize..200) {
        let client_ranges = client_ranges(clients, threads);
        prop_assert_eq!(client_ranges.len(), threads.min(clients));
        prop_assert_eq!(client_ranges.iter().map(Range::len).sum::<usize>(), clients);
        prop_assert!(client_ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        let sizes: Vec<_> = client_ranges.iter().map(Range::len).collect();
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
    }

    #[test]
    fn clients_of_all_threads_have_ranks_that_threads_take_in_turn(clients in 1usize..300, threads in 1usize..20) {
        let client_ranges = client_ranges(clients, threads);
        let of = |thread: usize| (0..client_ranges[thread].len()).map(|place| rank(&client_ranges, thread, place)).collect::<Vec<_>>();
        let each: Vec<_> = (0..client_ranges.len()).map(of).collect();
        let mut all = each.concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..clients).collect::<Vec<_>>());
        for active in 0..clients {
            let counts: Vec<_> = each.iter().map(|ranks| ranks.iter().filter(|&&one| one < active).count()).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }
}
