//! Decks of cards. With a deck, the mix of transactions is exact after every round of cards, and not only on average.

use crate::row_rng::RowRng;

/// A deck from which cards are drawn until none is left. Then all cards are shuffled again.
#[derive(Debug)]
pub struct Deck<K> {
    cards: Vec<K>,
    drawn: usize,
    rng: RowRng,
}

impl<K: Copy> Deck<K> {
    /// Creates a deck with this number of cards of each kind.
    pub fn new(kinds: impl IntoIterator<Item = (K, usize)>, rng: RowRng) -> Self {
        let cards: Vec<K> = kinds.into_iter().flat_map(|(kind, cards)| std::iter::repeat_n(kind, cards)).collect();
        Self { drawn: cards.len(), cards, rng }
    }

    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    pub fn draw(&mut self) -> K {
        if self.drawn == self.cards.len() {
            self.shuffle();
        }
        self.drawn += 1;
        self.cards[self.drawn - 1]
    }

    /// Shuffles the cards (Fisher–Yates), so that every order is equally likely.
    fn shuffle(&mut self) {
        for last in (1..self.cards.len()).rev() {
            self.cards.swap(last, self.rng.below(last as u64 + 1) as usize);
        }
        self.drawn = 0;
    }
}
