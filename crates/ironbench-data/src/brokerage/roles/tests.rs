//! Tests the proportions of the deck and of inputs, the market's answers, and whole trials on the null engine.

use std::collections::{BTreeMap, BTreeSet};

use ironbench_core::drive::jobs::Next;
use ironbench_core::drive::plan::{Engine, OnError, Part, Plan, Schedule, ScriptSource, Stop};
use ironbench_core::drive::{Control, Outcome, drive};
use pgbench_script::{Automatic, Given, Source, Value, Variables};
use proptest::prelude::*;

use super::super::market::{self as curve, Kind as OrderKind, Symbol};
use super::super::population;
use super::super::tests::fits;
use super::client_role::{ClientKind, TABLES};
use super::inputs::{Inputs, Order};
use super::market::{Entry, Work};
use super::*;
use crate::input_variables::{InputVariables, Slots};
use crate::row::TextBuffer;

mod market;

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
    let variables: Vec<_> = VARIABLES.iter().map(|&name| (name.to_owned(), String::new())).collect();
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
        retried_errors: Vec::new(),
        on_error: OnError::Continue,
        reconnect_on_loss: false,
        statements: false,
        observers: Vec::new(),
        part: None,
        log: None,
    };
    let roles =
        Roles::new(options(&format!(", \"no_data\": true{more}")), clients, plan.part_or_whole(), plan.seed).unwrap();
    let outcome = drive(&plan, Some(&roles), &Control::new(), &mut || true).unwrap();
    (roles, outcome)
}

fn done(outcome: &Outcome) -> BTreeMap<String, u64> {
    outcome.summary.scripts.iter().map(|script| (script.name.clone(), script.completed)).collect()
}

