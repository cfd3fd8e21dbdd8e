//! Which transaction a customer asks for next: cards of a deck, so that shares are exact and not only expected.

use crate::dice::Dice;

/// In the order of their names.
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

    /// What its script is called.
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

    /// Cards of a full deck; 0: customers never ask for it.
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

/// Cards are drawn to the last one; then all are shuffled again.
#[derive(Debug)]
pub struct Deck {
    cards: Vec<Kind>,
    drawn: usize,
    dice: Dice,
}

impl Deck {
    /// Of the transactions that there are: without some, the others keep their proportions.
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

    /// Fisher and Yates's: each order is equally likely.
    fn shuffle(&mut self) {
        for last in (1..self.cards.len()).rev() {
            self.cards.swap(last, self.dice.below(last as u64 + 1) as usize);
        }
        self.drawn = 0;
    }
}
