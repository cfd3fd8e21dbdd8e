//! The deck that determines a customer's next transaction: cards make the mix exact, not only expected.

use crate::dice::Dice;

/// The types of transaction, in the order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    BrokerVolume,
    CustomerPosition,
    DataMaintenance,
    MarketFeed,
    MarketWatch,
    SecurityDetail,
    TradeLookup,
    TradeOrder,
    TradeResult,
    TradeStatus,
    TradeUpdate,
}

impl Kind {
    pub const ALL: [Kind; 11] = [
        Kind::BrokerVolume,
        Kind::CustomerPosition,
        Kind::DataMaintenance,
        Kind::MarketFeed,
        Kind::MarketWatch,
        Kind::SecurityDetail,
        Kind::TradeLookup,
        Kind::TradeOrder,
        Kind::TradeResult,
        Kind::TradeStatus,
        Kind::TradeUpdate,
    ];

    /// Name of the script.
    pub fn name(self) -> &'static str {
        match self {
            Self::BrokerVolume => "broker_volume",
            Self::CustomerPosition => "customer_position",
            Self::DataMaintenance => "data_maintenance",
            Self::MarketFeed => "market_feed",
            Self::MarketWatch => "market_watch",
            Self::SecurityDetail => "security_detail",
            Self::TradeLookup => "trade_lookup",
            Self::TradeOrder => "trade_order",
            Self::TradeResult => "trade_result",
            Self::TradeStatus => "trade_status",
            Self::TradeUpdate => "trade_update",
        }
    }

    /// Number of cards in a full deck; 0 if customers never request it.
    pub fn cards(self) -> usize {
        match self {
            Self::TradeStatus => 190,
            Self::MarketWatch => 180,
            Self::SecurityDetail => 140,
            Self::CustomerPosition => 130,
            Self::TradeOrder => 101,
            Self::TradeLookup => 80,
            Self::BrokerVolume => 49,
            Self::TradeUpdate => 20,
            Self::DataMaintenance | Self::MarketFeed | Self::TradeResult => 0,
        }
    }
}

/// A deck from which cards are drawn until none is left; then all are shuffled again.
#[derive(Debug)]
pub struct Deck {
    cards: Vec<Kind>,
    drawn: usize,
    dice: Dice,
}

impl Deck {
    /// Creates a deck of the available transactions. If some are missing, the others keep their proportions.
    pub fn new(there: impl Fn(Kind) -> bool, dice: Dice) -> Self {
        let kept = Kind::ALL.into_iter().filter(|kind| there(*kind));
        let cards: Vec<Kind> = kept.flat_map(|kind| std::iter::repeat_n(kind, kind.cards())).collect();
        Self { drawn: cards.len(), cards, dice }
    }

    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    pub fn draw(&mut self) -> Kind {
        if self.drawn == self.cards.len() {
            self.shuffle();
        }
        self.drawn += 1;
        self.cards[self.drawn - 1]
    }

    /// Shuffles the cards (Fisher–Yates): every order is equally likely.
    fn shuffle(&mut self) {
        for last in (1..self.cards.len()).rev() {
            self.cards.swap(last, self.dice.below(last as u64 + 1) as usize);
        }
        self.drawn = 0;
    }
}
