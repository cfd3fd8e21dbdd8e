//! The types of transaction, and the number of cards of each type in a deck. A card drawn from the deck determines a
//! customer's next transaction.

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

    /// Returns the name of the type's script.
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

    /// Returns the number of the type's cards in a full deck. Returns 0 if customers never request the type.
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
