//! Compares drawn values with their expected proportions, and tests prices and times.

use std::collections::BTreeSet;

use super::super::market::{self, Kind, phase, price_cents};
use super::super::population::{self, SECURITIES, Trades};
use super::super::trades::Trader;
use super::brokerage;

/// Computes Pearson's statistic of counts against proportions.
fn chi_squared(counts: &[u64], shares: &[f64]) -> f64 {
    let (all, parts) = (counts.iter().sum::<u64>() as f64, shares.iter().sum::<f64>());
    let expected = shares.iter().map(|share| all * share / parts);
    counts.iter().zip(expected).map(|(&count, expected)| (count as f64 - expected).powi(2) / expected).sum()
}

/// For each number of degrees of freedom, the value that the statistic exceeds with probability 10⁻⁴ (any table of χ²).
const CRITICAL: [f64; 10] = [0.0, 15.14, 18.42, 21.11, 23.51, 25.74, 27.86, 29.88, 31.83, 33.72];

pub fn fits(what: &str, counts: &[u64], shares: &[f64]) {
    let found = chi_squared(counts, shares);
    assert!(found < CRITICAL[counts.len() - 1], "{what}: {counts:?} against {shares:?}, chi-squared {found:.1}");
}

#[test]
fn tiers_have_their_shares_of_customers_accounts_and_trades() {
    let trades = Trades::new(10);
    let (mut customers, mut accounts, mut made) = ([0; 3], [0; 3], [0; 3]);
    for customer in 0..1000 {
        let rank = population::rank(customer);
        let tier = population::tier(rank) as usize - 1;
        let (fewest, most) = population::account_range(tier as u64 + 1);
        assert!((fewest..=most).contains(&population::accounts(rank)));
        customers[tier] += 1;
        accounts[tier] += population::accounts(rank);
        made[tier] += trades.of(customer);
    }
    assert_eq!((customers, accounts), ([200, 600, 200], [500, 3000, 1500]));
    // Each customer's share is rounded, but the sum is not.
    assert_eq!(made.iter().sum::<u64>(), 576_000);
    for (made, share) in made.into_iter().zip([10, 60, 30]) {
        assert!(made.abs_diff(5_760 * share) < 600, "{made} of {share} percent");
    }
    assert_eq!((0..1000).map(population::activity).sum::<u64>(), population::ALL_ACTIVITY);
    assert_eq!((0..1000).map(population::rank).collect::<BTreeSet<_>>().len(), 1000);
}

#[test]
fn accounts_and_orders_are_drawn_as_the_standard_says() {
    let brokerage = brokerage(2000, 1, 11);
    let counts = Trades::new(1);
    let (mut kinds, mut quantities, mut order, mut paid, mut by) = ([0; 5], [0; 4], [0; 2], [0; 2], [0; 2]);
    let (mut statuses, mut debts, mut trusted, mut brokers) = ([0; 3], [0; 2], [0; 3], [0; 10]);
    let (mut held, mut accounts, mut delays, mut trades) = (0, 0, 0, 0);
    for customer in 0..2000 {
        let trader = Trader::new(&brokerage, &counts, customer);
        for trade in trader.trades(&brokerage) {
            trades += 1;
            kinds[trade.kind as usize] += 1;
            quantities[(trade.quantity / 100).ilog2() as usize] += 1;
            order[usize::from(trade.lifo)] += 1;
            paid[usize::from(trade.cash)] += 1;
            by[usize::from(trade.by_other)] += 1;
            let delay = trade.completed_ms - trade.submitted_ms;
            assert!((0..=5000).contains(&delay));
            delays += delay;
        }
        for account in &trader.accounts {
            accounts += 1;
            held += account.securities.count;
            assert!((2..=18).contains(&account.securities.count));
            statuses[account.tax_status as usize] += 1;
            debts[usize::from(account.balance_cents < 0)] += 1;
            trusted[account.trusted.iter().flatten().count()] += 1;
            brokers[(account.broker % 10) as usize] += 1;
            assert_eq!(account.broker / 10, customer / 1000);
            let symbols: BTreeSet<u64> = (0..account.securities.count).map(|at| account.securities.at(at)).collect();
            assert_eq!(symbols.len() as u64, account.securities.count);
        }
    }
    fits("order types TMB TMS TSL TLS TLB", &kinds, &[30.0, 30.0, 10.0, 10.0, 20.0]);
    fits("quantities", &quantities, &[1.0; 4]);
    fits("oldest or newest first", &order, &[65.0, 35.0]);
    fits("on margin or cash", &paid, &[8.0, 92.0]);
    fits("tax status", &statuses, &[20.0, 50.0, 30.0]);
    fits("balances above and below zero", &debts, &[80.0, 20.0]);
    fits("others who may trade", &trusted, &[60.0, 38.0, 2.0]);
    fits("accounts of brokers", &brokers, &[1.0; 10]);
    // The test for independent draws does not apply here, because some accounts trade much more than others.
    let owner = by[0] as f64 / trades as f64;
    assert!((owner - 0.9).abs() < 0.01, "{owner} by the owner");
    // The distribution is exponential with a mean of 1 s, cut off at 5 s.
    let mean = delays as f64 / trades as f64;
    assert!((mean / 993.3 - 1.0).abs() < 0.02, "delay of {mean} ms");
    let mean = held as f64 / accounts as f64;
    assert!((mean - 10.0).abs() < 0.2, "{mean} securities per account");
}

#[test]
fn a_limit_is_met_by_the_price_when_the_order_is_submitted_and_not_before() {
    let brokerage = brokerage(1000, 1, 2);
    let counts = Trades::new(1);
    let (mut waited, mut seen) = (0, 0);
    for customer in 0..100 {
        for trade in Trader::new(&brokerage, &counts, customer).trades(&brokerage) {
            assert_eq!(trade.price_cents, price_cents(trade.security, trade.completed_ms));
            let Some(placed) = trade.placed_ms else {
                assert!(trade.kind.is_market());
                continue;
            };
            seen += 1;
            let met = |time| {
                let price = price_cents(trade.security, time);
                if trade.kind.waits_for_fall() { price <= trade.bid_cents } else { price >= trade.bid_cents }
            };
            assert!(met(trade.submitted_ms) && placed <= trade.submitted_ms, "{trade:?}");
            waited += i64::from(placed < trade.submitted_ms);
            // The price changes by one cent in about half a second. Times close to both ends are left out, because the
            // price may equal the limit there.
            let between = (placed + 900..trade.submitted_ms - 900).step_by(997);
            assert!(between.into_iter().all(|time| !met(time)), "{trade:?} {:?}", phase(trade.security, placed));
        }
    }
    assert!(seen > 1500 && waited * 10 > seen * 4, "{waited} of {seen} waited");
}

#[test]
fn trades_are_made_on_weekdays_in_hours_of_business() {
    assert_eq!(crate::row::TextBuffer::default().moment(market::moment(0)), "2005-01-03 09:00:00.000");
    assert_eq!(
        crate::row::TextBuffer::default().moment(market::moment(6 * market::DAY_MS - 1)),
        "2005-01-10 16:59:59.999"
    );
    let last = market::business_day(market::PAST_FIRST_DAY, market::PAST_DAYS - 1);
    assert_eq!(crate::row::TextBuffer::default().date(last), "2004-12-31");
    for security in 0..SECURITIES {
        let prices = (0..900).map(|second| price_cents(security, second * 1000));
        assert!(prices.into_iter().all(|price| (2000..=3000).contains(&price)));
    }
    assert_eq!(Kind::ALL.map(Kind::id), ["TMB", "TMS", "TSL", "TLS", "TLB"]);
}
