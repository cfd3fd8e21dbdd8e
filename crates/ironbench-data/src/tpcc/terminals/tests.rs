//! Tests the shares and ranges of inputs, homes, the deck, and keying and think times.

use std::collections::BTreeSet;

use ironbench_core::drive::plan::{Engine, OnError, Plan, Schedule, ScriptSource, Stop};
use ironbench_core::drive::{Control, drive};
use pgbench_script::{Automatic, Given, Source, Value};

use super::*;
use crate::brokerage::tests::fits;
use crate::tpcc::random_values::nurand;

const C_LOAD: u64 = 173;

fn terminals(warehouses: u64, clients: usize, seed: u64, more: &str) -> Terminals {
    let options = format!(
        r#"{{"data": {{"rows": "tpcc", "warehouses": {warehouses}, "c_load": {C_LOAD}, "seed": 0}}, "home": true{more}}}"#
    );
    Terminals::new(serde_json::from_str(&options).unwrap(), clients, Part::whole(clients), seed).unwrap()
}

fn program(names: &[&str]) -> Program {
    let source = |name: &&str| Source { name: (*name).to_owned(), text: "SELECT 1;\n".to_owned(), weight: 1 };
    let variables: Vec<_> = VARIABLES.iter().map(|&name| (name.to_owned(), String::new())).collect();
    Program::compile(&names.iter().map(source).collect::<Vec<_>>(), &variables).unwrap()
}

/// The inputs of many transactions of one type, drawn by one of `clients` terminals.
struct Drawn {
    rows: Vec<Vec<String>>,
    rolled_back: usize,
}

const COUNT: usize = 40_000;

fn drawn(terminals: &Terminals, terminal: usize, kind: Kind, names: &[&str]) -> Drawn {
    let program = program(&[kind.name()]);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let mut role = terminals.role(&program, terminal);
    let mut drawn = Drawn { rows: Vec::new(), rolled_back: 0 };
    for now in 0..COUNT as u64 {
        assert_eq!(role.next(now, &mut variables), Next::Job { script: 0, due: now });
        let held = |name: &&str| match variables.held(program.symbols.get(name).unwrap()) {
            Some(Given::Text(text)) => String::from_utf8(text.to_vec()).unwrap(),
            Some(Given::Value(Value::Integer(value))) => value.to_string(),
            other => panic!("{name}: {other:?}"),
        };
        drawn.rows.push(names.iter().map(held).collect());
        drawn.rolled_back += usize::from(role.ended(&mut variables, true));
    }
    drawn
}

impl Drawn {
    fn numbers(&self, column: usize) -> Vec<u64> {
        self.rows.iter().map(|row| row[column].parse().unwrap()).collect()
    }

    fn counts(&self, column: usize, values: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        counts(&self.numbers(column), values)
    }
}

fn counts(found: &[u64], values: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    assert!(found.iter().all(|value| values.contains(value)));
    values.map(|value| found.iter().filter(|found| **found == value).count() as u64).collect()
}

#[test]
fn orders_have_the_lines_of_the_standard() {
    let names = ["d_id", "c_id", "lines", "local", "items", "suppliers", "quantities", "different", "order_lines"];
    let terminals = terminals(3, 3, 5, "");
    let orders = drawn(&terminals, 1, Kind::NewOrder, &names);
    fits("districts", &orders.counts(0, 1..=10), &[1.0; 10]);
    fits("lines", &orders.counts(2, 5..=15)[..10], &[1.0; 10]);
    let share = orders.rolled_back as f64 / COUNT as f64;
    assert!((share - 0.01).abs() < 0.0025, "{share}");
    let customers = orders.numbers(1);
    assert!(customers.iter().all(|customer| (1..=3000).contains(customer)));
    let (mut suppliers, mut quantities, mut unknown) = ([0; 3], Vec::new(), 0);
    for row in &orders.rows {
        let list = |column: usize| row[column].split(',').map(|one| one.parse().unwrap()).collect::<Vec<u64>>();
        let (items, from, ordered) = (list(4), list(5), list(6));
        assert_eq!(items.len(), row[2].parse::<usize>().unwrap());
        assert_eq!((from.len(), ordered.len()), (items.len(), items.len()));
        assert_eq!(row[3] == "1", from.iter().all(|supplier| *supplier == 2));
        assert_eq!(row[7].parse::<usize>().unwrap(), items.iter().collect::<BTreeSet<_>>().len());
        let known = items.iter().take_while(|item| **item <= 100_000).count();
        unknown += items.len() - known;
        assert!(items[known..].iter().all(|item| *item == 100_001) && items.len() - known <= 1);
        let stock: Vec<_> = from.iter().zip(&items).take(known).collect();
        assert!(stock.is_sorted(), "{row:?}");
        let lines: Vec<[u64; 3]> = serde_json::from_str(&format!("[{}]", row[8])).unwrap();
        let again =
            items.iter().zip(&from).zip(&ordered).map(|((item, supplier), quantity)| [*item, *supplier, *quantity]);
        assert_eq!(lines, again.collect::<Vec<_>>());
        from.iter().for_each(|supplier| suppliers[*supplier as usize - 1] += 1);
        quantities.extend(ordered);
    }
    assert_eq!(unknown, orders.rolled_back);
    fits("suppliers", &suppliers, &[0.5, 99.0, 0.5]);
    fits("quantities", &counts(&quantities, 1..=10), &[1.0; 10]);
}

