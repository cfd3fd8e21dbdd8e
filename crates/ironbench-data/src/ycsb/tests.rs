use std::collections::BTreeSet;
use std::sync::Arc;

use ironbench_core::drive::jobs::{Jobs, Next};
use ironbench_core::drive::plan::Part;
use pgbench_script::{Automatic, Given, Program, Random, Source, Value, Variables};
use proptest::prelude::*;

use super::numbers::{Inserted, RecordChooser};
use super::*;
use crate::Generator;
use crate::distribution::Zipfian;

fn rows(ycsb: &Ycsb) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    crate::write_text(&Generator::Ycsb(ycsb.clone()), TABLE, 3, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn key(number: u64) -> String {
    let mut key = String::new();
    write_key(number, &mut key);
    key
}

/// The expected keys are the first keys in YCSB's loads and traces.
#[test]
fn keys_are_those_of_ycsb() {
    let expected = ["user6284781860667377211", "user8517097267634966620", "user1820151046732198393"];
    assert_eq!((0..3).map(key).collect::<Vec<_>>(), expected);
}

#[test]
fn keys_of_different_records_differ() {
    let loaded = (0..300_000).map(hash);
    let inserted = (0..100).flat_map(|trial| (0..1000).map(move |number| hash(100_000_000 + (trial << 36) + number)));
    assert_eq!(loaded.chain(inserted).collect::<BTreeSet<_>>().len(), 400_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_record_has_its_fields(records in 1u64..200, fields in 1u64..=MAX_FIELDS, field_length in 1usize..40) {
        let columns = Ycsb { records, fields, field_length, layout: Layout::Columns };
        let json = Ycsb { layout: Layout::Json, ..columns.clone() };
        let (columns, json) = (rows(&columns), rows(&json));
        prop_assert_eq!(columns.len() as u64, records);
        for (number, (row, document)) in columns.iter().zip(&json).enumerate() {
            prop_assert_eq!(&row[0], &key(number as u64));
            prop_assert_eq!(&row[0], &document[0]);
            prop_assert!(row[1..].iter().all(|value| value.len() == field_length));
            let names = (0..fields).map(|field| format!("field{field}"));
            let object: serde_json::Map<String, serde_json::Value> =
                names.zip(row[1..].iter().map(|value| value.as_str().into())).collect();
            prop_assert_eq!(serde_json::from_str::<serde_json::Map<_, _>>(&document[1]).unwrap(), object);
        }
    }
}

/// Returns the sum of rank^-0.99 over `1..=count`, with the Euler–Maclaurin formula after the first thousand ranks.
fn zeta(count: u64) -> f64 {
    let density = |rank: f64| rank.powf(-0.99);
    let first = count.min(1000);
    let sum: f64 = (1..=first).map(|rank| density(rank as f64)).sum();
    let (from, to) = (first as f64, count as f64);
    sum + (to.powf(0.01) - from.powf(0.01)) / 0.01 + (density(to) - density(from)) / 2.0
}

/// Computes Pearson's statistic of draws against the exact probabilities of the first ranks, and of all other ranks
/// together.
fn chi_square(count: u64, cells: usize, draws: u64) -> f64 {
    let (zipfian, mut random) = (Zipfian::new(count as f64, 0.99), Random::new(2026));
    let mut seen = vec![0u64; cells + 1];
    for _ in 0..draws {
        let rank = zipfian.draw(&mut random) as u64;
        assert!(rank < count);
        seen[cells.min(rank as usize)] += 1;
    }
    let mut expected: Vec<f64> = (1..=cells).map(|rank| (rank as f64).powf(-0.99) / zeta(count)).collect();
    expected.push(1.0 - expected.iter().sum::<f64>());
    let terms = seen.iter().zip(&expected).filter(|(_, share)| **share > 1e-9);
    terms.map(|(&seen, share)| (seen as f64 - share * draws as f64).powi(2) / (share * draws as f64)).sum()
}

/// The seeds are fixed. A value of 200 is far in the tail of the distribution for 100 degrees of freedom (p < 1e-7).
#[test]
fn the_zipf_distribution_is_exact() {
    // The value is YCSB's own constant for ten billion ranks.
    assert!((zeta(10_000_000_000) - 26.469_028_201_783_02).abs() < 1e-6, "{}", zeta(10_000_000_000));
    for (count, cells) in [(2, 1), (100, 99), (5000, 100), (10_000_000_000, 100)] {
        let statistic = chi_square(count, cells, 300_000);
        assert!(statistic < 200.0, "{count} ranks: {statistic}");
    }
}

#[test]
fn a_single_record_can_be_drawn() {
    for distribution in [Distribution::Zipfian, Distribution::Latest, Distribution::Uniform] {
        let mut numbers = RecordChooser::new(distribution, 1, true);
        let drawn: BTreeSet<u64> = (0..100).map(|_| numbers.draw(&Inserted::default(), &mut Random::new(1))).collect();
        assert_eq!(drawn, [0].into());
    }
}

fn drawn(distribution: Distribution, grows: bool, inserted: &Inserted) -> Vec<u64> {
    let (mut numbers, mut random) = (RecordChooser::new(distribution, 1000, grows), Random::new(5));
    let mut seen = vec![0; 2000];
    (0..200_000).for_each(|_| seen[numbers.draw(inserted, &mut random) as usize] += 1);
    seen
}

fn inserts(numbers: std::ops::Range<u64>) -> Inserted {
    let inserted = Inserted::default();
    numbers.for_each(|number| inserted.add(number));
    inserted
}

#[test]
fn popular_records_are_anywhere_in_the_table_and_stay_popular_while_it_grows() {
    let seen = drawn(Distribution::Zipfian, false, &Inserted::default());
    let most = |seen: &[u64]| (0..seen.len()).max_by_key(|&number| seen[number]).unwrap() as u64;
    assert_eq!(most(&seen), hash(0) % 1000);
    // The most popular of ten billion ranks gets 3.8% of the draws. The record of this rank may get more, because
    // another popular rank may lead to the same record.
    assert!((7000..9000).contains(&seen[most(&seen) as usize]), "{}", seen[most(&seen) as usize]);
    assert!(seen[..1000].iter().all(|&count| count > 0));
    let before = drawn(Distribution::Zipfian, true, &Inserted::default());
    let after = drawn(Distribution::Zipfian, true, &inserts(1000..1100));
    assert_eq!((most(&before), most(&after)), (hash(0) % 1100, hash(0) % 1100));
    assert_eq!(before[1000..].iter().sum::<u64>(), 0);
    assert!(after[1000..1100].iter().all(|&count| count > 0) && after[1100..].iter().all(|&count| count == 0));
}

#[test]
fn latest_prefers_what_was_inserted_last() {
    for (inserted, newest) in [(Inserted::default(), 999), (inserts(1000..1500), 1499)] {
        let seen = drawn(Distribution::Latest, true, &inserted);
        let share = |back: u64| 200_000.0 * (back as f64 + 1.0).powf(-0.99) / zeta(newest + 1);
        for back in 0..20 {
            let (count, expected) = (seen[(newest - back) as usize] as f64, share(back));
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{back}: {count} instead of {expected}");
        }
        assert!(seen[newest as usize + 1..].iter().all(|&count| count == 0));
    }
}

#[test]
fn uniform_draws_every_loaded_record_alike() {
    let seen = drawn(Distribution::Uniform, true, &inserts(1000..1100));
    assert!(seen[..1000].iter().all(|&count| (130..270).contains(&count)), "{seen:?}");
    assert!(seen[1000..].iter().all(|&count| count == 0));
}

const VARIABLES: [&str; 10] =
    ["key", "found", "field", "name", "value", "rows", "document", "value0", "value1", "value2"];

fn program(scripts: &[(&str, u32)]) -> Program {
    let source = |&(name, weight): &(&str, u32)| Source { name: name.to_owned(), text: "SELECT 1;\n".into(), weight };
    let variables = VARIABLES.map(|name| (name.to_owned(), String::new()));
    Program::compile(&scripts.iter().map(source).collect::<Vec<_>>(), &variables).unwrap()
}

fn operations(part: Part) -> Operations {
    operations_with(part, Distribution::Zipfian, false)
}

fn operations_with(part: Part, distribution: Distribution, quoted: bool) -> Operations {
    let data = Generator::Ycsb(Ycsb { records: 1000, fields: 3, field_length: 9, layout: Layout::Columns });
    let options = Options { data, distribution, first_insert: 5000, max_scan: 7, write_all_fields: false, quoted };
    Operations::new(options, part, 11).unwrap()
}

/// Runs operations of one client. Returns the script, key, field, name, value and rows of each operation.
fn run(operations: &Operations, program: &Program, client: usize, count: usize) -> Vec<(usize, [String; 5])> {
    operations.check(program).unwrap();
    let mut role = operations.role(program, client);
    let mut variables = Variables::new(program, &[], &Automatic::default());
    let mut all = Vec::new();
    for now in 0..count as u64 {
        let Next::Job { script, due } = role.next(now, &mut variables) else { panic!("a client always has work") };
        assert_eq!(due, now);
        all.push((script, ["key", "field", "name", "value", "rows"].map(|name| text(&variables, program, name))));
        role.ended(&mut variables, true);
    }
    all
}

fn text(variables: &Variables, program: &Program, name: &str) -> String {
    match variables.held(program.symbols.get(name).unwrap()) {
        Some(Given::Text(text)) => String::from_utf8(text.to_vec()).unwrap(),
        Some(Given::Value(Value::Integer(value))) => value.to_string(),
        _ => String::new(),
    }
}

#[test]
fn operations_have_their_shares_and_inputs() {
    let program = program(&[("scan", 95), ("insert", 5)]);
    let done = run(&operations(Part::whole(1)), &program, 0, 20_000);
    let scans: Vec<_> = done.iter().filter(|(script, _)| *script == 0).collect();
    assert!((18_800..19_200).contains(&scans.len()), "{}", scans.len());
    let rows: BTreeSet<&str> = scans.iter().map(|(_, texts)| texts[4].as_str()).collect();
    assert_eq!(rows, ["1", "2", "3", "4", "5", "6", "7"].into());
    let update = run(&operations(Part::whole(1)), &self::program(&[("update", 1)]), 0, 1000);
    let fields: BTreeSet<(&str, &str)> = update.iter().map(|(_, texts)| (&*texts[1], &*texts[2])).collect();
    assert_eq!(fields, [("0", "field0"), ("1", "field1"), ("2", "field2")].into());
    assert!(update.iter().all(|(_, texts)| texts[3].len() == 9));
}

#[test]
fn a_client_draws_the_same_numbers_in_any_part_and_others_than_its_neighbour() {
    let program = program(&[("read", 50), ("update", 50)]);
    let whole = |client| run(&operations(Part::whole(4)), &program, client, 100);
    let part = Part { number: 1, of: 2, first_client: 2, all_clients: 4 };
    assert_eq!(run(&operations(part), &program, 1, 100), whole(3));
    assert_ne!(whole(2), whole(3));
}

#[test]
fn clients_and_parts_insert_different_records_above_all_existing_ones() {
    let program = program(&[("insert", 1)]);
    let mut keys = BTreeSet::new();
    for number in 0..3 {
        let operations = operations(Part { number, of: 3, first_client: 2 * number, all_clients: 6 });
        let clients = [0, 1].map(|client| run(&operations, &program, client, 500));
        keys.extend(clients.into_iter().flatten().map(|(_, [key, ..])| key));
    }
    assert_eq!(keys, (5000..8000).map(key).collect());
}

#[test]
fn threads_insert_different_records() {
    let (program, operations) = (Arc::new(program(&[("insert", 1)])), Arc::new(operations(Part::whole(4))));
    operations.check(&program).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|client| {
            let (program, operations) = (Arc::clone(&program), Arc::clone(&operations));
            std::thread::spawn(move || run(&operations, &program, client, 2000))
        })
        .collect();
    let done: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(done.into_iter().map(|(_, [key, ..])| key).collect::<BTreeSet<_>>().len(), 8000);
}

#[test]
fn only_acknowledged_inserts_are_read() {
    let program = program(&[("read", 50), ("insert", 50)]);
    let operations = operations_with(Part::whole(1), Distribution::Latest, false);
    operations.check(&program).unwrap();
    let mut role = operations.role(&program, 0);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let mut existing: BTreeSet<String> = (0..1000).map(key).collect();
    let mut failed = BTreeSet::new();
    for now in 0..5000 {
        let Next::Job { script, .. } = role.next(now, &mut variables) else { panic!("a client always has work") };
        let key = text(&variables, &program, "key");
        if script == 0 {
            assert!(existing.contains(&key) && !failed.contains(&key));
            role.ended(&mut variables, true);
            continue;
        }
        let well = now % 3 > 0;
        assert!(!existing.contains(&key));
        if well {
            existing.insert(key)
        } else {
            failed.insert(key)
        };
        role.ended(&mut variables, well);
    }
    assert!(existing.len() > 2000 && failed.len() > 500);
}

#[test]
fn a_read_that_returns_no_record_or_another_one_is_counted() {
    let program = program(&[("read", 1)]);
    let operations = operations(Part::whole(1));
    operations.check(&program).unwrap();
    let mut role = operations.role(&program, 0);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let found = program.symbols.get("found").unwrap();
    for (returned, missed) in [(None, 1.0), (Some("user1"), 2.0), (Some(""), 3.0)] {
        role.next(0, &mut variables);
        let key = text(&variables, &program, "key");
        variables.set_text(found, key.as_bytes());
        role.ended(&mut variables, true);
        role.next(0, &mut variables);
        if let Some(key) = returned {
            variables.set_text(found, key.as_bytes());
        }
        role.ended(&mut variables, true);
        assert_eq!(operations.figures()["ycsb_reads_missed"], missed);
    }
}

#[test]
fn texts_are_quoted_where_the_protocol_needs_it() {
    let program = program(&[("insert", 1)]);
    let operations = operations_with(Part::whole(1), Distribution::Zipfian, true);
    operations.check(&program).unwrap();
    let mut role = operations.role(&program, 0);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    role.next(0, &mut variables);
    assert_eq!(text(&variables, &program, "key"), format!("'{}'", key(5000)));
    for value in ["value0", "value1", "value2"].map(|name| text(&variables, &program, name)) {
        assert!(value.len() == 11 && value.starts_with('\'') && value.ends_with('\''), "{value}");
    }
}

#[test]
fn a_script_that_is_no_operation_is_refused() {
    let refused = operations(Part::whole(1)).check(&program(&[("delete", 1)])).unwrap_err();
    assert!(refused.to_string().contains("script delete"), "{refused}");
}
