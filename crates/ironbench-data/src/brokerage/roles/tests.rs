//! Shares of the deck and of inputs, what the market answers, and whole trials on the null engine.

use std::collections::{BTreeMap, BTreeSet};

use ironbench_core::drive::plan::{Engine, OnError, Part, Plan, Schedule, ScriptSource, Stop};
use ironbench_core::drive::{Control, Outcome, drive};
use pgbench_script::{Automatic, Given, Source, Value, Variables};
use proptest::prelude::*;

use super::super::market::{self as curve, Kind as OrderKind, Symbol};
use super::super::population;
use super::super::tests::fits;
use super::inputs::{Inputs, Order};
use super::market::{Entry, Work};
use super::person::{Duty, TABLES};
use super::sheet::{Sheet, Slots};
use super::*;
use crate::row::Phrase;

const DATA: &str = r#"{"rows": "brokerage", "customers": 1000, "days": 5, "lob": "none", "seed": 0}"#;

fn options(more: &str) -> Options {
    serde_json::from_str(&format!("{{\"data\": {DATA}{more}}}")).unwrap()
}

fn sources() -> Vec<ScriptSource> {
    let source = |kind: Kind| ScriptSource { name: kind.name().to_owned(), text: "SELECT 1;\n".to_owned(), weight: 1 };
    Kind::ALL.map(source).into()
}

fn program(names: &[&str]) -> Program {
    let source = |name: &&str| Source { name: (*name).to_owned(), text: "SELECT 1;\n".to_owned(), weight: 1 };
    let variables: Vec<_> = NAMES.iter().map(|&name| (name.to_owned(), String::new())).collect();
    Program::compile(&names.iter().map(source).collect::<Vec<_>>(), &variables).unwrap()
}

fn full() -> Program {
    program(&Kind::ALL.map(Kind::name))
}

fn trial(clients: usize, stop: Stop, more: &str) -> (Roles, Outcome) {
    let plan = Plan {
        engine: Engine::Null { service_ns: 0 },
        work: None,
        jobs: Some("as given".into()),
        scripts: sources(),
        variables: Vec::new(),
        clients,
        threads: 1,
        client_cpus: Vec::new(),
        seed: 5,
        schedule: Schedule::Closed { think_time_s: if clients == 1 { 0.0 } else { 0.002 } },
        stop,
        warmup_s: 0.0,
        max_tries: 10,
        on_error: OnError::Continue,
        statements: false,
        observers: Vec::new(),
        part: None,
    };
    let roles =
        Roles::new(options(&format!(", \"no_data\": true{more}")), clients, plan.its_part(), plan.seed).unwrap();
    let outcome = drive(&plan, Some(&roles), &Control::new(), &mut || true).unwrap();
    (roles, outcome)
}

fn done(outcome: &Outcome) -> BTreeMap<String, u64> {
    outcome.summary.scripts.iter().map(|script| (script.name.clone(), script.completed)).collect()
}