#[test]
fn lines_have_a_variable_for_each_value_and_unused_ones_repeat_the_first() {
    let names: Vec<String> = (1..=15).flat_map(|n| ["i", "s", "q"].map(|of| format!("{of}{n}"))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["order_lines"]).collect();
    for row in drawn(&terminals(2, 2, 1, ""), 0, Kind::NewOrder, &names).rows.iter().take(1000) {
        let lines: Vec<[u64; 3]> = serde_json::from_str(&format!("[{}]", row[45])).unwrap();
        for place in 0..15 {
            let given = [0, 1, 2].map(|of| row[3 * place + of].parse::<u64>().unwrap());
            assert_eq!(given, *lines.get(place).unwrap_or(&lines[0]));
        }
    }
}

#[test]
fn payments_and_order_status_have_the_shares_of_the_standard() {
    let terminals = terminals(3, 3, 9, "");
    let names = ["d_id", "c_d_id", "w_id", "c_w_id", "by_name", "c_id", "c_last", "amount"];
    let payments = drawn(&terminals, 0, Kind::Payment, &names);
    fits("districts", &payments.counts(0, 1..=10), &[1.0; 10]);
    fits("districts of customers", &payments.counts(1, 1..=10), &[1.0; 10]);
    fits("warehouses of customers", &payments.counts(3, 1..=3), &[85.0, 7.5, 7.5]);
    fits("by name", &payments.counts(4, 0..=1), &[40.0, 60.0]);
    for row in &payments.rows {
        assert_eq!(row[2], "1");
        assert!(row[3] != "1" || row[0] == row[1], "a customer at home is of the same district");
        assert_eq!(row[4] == "1", row[5] == "0" && !row[6].is_empty());
        let cents: u64 = row[7].replace('.', "").parse().unwrap();
        assert!(row[7].len() >= 4 && (100..=500_000).contains(&cents), "{}", row[7]);
    }
    let asked = drawn(&terminals, 2, Kind::OrderStatus, &["c_w_id", "c_d_id", "by_name"]);
    fits("districts", &asked.counts(1, 1..=10), &[1.0; 10]);
    fits("by name", &asked.counts(2, 0..=1), &[40.0, 60.0]);
    assert!(asked.numbers(0).iter().all(|warehouse| *warehouse == 3));
    let one = drawn(&self::terminals(1, 1, 9, ""), 0, Kind::Payment, &["c_w_id"]);
    assert!(one.numbers(0).iter().all(|warehouse| *warehouse == 1), "one warehouse has no remote customers");
}

#[test]
fn deliveries_have_a_carrier_and_stock_levels_a_threshold() {
    let terminals = terminals(1, 10, 2, "");
    let carriers = drawn(&terminals, 3, Kind::Delivery, &["w_id", "carrier"]);
    fits("carriers", &carriers.counts(1, 1..=10), &[1.0; 10]);
    let levels = drawn(&terminals, 3, Kind::StockLevel, &["d_id", "threshold"]);
    assert!(levels.numbers(0).iter().all(|district| *district == 4), "ten terminals have a district each");
    fits("thresholds", &levels.counts(1, 10..=20)[..10], &[1.0; 10]);
}

