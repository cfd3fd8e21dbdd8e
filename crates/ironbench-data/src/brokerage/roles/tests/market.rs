//! Tests the market: symbols, limits, results and feeds.

use super::*;

proptest! {
    #[test]
    fn a_limit_is_met_at_the_instant_that_is_foretold_and_not_before(
        security in 0u64..685, limit in 2000i64..=3000, time in 0i64..10_000_000, falls: bool
    ) {
        let met = |at: i64| {
            let price = curve::price_cents(security, at);
            if falls { price <= limit } else { price >= limit }
        };
        let waits = curve::meets_in_ms(security, falls, limit, time);
        prop_assert!((0..900_000).contains(&waits) && met(time + waits));
        prop_assert!(waits == 0 || (!met(time) && !met(time + waits - 1)), "{} {}", security, waits);
    }

    #[test]
    fn a_symbol_tells_its_security(security in 0u64..6_850_000) {
        prop_assert_eq!(curve::security_of(Symbol::of(security).as_str()), Some(security));
    }
}

#[test]
fn what_is_no_symbol_has_no_security() {
    for text in ["", "ABC", "ABCDEFG", "abcde", "ABCDE1", "ÄÖÜ"] {
        assert_eq!(curve::security_of(text), None, "{text}");
    }
}

fn market() -> Market {
    market_of(Part::whole(1))
}

fn market_of(part: Part) -> Market {
    Market::new(Curve { start_ms: 0, speed: 1.0 }, 685, RowRng::new(1, 1, 1), OrderNumbers { first: 1, part })
}

fn order(trade: i64, kind: OrderKind, limit_cents: i64) -> Order {
    Order { trade, security: 7, kind, quantity: 200, limit_cents }
}

/// Handles all jobs due by `until`. Returns results in the order of their trades, and batches of prices.
fn answered(market: &mut Market, until: u64) -> (Vec<i64>, Vec<Vec<Entry>>) {
    let (mut now, mut results, mut feeds) = (0, Vec::new(), Vec::new());
    while now <= until {
        match market.next(now) {
            Ok(due) => {
                assert!(due.since <= now);
                match due.work {
                    Work::Result { trade, .. } => {
                        market.traded(trade, 2500, now);
                        results.push(trade);
                    }
                    Work::Feed(entries) => feeds.push(entries),
                }
            }
            Err(wake) => now = wake.max(now + 1),
        }
    }
    (results, feeds)
}

#[test]
fn the_market_answers_within_five_seconds_and_a_batch_follows_ten_results() {
    let mut market = market();
    for trade in 0..1000 {
        market.place(order(trade, OrderKind::MarketBuy, 0), 0);
    }
    assert_eq!(market.counts().pending, 1000);
    let (early, _) = answered(&mut market, SECOND);
    // The delay is exponential with a mean of 1 s, so 63% of the results arrive within 1 s.
    assert!((580..690).contains(&early.len()), "{}", early.len());
    let (late, feeds) = answered(&mut market, 5 * SECOND);
    let all: BTreeSet<i64> = early.iter().chain(&late).copied().collect();
    assert_eq!((all.len(), market.counts().pending), (1000, 0));
    assert!(feeds.iter().all(|feed| feed.len() == 20));
    let own = feeds.iter().flatten().filter(|entry| entry.quantity == 200).count();
    let other = feeds.iter().flatten().filter(|entry| [325, 425].contains(&entry.quantity)).count();
    assert_eq!(own, other);
}

#[test]
fn an_order_with_a_limit_waits_for_its_price_and_then_for_the_batch_that_tells_it() {
    let mut market = market();
    let price = market.price_cents(7, 0);
    market.place(order(1, OrderKind::LimitBuy, price), 0);
    market.place(order(2, OrderKind::LimitSell, curve::HIGHEST_CENTS), 0);
    assert_eq!(market.counts().limits, 2);
    for trade in 10..20 {
        market.place(order(trade, OrderKind::MarketSell, 0), 0);
    }
    let (results, feeds) = answered(&mut market, 6 * SECOND);
    assert_eq!((results.len(), feeds.len()), (10, 1));
    // The price is far from the limit of the second order, so only one limit has been met.
    assert_eq!(feeds[0].iter().filter(|entry| entry.quantity == 375 && entry.security == 7).count(), 1);
    let symbol = Symbol::of(7);
    market.fed(&format!("1 {} 25.00, 77 {} 25.00", symbol.as_str(), symbol.as_str()), 6 * SECOND);
    assert_eq!(market.counts().limits, 1);
    let (mut results, _) = answered(&mut market, 12 * SECOND);
    results.sort_unstable();
    assert_eq!(results, [1, 77]);
}