/// Returns the value of a variable as text.
fn holding_history(variables: &Variables, program: &Program, name: &str) -> String {
    match variables.held(program.symbols.get(name).unwrap()) {
        Some(Given::Text(text)) => String::from_utf8(text.to_vec()).unwrap(),
        Some(Given::Value(Value::Integer(value))) => value.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

/// Draws the inputs of `count` transactions of one type. Returns the named variables of each.
fn drawn<const N: usize>(kind: Kind, count: usize, names: [&str; N]) -> Vec<[String; N]> {
    let program = full();
    let roles = Roles::new(options(""), 1, Part::whole(1), 3).unwrap();
    let mut inputs = Inputs::new(&roles.brokerage, &roles.activity, RowRng::new(3, Purpose::Inputs as u64, 0));
    let (slots, mut buffer) = (Slots::of::<Input>(&program), TextBuffer::default());
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let mut all = Vec::new();
    for number in 0..count {
        let vars =
            &mut InputVariables { slots: &slots, variables: &mut variables, buffer: &mut buffer, hundredths: false };
        match kind {
            Kind::BrokerVolume => inputs.broker_volume(vars),
            Kind::CustomerPosition => inputs.customer_position(vars),
            Kind::MarketWatch => inputs.market_watch(vars),
            Kind::SecurityDetail => inputs.security_detail(vars),
            Kind::TradeLookup => inputs.trade_lookup(vars),
            Kind::TradeUpdate => inputs.trade_update(vars),
            Kind::TradeStatus => inputs.trade_status(vars),
            Kind::TradeOrder => drop(inputs.trade_order(number as i64, roles.times(number as u64 * SECOND), vars)),
            _ => inputs.data_maintenance(number as i64 % TABLES + 1, vars),
        }
        all.push(names.map(|name| holding_history(&variables, &program, name)));
    }
    all
}

/// Counts how often each of these values occurs.
fn counts(values: impl Iterator<Item = String>, known: &[&str]) -> Vec<u64> {
    let mut counts = vec![0; known.len()];
    for value in values {
        counts[known.iter().position(|known| *known == value).unwrap_or_else(|| panic!("{value}"))] += 1;
    }
    counts
}

#[test]
fn a_deck_holds_every_card_once_and_each_round_another_order() {
    let mut deck = Deck::new(Kind::ALL.map(|kind| (kind, kind.cards())), RowRng::new(1, 2, 3));
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
    let some = [Kind::TradeOrder, Kind::TradeStatus].map(|kind| (kind, kind.cards()));
    let mut few = Deck::new(some, RowRng::new(1, 2, 3));
    assert_eq!((0..291).filter(|_| few.draw() == Kind::TradeOrder).count(), 101);
}

#[test]
fn customers_are_picked_by_their_activity() {
    let (activity, mut rng) = (Activity::new(), RowRng::new(9, 1, 0));
    let (mut tiers, mut units, mut tenths) = ([0; 3], [0; 4], [0; 10]);
    for _ in 0..100_000 {
        let customer = activity.customer(4, &mut rng);
        let rank = population::rank(customer);
        tiers[population::tier(rank) as usize - 1] += 1;
        units[(customer / 1000) as usize] += 1;
        tenths[rank as usize / 100] += 1;
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
        // With one load unit there are only ten brokers, so the list is shorter than in the standard.
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
        (0..clients).map(|client| (roles.kind_of_client(client), roles.client_number(client))).collect::<Vec<_>>()
    };
    let mut drawn: Vec<_> =
        parts.iter().flat_map(duties).filter(|(kind_of_client, _)| *kind_of_client != ClientKind::Market).collect();
    drawn.sort_by_key(|(_, number)| *number);
    // The parts together draw the same inputs as a trial of one process.
    assert_eq!(
        drawn,
        duties(&whole)
            .into_iter()
            .filter(|(kind_of_client, _)| *kind_of_client != ClientKind::Market)
            .collect::<Vec<_>>()
    );
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
    // The trial has 1000 seconds. Maintenance runs once per minute, for the first time after half a minute.
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
    let of_market = done["trade_result"] + done["market_feed"];
    assert!(lag.count() <= of_market, "{} of {done:?}: maintenance has none", lag.count());
}

#[test]
fn the_cycle_of_tables_begins_where_the_seed_says() {
    let program = full();
    let mut firsts = BTreeSet::new();
    for seed in 0..24 {
        let roles = Roles::new(options(r#", "maintenance_s": 1"#), 1, Part::whole(1), seed).unwrap();
        let mut variables = Variables::new(&program, &[], &Automatic::default());
        // The client comes after one customer and one market client.
        let mut role = roles.role(&program, 2);
        assert!(matches!(role.next(1, &mut variables), Next::NotBefore(_)));
        let table = |turn: u64| {
            assert!(matches!(role.next(1 + turn * SECOND, &mut variables), Next::Job { .. }));
            holding_history(&variables, &program, "table_no").parse::<i64>().unwrap()
        };
        let tables: Vec<_> = (1..=12).map(table).collect();
        assert!(tables.windows(2).all(|two| two[1] == two[0] % 12 + 1), "{tables:?}");
        firsts.insert(tables[0]);
    }
    assert!(firsts.len() > 6 && firsts.iter().all(|first| (1..=12).contains(first)), "{firsts:?}");
}

#[test]
fn a_trial_begins_where_the_last_one_ended_and_prices_where_they_always_do() {
    let times = |more: &str| Roles::new(options(more), 1, Part::whole(1), 1).unwrap().times(2 * SECOND);
    let (first, next, before) = (times(""), times(r#", "first_time": 144005000"#), times(r#", "first_time": 7000"#));
    // The trades cover five days of eight hours.
    assert_eq!((first.now_ms, next.now_ms, before.now_ms), (144_002_000, 144_007_000, 144_002_000));
    assert_eq!((next.curve_ms, before.curve_ms), (first.curve_ms, first.curve_ms));
}

#[test]
fn roles_that_cannot_be_played_are_refused() {
    let refused = |more: &str, clients, names: &[&str]| {
        let roles =
            Roles::new(options(more), clients, Part::whole(clients), 1).and_then(|roles| roles.check(&program(names)));
        roles.unwrap_err().to_string()
    };
    assert!(refused("", 1, &["trade_order", "market_feed"]).contains("trade_result"));
    assert!(refused("", 1, &["data_maintenance"]).contains("brokerage customers"));
    assert!(refused(r#", "alone": true"#, 2, &["trade_status"]).contains("one client"));
    assert!(refused(r#", "maintenance_s": 0"#, 2, &["trade_status"]).contains("greater than zero"));
    let roles = Roles::new(options(""), 4, Part::whole(4), 1).unwrap();
    assert!(roles.check(&program(&["trade_status"])).is_ok());
    assert!(serde_json::from_str::<Options>(&format!("{{\"data\": {DATA}, \"other\": 1}}")).is_err());
}