/// What one variable holds, as text.
fn held(variables: &Variables, program: &Program, name: &str) -> String {
    match variables.held(program.symbols.get(name).unwrap()) {
        Some(Given::Text(text)) => String::from_utf8(text.to_vec()).unwrap(),
        Some(Given::Value(Value::Integer(value))) => value.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

/// The inputs of so many transactions of one kind: for each, the named variables.
fn drawn<const N: usize>(kind: Kind, count: usize, names: [&str; N]) -> Vec<[String; N]> {
    let program = full();
    let roles = Roles::new(options(""), 1, Part::whole(1), 3).unwrap();
    let mut inputs = Inputs::new(&roles.brokerage, &roles.activity, Dice::new(3, Purpose::Inputs as u64, 0));
    let (slots, mut phrase) = (Slots::of(&program), Phrase::default());
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let mut all = Vec::new();
    for number in 0..count {
        let sheet = &mut Sheet { slots: &slots, variables: &mut variables, phrase: &mut phrase, hundredths: false };
        match kind {
            Kind::BrokerVolume => inputs.broker_volume(sheet),
            Kind::CustomerPosition => inputs.customer_position(sheet),
            Kind::MarketWatch => inputs.market_watch(sheet),
            Kind::SecurityDetail => inputs.security_detail(sheet),
            Kind::TradeLookup => inputs.trade_lookup(sheet),
            Kind::TradeUpdate => inputs.trade_update(sheet),
            Kind::TradeStatus => inputs.trade_status(sheet),
            Kind::TradeOrder => drop(inputs.trade_order(number as i64, roles.times(number as u64 * SECOND), sheet)),
            _ => inputs.data_maintenance(number as i64 % TABLES + 1, sheet),
        }
        all.push(names.map(|name| held(&variables, &program, name)));
    }
    all
}

/// How often each of these values comes.
fn counts(values: impl Iterator<Item = String>, known: &[&str]) -> Vec<u64> {
    let mut counts = vec![0; known.len()];
    for value in values {
        counts[known.iter().position(|known| *known == value).unwrap_or_else(|| panic!("{value}"))] += 1;
    }
    counts
}

#[test]
fn a_deck_holds_every_card_once_and_each_round_another_order() {
    let mut deck = Deck::new(|_| true, Dice::new(1, 2, 3));
    let mut round = || (0..890).map(|_| deck.draw()).collect::<Vec<_>>();
    let (first, second) = (round(), round());
    for kind in Kind::ALL {
        assert_eq!(first.iter().filter(|drawn| **drawn == kind).count(), kind.cards());
    }
    assert_ne!(first, second);
    let mut places = [0; 10];
    for _ in 0..200 {
        let round = (0..890).map(|_| deck.draw());
        round.enumerate().filter(|(_, kind)| *kind == Kind::TradeOrder).for_each(|(at, _)| places[at / 89] += 1);
    }
    fits("places of orders in the deck", &places, &[1.0; 10]);
    let mut few = Deck::new(|kind| matches!(kind, Kind::TradeOrder | Kind::TradeStatus), Dice::new(1, 2, 3));
    assert_eq!((0..291).filter(|_| few.draw() == Kind::TradeOrder).count(), 101);
}

#[test]
fn customers_are_picked_by_their_activity() {
    let (activity, mut dice) = (Activity::new(), Dice::new(9, 1, 0));
    let (mut tiers, mut units, mut tenths) = ([0; 3], [0; 4], [0; 10]);
    for _ in 0..100_000 {
        let customer = activity.customer(4, &mut dice);
        let place = population::place(customer);
        tiers[population::tier(place) as usize - 1] += 1;
        units[(customer / 1000) as usize] += 1;
        tenths[place as usize / 100] += 1;
    }
    fits("tiers", &tiers, &[10.0, 60.0, 30.0]);
    fits("load units", &units, &[1.0; 4]);
    let share = |tenth: u64| (tenth * 100..tenth * 100 + 100).map(population::activity).sum::<u64>() as f64;
    fits("tenths of the order of activity", &tenths, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(share));
}

#[test]
fn orders_have_the_shares_of_the_standard() {
    let names =
        ["trade_type", "quantity", "is_owner", "by_name", "lifo", "margin", "roll_back", "limit_price", "placed"];
    let all = drawn(Kind::TradeOrder, 60_000, names);
    let column = |at: usize| all.iter().map(move |row| row[at].clone());
    fits("types", &counts(column(0), &["TMB", "TMS", "TLB", "TLS", "TSL"]), &[30.0, 30.0, 20.0, 10.0, 10.0]);
    fits("quantities", &counts(column(1), &["100", "200", "400", "800"]), &[1.0; 4]);
    fits("symbol or name", &counts(column(3), &["0", "1"]), &[60.0, 40.0]);
    fits("lifo", &counts(column(4), &["0", "1"]), &[65.0, 35.0]);
    fits("margin", &counts(column(5), &["0", "1"]), &[92.0, 8.0]);
    fits("rolled back", &counts(column(6), &["0", "1"]), &[100.0, 1.0]);
    let owner = counts(column(2), &["0", "1"]);
    assert!((owner[1] as f64 / 60_000.0 - 0.9).abs() < 0.01, "{owner:?}");
    assert!(all.iter().all(|row| (row[6] == "0") == (row[8] == "1")));
    let mut tenths = [0; 10];
    for row in all.iter().filter(|row| row[0].starts_with("TL") || row[0] == "TSL") {
        let cents: usize = row[7].replace('.', "").parse().unwrap();
        assert!((2000..=3000).contains(&cents));
        tenths[((cents - 2000) / 100).min(9)] += 1;
    }
    fits("limits", &tenths, &[1.0; 10]);
}

#[test]
fn questions_have_the_shares_of_the_standard() {
    let shares = |kind, name, values: &[&str], shares: &[f64]| {
        let all = drawn(kind, 40_000, [name]);
        fits(name, &counts(all.into_iter().map(|[value]| value), values), shares);
    };
    shares(Kind::MarketWatch, "mode", &["1", "2", "3"], &[60.0, 35.0, 5.0]);
    shares(Kind::TradeLookup, "frame", &["1", "2", "3", "4"], &[30.0, 30.0, 30.0, 10.0]);
    shares(Kind::TradeUpdate, "frame", &["1", "2", "3"], &[33.0, 33.0, 34.0]);
    shares(Kind::CustomerPosition, "history", &["0", "1"], &[1.0; 2]);
    shares(Kind::SecurityDetail, "lob", &["0", "1"], &[99.0, 1.0]);
    for [c_id, tax_id] in drawn(Kind::CustomerPosition, 500, ["c_id", "tax_id"]) {
        assert_ne!(c_id == "0", tax_id.is_empty());
    }
    for [brokers, sector] in drawn(Kind::BrokerVolume, 500, ["brokers", "sector"]) {
        let names: BTreeSet<String> = serde_json::from_str(&brokers).unwrap();
        // A load unit has ten, so that the list is shorter than the standard's.
        assert!((5..=10).contains(&names.len()) && !sector.is_empty(), "{brokers}");
    }
    for [trades, frame, from, to] in drawn(Kind::TradeLookup, 500, ["trades", "frame", "from_time", "to_time"]) {
        let ids: BTreeSet<i64> = serde_json::from_str(&trades).unwrap();
        assert_eq!(ids.len(), if frame == "1" { 20 } else { 0 });
        assert!(from < to && to == "2005-01-07 16:59:59.999", "{from} {to}");
    }
    let days: BTreeSet<String> = drawn(Kind::SecurityDetail, 5000, ["days"]).into_iter().map(|[days]| days).collect();
    assert_eq!(days.len(), 16);
    let tables: Vec<_> = drawn(Kind::DataMaintenance, 24, ["table_no"]).into_iter().map(|[table]| table).collect();
    assert_eq!((&tables[0][..], &tables[11][..], &tables[12][..]), ("1", "12", "1"));
}

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
    Market::new(Curve { start_ms: 0, speed: 1.0 }, 685, Dice::new(1, 1, 1), Numbers { first: 1, part })
}

fn order(trade: i64, kind: OrderKind, limit_cents: i64) -> Order {
    Order { trade, security: 7, kind, quantity: 200, limit_cents }
}

/// Works off all that becomes due until then: results in the order of their trades, and batches.
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
    // An exponential delay of mean 1 s: 63 percent of all within it.
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
    // The second order's price is far off: one price has met a limit.
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
    // What never goes well is not tried for ever, and is counted.
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
    // Numbers begin at 1 and processes take turns: even ones are theirs.
    theirs.place(order(2, OrderKind::LimitBuy, 2100), 0);
    theirs.place(order(4, OrderKind::LimitBuy, 2100), 0);
    ours.place(order(3, OrderKind::LimitBuy, 2100), 0);
    assert_eq!(under_way(&ours, &theirs), 3);
    ours.fed(&format!("{}, {}, {}", told(2), told(2), told(3)), 1);
    assert_eq!(under_way(&ours, &theirs), 3);
    // The last one is found before its client has heard of it.
    ours.fed(&told(6), 2);
    theirs.place(order(6, OrderKind::LimitBuy, 2100), 3);
    assert_eq!(under_way(&ours, &theirs), 4);
    let mut done = answered(&mut ours, 10 * SECOND).0;
    done.sort_unstable();
    assert_eq!((done, under_way(&ours, &theirs)), (vec![2, 3, 6], 1));
}

