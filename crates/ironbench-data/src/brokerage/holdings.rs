//! Holdings of accounts, and how each trade changes them.

use std::collections::VecDeque;

use super::population::{MAX_ACCOUNTS, MAX_HELD};
use super::trades::Trade;

/// What remains of the securities of one trade. A negative quantity is a short sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// The trade that created the holding.
    pub trade: u64,
    pub completed_ms: i64,
    pub price_cents: i64,
    pub quantity: i64,
}

/// A change of one holding by a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub holding: u64,
    pub before: i64,
    pub after: i64,
}

/// Holdings of a group of traders. There is one list, oldest first, for each trader, account and security.
pub struct Holdings {
    positions: Vec<VecDeque<Holding>>,
}

impl Holdings {
    pub fn new(traders: usize) -> Self {
        Self { positions: vec![VecDeque::new(); traders * (MAX_ACCOUNTS * MAX_HELD) as usize] }
    }

    pub fn of(&self, trader: usize, account: usize, security_index: usize) -> &VecDeque<Holding> {
        &self.positions[index(trader, account, security_index)]
    }

    /// Applies a trade, appends its changes to `steps`, and returns the gain. A sale reduces earlier purchases, and a
    /// purchase reduces earlier short sales. If the trade is LIFO, it reduces the newest holding first, otherwise the
    /// oldest. If some quantity of the trade is left over, it becomes a new holding.
    pub fn apply(&mut self, number: u64, trader: usize, trade: &Trade, steps: &mut Vec<Step>) -> i64 {
        let position = &mut self.positions[index(trader, trade.account, trade.security_index)];
        let mut left = trade.signed();
        let mut gain = 0;
        while left != 0 {
            let met = if trade.lifo { position.back_mut() } else { position.front_mut() };
            let Some(holding) = met.filter(|holding| holding.quantity.signum() != left.signum()) else { break };
            let before = holding.quantity;
            let taken = left.abs().min(before.abs()) * left.signum();
            holding.quantity += taken;
            left -= taken;
            gain += -taken * (trade.price_cents - holding.price_cents);
            steps.push(Step { holding: holding.trade, before, after: holding.quantity });
            if holding.quantity == 0 {
                if trade.lifo {
                    position.pop_back()
                } else {
                    position.pop_front()
                };
            }
        }
        if left != 0 {
            let (completed_ms, price_cents) = (trade.completed_ms, trade.price_cents);
            position.push_back(Holding { trade: number, completed_ms, price_cents, quantity: left });
            steps.push(Step { holding: number, before: 0, after: left });
        }
        gain
    }
}

fn index(trader: usize, account: usize, security_index: usize) -> usize {
    (trader * MAX_ACCOUNTS as usize + account) * MAX_HELD as usize + security_index
}