#[test]
fn work_that_failed_is_tried_again_and_counts_from_when_it_was_due() {
    let mut market = market();
    market.place(order(1, OrderKind::MarketBuy, 0), 0);
    let (due, mut now) = (market.next(5 * SECOND).unwrap(), 5 * SECOND);
    market.failed(due.clone(), now);
    now = market.next(now).unwrap_err();
    assert!(now > 5 * SECOND);
    let mut again = market.next(now).unwrap();
    assert_eq!((again.since, &again.work, market.counts().pending), (due.since, &due.work, 1));
    for _ in 0..18 {
        market.failed(again, now);
        now = market.next(now).unwrap_err();
        again = market.next(now).unwrap();
    }
    // A job that always fails is given up after some tries, and counted.
    market.failed(again, now);
    assert_eq!((market.next(now), market.counts().given_up), (Err(u64::MAX), 1));
}

#[test]
fn an_order_that_a_feed_found_before_its_client_heard_of_it_is_submitted_once() {
    let mut market = market();
    market.fed(&format!("5 {} 21.00", Symbol::of(7).as_str()), 0);
    market.place(order(5, OrderKind::LimitBuy, 2100), 1);
    assert_eq!((market.counts().pending, market.counts().limits), (1, 0));
    assert_eq!(answered(&mut market, 10 * SECOND).0, [5]);
}

#[test]
fn orders_that_a_feed_found_are_answered_once_and_in_the_same_order_however_it_names_them() {
    let symbol = Symbol::of(7);
    let results = |numbers: &[i64]| {
        let mut market = market();
        let names: Vec<_> = numbers.iter().map(|trade| format!("{trade} {} 21.00", symbol.as_str())).collect();
        market.fed(&names.join(","), 0);
        answered(&mut market, 10 * SECOND).0
    };
    let found = results(&[1, 2, 3, 4, 5]);
    assert_eq!(found.len(), 5);
    assert_eq!(results(&[5, 3, 3, 1, 2, 4, 1]), found);
}

#[test]
fn an_order_that_the_feed_of_another_process_found_is_answered_there_and_counted_once() {
    let part = |number| Part { number, of: 2, first_client: number, all_clients: 2 };
    let (mut ours, mut theirs) = (market_of(part(0)), market_of(part(1)));
    let told = |trade: i64| format!("{trade} {} 21.00", Symbol::of(7).as_str());
    let under_way = |one: &Market, other: &Market| {
        let (one, other) = (one.counts(), other.counts());
        (one.pending as i64 + one.limits) + (other.pending as i64 + other.limits)
    };
    // Two processes use the numbers from 1 on in rotation, so the second process has the even numbers.
    theirs.place(order(2, OrderKind::LimitBuy, 2100), 0);
    theirs.place(order(4, OrderKind::LimitBuy, 2100), 0);
    ours.place(order(3, OrderKind::LimitBuy, 2100), 0);
    assert_eq!(under_way(&ours, &theirs), 3);
    ours.fed(&format!("{}, {}, {}", told(2), told(2), told(3)), 1);
    assert_eq!(under_way(&ours, &theirs), 3);
    // Order 6 is found before its client has received the reply to the commit.
    ours.fed(&told(6), 2);
    theirs.place(order(6, OrderKind::LimitBuy, 2100), 3);
    assert_eq!(under_way(&ours, &theirs), 4);
    let mut done = answered(&mut ours, 10 * SECOND).0;
    done.sort_unstable();
    assert_eq!((done, under_way(&ours, &theirs)), (vec![2, 3, 6], 1));
}
