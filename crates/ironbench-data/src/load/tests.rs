use super::*;
use crate::igen::Igen;
use crate::pgbench::Pgbench;
use proptest::prelude::*;

fn igen(seed: u64) -> Generator {
    Generator::Igen(Igen {
        region_ends: [400, 600, 720, 800, 860, 900],
        products: 200,
        categories: 10,
        most_orders: 20,
        most_lines: 7,
        seed,
    })
}

fn text(generator: &Generator, table: &str, threads: usize) -> String {
    let mut out = Vec::new();
    write_text(generator, table, threads, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn columns(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split('\t').collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn rows_do_not_depend_on_the_number_of_threads(seed: u64, threads in 2usize..7) {
        let generator = igen(seed);
        for table in generator.tables() {
            prop_assert_eq!(text(&generator, table.name, 1), text(&generator, table.name, threads));
        }
    }

    #[test]
    fn every_order_has_the_total_and_the_number_of_its_lines(seed: u64) {
        let generator = igen(seed);
        let lines = text(&generator, "igen_order_line", 1);
        let mut totals = std::collections::HashMap::new();
        for line in columns(&lines) {
            let total = totals.entry((line[0].to_owned(), line[1].to_owned())).or_insert((0i64, 0i64));
            total.0 += line[3].parse::<i64>().unwrap() * line[5].parse::<i64>().unwrap();
            total.1 += 1;
        }
        let orders = text(&generator, "igen_order", 1);
        for order in columns(&orders) {
            let expected = (order[0].parse().unwrap(), order[4].parse().unwrap());
            prop_assert_eq!(totals.remove(&(order[2].to_owned(), order[3].to_owned())), Some(expected));
        }
        prop_assert!(totals.is_empty());
    }

    #[test]
    fn lines_name_products_that_exist_at_their_price(seed: u64) {
        let generator = igen(seed);
        let products = text(&generator, "igen_product", 1);
        let prices: std::collections::HashMap<_, _> =
            columns(&products).into_iter().map(|product| (product[0].to_owned(), product[2].to_owned())).collect();
        let lines = text(&generator, "igen_order_line", 1);
        for line in columns(&lines) {
            prop_assert_eq!(prices.get(line[4]).map(String::as_str), Some(line[5]));
        }
    }
}

proptest! {
    #[test]
    fn pieces_cover_every_unit_once(units in 1u64..5_000_000, bytes in 1u64..3000, workers in 1usize..33) {
        let table = Table { name: "t", columns: &[], units, bytes_per_unit: bytes };
        let pieces = divide(&[table], workers, &[]);
        let mut next = 0;
        for piece in pieces {
            prop_assert_eq!(piece.units.start, next);
            next = piece.units.end;
        }
        prop_assert_eq!(next, units);
    }
}

proptest! {
    #[test]
    fn pieces_of_a_resumed_load_are_those_that_are_missing(units in 1u64..500, bounds in prop::collection::vec(0u64..500, 0..8)) {
        let table = Table { name: "t", columns: &[], units, bytes_per_unit: 100_000 };
        let mut bounds: Vec<u64> = bounds.into_iter().filter(|&bound| bound <= units).collect();
        bounds.sort_unstable();
        let done: Vec<Units> = bounds
            .chunks_exact(2)
            .map(|pair| Units { table: "t".into(), first: pair[0], past: pair[1] })
            .collect();
        let mut there: Vec<u64> = done.iter().flat_map(|done| done.first..done.past).collect();
        there.extend(divide(&[table], 2, &done).into_iter().flat_map(|piece| piece.units));
        there.sort_unstable();
        prop_assert_eq!(there, (0..units).collect::<Vec<_>>());
    }
}

#[test]
fn a_customer_holds_from_one_to_the_most_orders_without_holes() {
    let orders = text(&igen(1), "igen_order", 1);
    let mut held = std::collections::BTreeMap::new();
    for order in columns(&orders) {
        let count = held.entry(order[2].parse::<u64>().unwrap()).or_insert(0u64);
        *count += 1;
        assert_eq!(order[3].parse::<u64>().unwrap(), *count);
    }
    assert_eq!(held.len(), 900);
    assert_eq!((held.values().min(), held.values().max()), (Some(&1), Some(&20)));
    let mean = held.values().sum::<u64>() as f64 / 900.0;
    // A uniform number in 1..=20 has a mean of 10.5 and a standard deviation of 5.77. The tolerance is five standard
    // deviations of the mean.
    assert!((mean - 10.5).abs() < 0.97, "{mean}");
}

#[test]
fn customers_live_in_the_regions_of_the_plan() {
    let text = text(&igen(1), "igen_customer", 1);
    let regions: Vec<u64> = columns(&text).iter().map(|customer| customer[1].parse().unwrap()).collect();
    let in_region = |region| regions.iter().filter(|&&r| r == region).count();
    assert_eq!((1..=6).map(in_region).collect::<Vec<_>>(), [400, 200, 120, 80, 60, 40]);
}

#[test]
fn a_branch_has_ten_tellers_and_a_hundred_thousand_accounts() {
    let generator = Generator::Pgbench(Pgbench { scale: 2 });
    let accounts = text(&generator, "pgbench_accounts", 2);
    assert_eq!(accounts.lines().count(), 200_000);
    assert_eq!(accounts.lines().last(), Some("200000\t2\t0\t"));
    assert_eq!(text(&generator, "pgbench_tellers", 1).lines().last(), Some("20\t2\t0"));
    assert_eq!(text(&generator, "pgbench_branches", 1), "1\t0\n2\t0\n");
}

#[test]
fn loads_of_single_pieces_make_together_what_one_load_makes() {
    let plan = |only| LoadPlan {
        engine: Engine::Null { service_ns: 0 },
        generator: igen(1),
        connections: 1,
        done: Vec::new(),
        only,
        note: String::new(),
        silence_s: None,
    };
    let made = |only| load(&plan(only), &Progress::default()).unwrap();
    let whole = made(Vec::new());
    let each = cut_pieces(&igen(1), 3, &[]);
    let (mut rows, mut bytes) = (0, 0);
    for (table, first, past) in each {
        let one = made(vec![Units { table: table.into(), first, past }]);
        (rows, bytes) = (rows + one.rows, bytes + one.bytes);
    }
    // Every COPY has a header of 19 bytes and a trailer of 2 bytes (PostgreSQL manual, COPY, binary format).
    let framing = |connections| 21 * cut_pieces(&igen(1), connections, &[]).len() as u64;
    assert_eq!((rows, bytes - framing(3)), (whole.rows, whole.bytes - framing(1)));
    let strange = plan(vec![Units { table: "igen_order".into(), first: 0, past: u64::MAX }]);
    assert!(load(&strange, &Progress::default()).is_err());
}

#[test]
fn a_stopped_load_ends_with_a_failure() {
    let plan = LoadPlan {
        engine: Engine::Null { service_ns: 0 },
        generator: igen(1),
        connections: 2,
        done: Vec::new(),
        only: Vec::new(),
        note: String::new(),
        silence_s: None,
    };
    let progress = Progress::default();
    progress.stop();
    assert!(load(&plan, &progress).is_err());
    let progress = Progress::default();
    let loaded = load(&plan, &progress).unwrap();
    assert_eq!((loaded.rows, loaded.bytes), (progress.rows(), progress.bytes()));
}