#[test]
fn parts_share_the_market_and_number_their_orders_apart_and_the_first_maintains_the_data() {
    let part = |number| Part { number, of: 3, first_client: [0, 1, 3][number], all_clients: 5 };
    let options = || options(r#", "market_clients": 5, "first_trade": 100"#);
    let parts: Vec<_> =
        (0..3).map(|number| Roles::new(options(), [1, 2, 2][number], part(number), 1).unwrap()).collect();
    let whole = Roles::new(options(), 5, Part::whole(5), 1).unwrap();
    assert_eq!(parts.iter().map(Jobs::waiting_clients).sum::<usize>(), whole.waiting_clients());
    assert_eq!(parts.iter().map(Roles::market_clients).collect::<Vec<_>>(), [1, 2, 2]);
    let trades: BTreeSet<i64> = parts.iter().flat_map(|roles| (0..4).map(|_| roles.trade())).collect();
    assert_eq!(trades, (100..112).collect());
    let duties = |roles: &Roles| {
        let clients = roles.customers + roles.waiting_clients();
        (0..clients).map(|client| (roles.duty(client), roles.place(client))).collect::<Vec<_>>()
    };
    let mut drawn: Vec<_> = parts.iter().flat_map(duties).filter(|(duty, _)| *duty != Duty::Market).collect();
    drawn.sort_by_key(|(_, place)| *place);
    // Each draws as it would in a trial of one process.
    assert_eq!(drawn, duties(&whole).into_iter().filter(|(duty, _)| *duty != Duty::Market).collect::<Vec<_>>());
    let decks = parts.iter().map(|roles| {
        roles.check(&full()).unwrap();
        let mut deck = roles.deck.get().unwrap().lock().unwrap();
        (0..890).map(|_| deck.draw()).collect::<Vec<_>>()
    });
    let decks: Vec<_> = decks.collect();
    assert!(decks[0] != decks[1] && decks[1] != decks[2]);
}

#[test]
fn a_hundred_thousand_transactions_have_the_mix_of_the_standard() {
    let (_, outcome) = trial(1, Stop::Transactions(100_000), r#", "alone": true, "price_period_s": 10"#);
    let done = done(&outcome);
    let all: u64 = done.values().sum();
    assert_eq!(all, 100_000);
    let shares = [
        ("broker_volume", 4.9),
        ("customer_position", 13.0),
        ("market_feed", 1.0),
        ("market_watch", 18.0),
        ("security_detail", 14.0),
        ("trade_lookup", 8.0),
        ("trade_order", 10.1),
        ("trade_result", 10.0),
        ("trade_status", 19.0),
        ("trade_update", 2.0),
    ];
    for (name, share) in shares {
        let found = done[name] as f64 * 100.0 / all as f64;
        assert!((found - share).abs() < 0.1, "{name}: {found:.2} percent instead of {share}: {done:?}");
    }
    // A thousand seconds: one each minute, the first after half of one.
    assert_eq!(done["data_maintenance"], 17);
    let rolled_back = outcome.summary.scripts[Kind::TradeOrder as usize].rolled_back;
    assert!((60..145).contains(&rolled_back), "{rolled_back}");
    assert_eq!(outcome.summary.failed, 0);
}

#[test]
fn who_does_everything_alone_does_the_same_each_time() {
    let state = || {
        let (roles, outcome) = trial(1, Stop::Transactions(20_000), r#", "alone": true"#);
        let market = roles.market();
        (done(&outcome), outcome.summary.figures, market.price_cents(1, 1), market.counts())
    };
    assert_eq!(state(), state());
}

#[test]
fn customers_ask_and_the_market_answers_while_the_trial_runs() {
    let (_, outcome) = trial(8, Stop::DurationS(3.0), r#", "price_period_s": 1, "maintenance_s": 1"#);
    let done = done(&outcome);
    assert!(done["trade_result"] > done["trade_order"] / 3, "{done:?}");
    assert!(done["market_feed"].abs_diff(done["trade_result"] / 10) <= 1, "{done:?}");
    assert_eq!(done["data_maintenance"], 3);
    assert_eq!((outcome.summary.clients, outcome.summary.waiting_clients), (8, 3));
    let lag = &outcome.histograms["market_lag"];
    assert!(lag.count() > 10 && lag.quantile_s(0.5) < 0.05, "{} {}", lag.count(), lag.quantile_s(0.5));
}

#[test]
fn roles_that_cannot_be_played_are_refused() {
    let refused = |more: &str, clients, names: &[&str]| {
        let roles =
            Roles::new(options(more), clients, Part::whole(clients), 1).and_then(|roles| roles.check(&program(names)));
        roles.unwrap_err().to_string()
    };
    assert!(refused("", 1, &["trade_order", "market_feed"]).contains("trade_result"));
    assert!(refused("", 1, &["data_maintenance"]).contains("customers of the brokerage"));
    assert!(refused(r#", "alone": true"#, 2, &["trade_status"]).contains("one client"));
    assert!(refused(r#", "maintenance_s": 0"#, 2, &["trade_status"]).contains("above zero"));
    let roles = Roles::new(options(""), 4, Part::whole(4), 1).unwrap();
    assert!(roles.check(&program(&["trade_status"])).is_ok());
    assert!(serde_json::from_str::<Options>(&format!("{{\"data\": {DATA}, \"other\": 1}}")).is_err());
}