#[test]
fn terminals_share_the_warehouses_evenly() {
    let homes = |terminals, warehouses| (0..terminals).map(move |terminal| Home::of(terminal, terminals, warehouses));
    let own = |home: Home, warehouses| (home.first..warehouses).step_by(home.step as usize).collect::<Vec<_>>();
    // With fewer terminals than warehouses, each warehouse belongs to one terminal.
    let mut all: Vec<u64> = homes(3, 10).flat_map(|home| own(home, 10)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<_>>());
    assert!(homes(3, 10).all(|home| home.district.is_none()));
    // With ten terminals per warehouse, each district belongs to one terminal.
    let all: BTreeSet<_> = homes(30, 3).map(|home| (own(home, 3), home.district)).collect();
    assert_eq!((all.len(), all.first().unwrap().0.len()), (30, 1));
    let used = |more| {
        let levels = drawn(&terminals(4, 2, 3, more), 1, Kind::StockLevel, &["w_id"]);
        levels.numbers(0).into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(used(""), BTreeSet::from([2, 4]));
    let anywhere = serde_json::from_str::<Options>(
        r#"{"data": {"rows": "tpcc", "warehouses": 4, "c_load": 1, "seed": 0}, "home": false}"#,
    );
    let anywhere = Terminals::new(anywhere.unwrap(), 2, Part::whole(2), 3).unwrap();
    fits("warehouses", &drawn(&anywhere, 1, Kind::Delivery, &["w_id"]).counts(0, 1..=4), &[1.0; 4]);
}

#[test]
fn constants_differ_from_those_of_the_data_as_the_standard_asks() {
    for c_load in 0..=255 {
        for seed in 0..200 {
            let terminals = Constants::drawn(&mut RowRng::new(seed, 1, 0), c_load);
            let text = format!("{terminals:?}");
            let c_run: u64 = text.split([' ', ',']).nth(3).unwrap().parse().unwrap();
            let delta = c_run.abs_diff(c_load);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112 && c_run <= 255, "{text} {c_load}");
        }
    }
    let drawn: BTreeSet<String> =
        (0..50).map(|seed| format!("{:?}", Constants::drawn(&mut RowRng::new(seed, 1, 0), C_LOAD))).collect();
    assert_eq!(drawn.len(), 50);
}

#[test]
fn parts_draw_what_one_process_draws() {
    let names = ["w_id", "c_id", "order_lines"];
    let whole = terminals(2, 6, 4, "");
    let options = || whole.options.clone();
    let part = Part { number: 1, of: 2, first_client: 3, all_clients: 6 };
    let second = Terminals::new(options(), 3, part, 4).unwrap();
    assert_eq!(drawn(&second, 1, Kind::NewOrder, &names).rows, drawn(&whole, 4, Kind::NewOrder, &names).rows);
    assert_ne!(drawn(&second, 1, Kind::NewOrder, &names).rows, drawn(&whole, 1, Kind::NewOrder, &names).rows);
}

#[test]
fn a_deck_of_23_cards_makes_the_mix() {
    let program = program(&Kind::ALL.map(Kind::name));
    let terminals = terminals(1, 1, 4, "");
    let mut role = terminals.role(&program, 0);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let mut round = || {
        let mut scripts = Vec::new();
        for _ in 0..23 {
            let Next::Job { script, .. } = role.next(0, &mut variables) else { panic!("a terminal always has work") };
            scripts.push(script as u64);
        }
        scripts
    };
    let (first, second) = (round(), round());
    assert_ne!(first, second);
    for scripts in [first, second] {
        assert_eq!(counts(&scripts, 0..=4), [10, 10, 1, 1, 1]);
    }
}

