//! A lottery in memory. An array contains the sold tickets in order of their numbers, and draws search in it.
//!
//! A quarter of the numbers is sold. The ticket at index i has the number 4i + h(i), where h is a two-bit hash. The
//! numbers therefore look random and must be read from memory, but a formula also determines whether a number is sold.

use ironbench_core::SplitMix64;

/// Ratio of numbers to tickets sold.
pub const GAP: u64 = 4;

/// Returns the number of the ticket at an index, in closed form. The contents of memory are compared with it.
#[inline(always)]
pub fn number(place: u64) -> u64 {
    place * GAP + (SplitMix64::mixed(place) & (GAP - 1))
}

/// Whether a number was sold, according to the closed form.
pub fn is_sold(drawn: u64, tickets: u64) -> bool {
    drawn / GAP < tickets && number(drawn / GAP) == drawn
}

/// Draws a number from 0 to 4 × `tickets` − 1, uniformly except for a bias of 2⁻⁴⁰.
#[inline(always)]
pub fn draw(random: &mut SplitMix64, tickets: u64) -> u64 {
    random.below(tickets * GAP)
}

/// Writes the tickets from index `first` on.
pub fn fill(tickets: &mut [u64], first: u64) {
    for (place, ticket) in tickets.iter_mut().enumerate() {
        *ticket = number(first + place as u64);
    }
}

/// Makes `draws` draws and counts the winners. Each draw is a binary search through memory.
///
/// The search has no branches that the processor could predict. As in a tree, every step therefore waits for memory.
/// With 1 GB of tickets, a search takes 27 steps. The tickets of the first steps stay in the CPU's caches.
#[inline(never)]
pub fn search(tickets: &[u64], random: &mut SplitMix64, draws: u64) -> u64 {
    let count = tickets.len() as u64;
    let mut winners = 0;
    for _ in 0..draws {
        let drawn = draw(random, count);
        let (mut base, mut rest) = (0_usize, tickets.len());
        while rest > 1 {
            let half = rest / 2;
            // SAFETY: `base + half < base + rest ≤ tickets.len()` holds.
            let middle = unsafe { *tickets.get_unchecked(base + half) };
            base = if middle <= drawn { base + half } else { base };
            rest -= half;
        }
        winners += u64::from(tickets[base] == drawn);
    }
    winners
}

/// Counts the winners of the same draws with the closed form.
pub fn expected(tickets: u64, random: &mut SplitMix64, draws: u64) -> u64 {
    (0..draws).filter(|_| is_sold(draw(random, tickets), tickets)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sold(count: usize) -> Vec<u64> {
        let mut tickets = vec![0; count];
        fill(&mut tickets, 0);
        tickets
    }

    #[test]
    fn tickets_are_in_order_and_one_number_of_four_is_sold() {
        let tickets = sold(10_000);
        assert!(tickets.windows(2).all(|pair| pair[0] < pair[1]));
        for (place, ticket) in tickets.iter().enumerate() {
            assert_eq!(ticket / GAP, place as u64);
        }
        assert_eq!((0..40_000).filter(|&one| is_sold(one, 10_000)).count(), 10_000);
    }

    #[test]
    fn the_search_finds_what_the_closed_form_says() {
        for count in [1, 2, 3, 1000, 4097] {
            let tickets = sold(count);
            let (mut one, mut other) = (SplitMix64::new(7), SplitMix64::new(7));
            let found = search(&tickets, &mut one, 20_000);
            assert_eq!(found, expected(count as u64, &mut other, 20_000), "{count} tickets");
            assert_eq!(one, other);
        }
    }

    #[test]
    fn about_a_quarter_of_the_draws_win() {
        let winners = expected(1_000_000, &mut SplitMix64::new(1), 100_000);
        assert!((24_000..26_000).contains(&winners), "{winners}");
    }

    #[test]
    fn a_ticket_that_memory_lost_is_missed() {
        let mut tickets = sold(64);
        let right = search(&tickets, &mut SplitMix64::new(3), 10_000);
        tickets[20] ^= 1;
        assert_ne!(search(&tickets, &mut SplitMix64::new(3), 10_000), right);
    }

    #[test]
    fn a_part_filled_later_continues_the_numbers() {
        let mut tickets = vec![0; 100];
        let (first, rest) = tickets.split_at_mut(37);
        fill(first, 0);
        fill(rest, 37);
        assert_eq!(tickets, sold(100));
    }
}
