//! Tests that tables derived from initial trades are consistent with each other.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;

use super::super::population::{GROUP, Trades};
use super::super::trades::Group;
use super::{Rows, brokerage, cents, whole};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]
    #[test]
    fn brokers_have_the_trades_and_commissions_of_their_accounts(seed: u64) {
        let brokerage = brokerage(2000, 1, seed);
        let accounts = Rows::of(&brokerage, "customer_account");
        let broker: HashMap<&str, &str> = accounts.all(["ca_id", "ca_b_id"]).map(|[account, broker]| (account, broker)).collect();
        let trades = Rows::of(&brokerage, "trade");
        let mut totals: HashMap<&str, (i64, i64)> = HashMap::new();
        for [account, commission] in trades.all(["t_ca_id", "t_comm"]) {
            let total = totals.entry(broker[account]).or_default();
            *total = (total.0 + 1, total.1 + cents(commission));
        }
        let brokers = Rows::of(&brokerage, "broker");
        let found = brokers.all(["b_id", "b_num_trades", "b_comm_total"]);
        let found: HashMap<&str, (i64, i64)> = found.map(|[id, count, sum]| (id, (whole(count), cents(sum)))).collect();
        prop_assert_eq!(found.len(), 20);
        prop_assert_eq!(found, totals);
    }

    /// The expected holdings are derived in another way, as single lots of 100 shares in a list, one trade after the
    /// other.
    #[test]
    fn holdings_are_those_of_a_walk_share_by_share(seed: u64) {
        let brokerage = brokerage(1000, 2, seed);
        let mut lots: HashMap<(&str, &str), Vec<(&str, i64)>> = HashMap::new();
        let mut steps: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
        let trades = Rows::of(&brokerage, "trade");
        for [id, account, symbol, kind, quantity, lifo] in
            trades.all(["t_id", "t_ca_id", "t_s_symb", "t_tt_id", "t_qty", "t_lifo"])
        {
            let list = lots.entry((account, symbol)).or_default();
            let side = if ["TMS", "TLS", "TSL"].contains(&kind) { -1 } else { 1 };
            for _ in 0..whole(quantity) / 100 {
                let held = |list: &[(&str, i64)], of: &str| list.iter().filter(|lot| lot.0 == of).map(|lot| lot.1 * 100).sum();
                let opposite = list.first().is_some_and(|lot| lot.1 != side);
                let index = if lifo == "1" { list.len().saturating_sub(1) } else { 0 };
                let of = if opposite { list[index].0 } else { id };
                let before: i64 = held(list, of);
                if opposite { list.remove(index); } else { list.push((id, side)); }
                let after = held(list, of);
                steps.entry((of.to_owned(), id.to_owned())).or_insert((before, after)).1 = after;
            }
        }
        let history = Rows::of(&brokerage, "holding_history");
        let found: BTreeMap<_, _> = history
            .all(["hh_h_t_id", "hh_t_id", "hh_before_qty", "hh_after_qty"])
            .map(|[holding, trade, before, after]| ((holding.to_owned(), trade.to_owned()), (whole(before), whole(after))))
            .collect();
        prop_assert_eq!(found.len() as u64, history.count());
        prop_assert!(found == steps, "histories differ");

        let mut left: BTreeMap<(&str, &str, &str), i64> = BTreeMap::new();
        for (&(account, symbol), list) in &lots {
            list.iter().for_each(|&(trade, side)| *left.entry((trade, account, symbol)).or_default() += side * 100);
        }
        let rows = Rows::of(&brokerage, "holding");
        let found: BTreeMap<_, _> = rows
            .all(["h_t_id", "h_ca_id", "h_s_symb", "h_qty"])
            .map(|[trade, account, symbol, quantity]| ((trade, account, symbol), whole(quantity)))
            .collect();
        prop_assert!(found == left, "holdings differ");

        let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        left.into_iter().for_each(|((_, account, symbol), quantity)| *sums.entry((account, symbol)).or_default() += quantity);
        let rows = Rows::of(&brokerage, "holding_summary");
        let found: BTreeMap<_, _> = rows
            .all(["hs_ca_id", "hs_s_symb", "hs_qty"])
            .map(|[account, symbol, quantity]| ((account, symbol), whole(quantity)))
            .collect();
        prop_assert!(found == sums, "summaries differ");
    }

    #[test]
    fn settlement_cash_and_states_agree_with_trades(seed: u64) {
        let brokerage = brokerage(1000, 1, seed);
        let accounts = Rows::of(&brokerage, "customer_account");
        let withheld: HashSet<&str> =
            accounts.all(["ca_id", "ca_tax_st"]).filter(|[_, status]| *status == "1").map(|[id, _]| id).collect();
        let untaxed: HashSet<&str> =
            accounts.all(["ca_id", "ca_tax_st"]).filter(|[_, status]| *status == "0").map(|[id, _]| id).collect();
        let trades = Rows::of(&brokerage, "trade");
        let mut expected = Vec::new();
        let mut taxed = 0;
        for [id, dts, account, kind, quantity, price, charge, commission, tax, is_cash] in trades.all([
            "t_id", "t_dts", "t_ca_id", "t_tt_id", "t_qty", "t_trade_price", "t_chrg", "t_comm", "t_tax", "t_is_cash",
        ]) {
            let side = if ["TMS", "TLS", "TSL"].contains(&kind) { 1 } else { -1 };
            let value = side * whole(quantity) * cents(price) - cents(charge) - cents(commission);
            let table = if withheld.contains(account) { cents(tax) } else { 0 };
            prop_assert!(cents(tax) == 0 || !untaxed.contains(account));
            taxed += i64::from(cents(tax) > 0);
            expected.push((id, dts, value - table, is_cash == "1", !["TMB", "TMS"].contains(&kind)));
        }
        prop_assert!(taxed > 1000, "{taxed} trades taxed");
        let settlements = Rows::of(&brokerage, "settlement");
        let found: Vec<_> = settlements.all(["se_t_id", "se_amt", "se_cash_type"]).collect();
        prop_assert_eq!(found.len(), expected.len());
        for ([id, amount, kind], one) in found.iter().zip(&expected) {
            prop_assert_eq!((*id, cents(amount), *kind == "cash"), (one.0, one.2, one.3));
        }
        let cash = Rows::of(&brokerage, "cash_transaction");
        let found: Vec<_> = cash.all(["ct_t_id", "ct_dts", "ct_amt"]).map(|[id, dts, sum]| (id, dts, cents(sum))).collect();
        let wanted: Vec<_> = expected.iter().filter(|one| one.3).map(|one| (one.0, one.1, one.2)).collect();
        prop_assert!(found == wanted, "cash differs");
        let history = Rows::of(&brokerage, "trade_history");
        let mut states = history.all(["th_t_id", "th_st_id", "th_dts"]).peekable();
        for (id, dts, _, _, waited) in expected {
            let mut times = Vec::new();
            let wanted: &[&str] = if waited { &["PNDG", "SBMT", "CMPT"] } else { &["SBMT", "CMPT"] };
            for state in wanted {
                let [trade, found, time] = states.next().unwrap();
                prop_assert_eq!((trade, found), (id, *state));
                times.push(time);
            }
            prop_assert!(times.is_sorted(), "{:?}", times);
            prop_assert_eq!(times.last(), Some(&dts));
        }
        prop_assert!(states.next().is_none());
    }
}

#[test]
fn numbers_of_trades_are_in_the_order_of_time_within_a_group() {
    let brokerage = brokerage(1000, 2, 9);
    let counts = Trades::new(2);
    let mut next = 0;
    for number in 0..1000 / GROUP {
        let mut group = Group::new(&brokerage, &counts, number);
        let mut last = 0;
        while let Some((number, _, trade)) = group.advance() {
            assert_eq!(number, next);
            assert!((last..brokerage.span_ms()).contains(&trade.completed_ms));
            (next, last) = (next + 1, trade.completed_ms);
        }
    }
    assert_eq!(next, 2 * 57_600);
}