#[test]
fn terminals_key_and_think_as_long_as_the_standard_says() {
    let terminals = terminals(1, 10, 4, r#", "paced": true"#);
    assert!(terminals.paces());
    for (kind, keying_s, think_s) in [
        (Kind::NewOrder, 18.0, 12.0),
        (Kind::Payment, 3.0, 12.0),
        (Kind::OrderStatus, 2.0, 10.0),
        (Kind::Delivery, 2.0, 5.0),
        (Kind::StockLevel, 2.0, 5.0),
    ] {
        let program = program(&[kind.name()]);
        let mut variables = Variables::new(&program, &[], &Automatic::default());
        let mut role = terminals.role(&program, 0);
        let first = role.rest_ns();
        let rests: Vec<f64> = (0..COUNT)
            .map(|_| {
                role.next(0, &mut variables);
                role.ended(&mut variables, true);
                clock::to_seconds(role.rest_ns())
            })
            .collect();
        let mean = rests.iter().sum::<f64>() / COUNT as f64;
        // The standard deviation of the mean is 0.5% of the mean think time, and truncation reduces the mean by 0.05%.
        assert!((mean - keying_s - think_s).abs() < 0.025 * think_s, "{kind:?}: {mean}");
        let (least, most) =
            rests.iter().fold((f64::MAX, 0.0f64), |(low, high), rest| (low.min(*rest), high.max(*rest)));
        assert!(least >= keying_s && most <= keying_s + 10.0 * think_s, "{kind:?}: {least} to {most}");
        assert!(clock::to_seconds(first) <= keying_s + 10.0 * think_s);
        let median = rests.iter().filter(|rest| **rest < keying_s + think_s * std::f64::consts::LN_2).count();
        assert!(median.abs_diff(COUNT / 2) < 500, "{kind:?}: negative exponential");
    }
}

#[test]
fn paced_terminals_of_a_trial_wait_outside_of_transactions() {
    let source = |kind: Kind| ScriptSource { name: kind.name().to_owned(), text: "SELECT 1;\n".to_owned(), weight: 1 };
    let plan = Plan {
        engine: Engine::Null { service_ns: 1_000_000 },
        work: None,
        jobs: Some("as given".into()),
        scripts: Kind::ALL.map(source).into(),
        variables: Vec::new(),
        clients: 1000,
        threads: 2,
        client_cpus: Vec::new(),
        seed: 5,
        schedule: Schedule::Closed { think_time_s: 0.0 },
        stop: Stop::DurationS(2.0),
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
    let terminals = terminals(100, 1000, 5, r#", "paced": true"#);
    let outcome = drive(&plan, Some(&terminals), &Control::new(), &mut || true).unwrap();
    // A cycle takes 20.7 s on average (10 New-Orders of 30 s, 10 Payments of 15 s, 12 s, 7 s and 7 s for each deck).
    let expected = 1000.0 * 2.0 / ((300.0 + 150.0 + 12.0 + 7.0 + 7.0) / 23.0);
    let found = outcome.summary.transactions as f64;
    assert!((found / expected - 1.0).abs() < 0.35, "{found} of {expected}");
    let response = &outcome.histograms["response_time"];
    assert!(response.quantile_s(0.5) < 0.1, "{}", response.quantile_s(0.5));
    let open = Plan { schedule: Schedule::Closed { think_time_s: 1.0 }, ..plan };
    let refused = drive(&open, Some(&terminals), &Control::new(), &mut || true).unwrap_err();
    assert!(refused.to_string().contains("determines when transactions start"), "{refused}");
}

#[test]
fn a_deferred_delivery_is_queued_by_a_terminal_and_carried_out_by_another_client() {
    let names = ["delivery", "delivery-request"];
    let program = program(&names);
    let terminals = terminals(2, 3, 8, r#", "delivery_clients": 2"#);
    terminals.check(&program).unwrap();
    assert_eq!(terminals.waiting_clients(), 2);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let (mut terminal, mut deliverer) = (terminals.role(&program, 1), terminals.role(&program, 3));
    assert_eq!((terminal.job_queue(), deliverer.job_queue()), (None, Some(LAG_QUEUE)));
    assert!(matches!(deliverer.next(5, &mut variables), Next::NotBefore(wake) if wake > 5));
    for since in [10, 20] {
        assert_eq!(terminal.next(since, &mut variables), Next::Job { script: 1, due: since });
        assert!(!terminal.ended(&mut variables, true));
    }
    let slot = |name: &str| program.symbols.get(name).unwrap();
    for (since, delivered) in [(10, "10"), (20, "7")] {
        assert_eq!(deliverer.next(30, &mut variables), Next::Job { script: 0, due: since });
        assert_eq!(variables.value(slot("w_id")).unwrap(), Value::Integer(2));
        variables.set_text(slot("delivered"), delivered.as_bytes());
        assert!(!deliverer.ended(&mut variables, true));
    }
    let figures = terminals.figures();
    assert_eq!((figures["delivery_queue_max"], figures["deliveries_left"]), (2.0, 0.0));
    assert_eq!(figures["skipped_districts"], 3.0);
    assert!(terminals.check(&self::program(&["delivery"])).is_err());
    let part = |number| Part { number, of: 3, first_client: number, all_clients: 3 };
    let waiting = |number| Terminals::new(terminals.options.clone(), 1, part(number), 8).unwrap().waiting_clients();
    assert_eq!([0, 1, 2].map(waiting), [1, 1, 1], "no part is without one");
}

#[test]
fn scripts_and_data_of_other_workloads_are_refused() {
    let refused = terminals(1, 1, 1, "").check(&program(&["other"])).unwrap_err();
    assert!(refused.to_string().contains("no script is a transaction of TPC-C"));
    let options = r#"{"data": {"rows": "pgbench", "scale": 1}, "home": true}"#;
    assert!(Terminals::new(serde_json::from_str(options).unwrap(), 1, Part::whole(1), 1).is_err());
}

#[test]
fn numbers_that_are_drawn_often_are_spread_by_the_constant() {
    // Without the constant C, the same numbers would be frequent in every trial: those with many ones in binary.
    let mut rng = RowRng::new(1, 2, 3);
    let mean = |rng: &mut RowRng, c| (0..COUNT).map(|_| nurand(rng, 1023, 1, 3000, c)).sum::<u64>() / COUNT as u64;
    assert!(mean(&mut rng, 0).abs_diff(mean(&mut rng, 700)) > 50);
}
