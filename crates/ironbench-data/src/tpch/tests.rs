use super::*;
use crate::Generator;
use crate::load::write_text;

fn text(scale_factor: f64, table: &str, refresh_set: Option<u64>, whole_numbers: bool, threads: usize) -> String {
    let generator = Generator::Tpch(Tpch { scale_factor, whole_numbers, refresh_set });
    let mut out = Vec::new();
    write_text(&generator, table, threads, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn keys(text: &str) -> Vec<u64> {
    text.lines().map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn rows_of_the_smallest_database_are_those_of_the_reference() {
    let counts = [("lineitem", 60_175), ("orders", 15_000), ("partsupp", 8_000), ("part", 2_000)];
    for (table, rows) in
        counts.into_iter().chain([("customer", 1_500), ("supplier", 100), ("nation", 25), ("region", 5)])
    {
        assert_eq!(text(0.01, table, None, false, 3).lines().count(), rows, "{table}");
    }
    // This is the first line of the reference data at scale factor 0.01.
    let first = "1\t1552\t93\t1\t17.00\t24710.35\t0.04\t0.02\tN\tO\t1996-03-13\t1996-02-12\t1996-03-22\t\
                 DELIVER IN PERSON\tTRUCK\tegular courts above the";
    assert_eq!(text(0.01, "lineitem", None, false, 1).lines().next(), Some(first));
    let whole = first.replace("17.00\t24710.35\t0.04\t0.02", "17\t2471035\t4\t2");
    assert_eq!(text(0.01, "lineitem", None, true, 1).lines().next(), Some(whole.as_str()));
}

#[test]
fn rows_do_not_depend_on_the_division_into_units() {
    for (table, base) in [("orders", 1_500_000.0), ("supplier", 10_000.0)] {
        let whole: Vec<String> = match table {
            "orders" => OrderGenerator::new(0.037, 1, 1).iter().map(|row| row.o_comment.to_owned()).collect(),
            _ => SupplierGenerator::new(0.037, 1, 1).iter().map(|row| row.s_comment).collect(),
        };
        let ours = text(0.037, table, None, false, 4);
        let comments: Vec<&str> = ours.lines().map(|line| line.rsplit('\t').next().unwrap()).collect();
        assert_eq!(comments.len(), (base * 0.037) as usize);
        assert_eq!(comments, whole);
    }
}

#[test]
fn a_refresh_set_inserts_keys_of_the_second_eight_of_each_32() {
    let first = keys(&text(1.0, "orders", Some(1), false, 1));
    assert_eq!(first.len(), 1500);
    assert_eq!(&first[..9], [9, 10, 11, 12, 13, 14, 15, 40, 41]);
    assert_eq!(first.last(), Some(&5996));
    let set = keys(&text(1.0, "orders", Some(75), false, 1));
    assert_eq!(set[0], 444_009);
    assert!(set.iter().all(|key| (8..16).contains(&(key % 32))));
    let lines = keys(&text(1.0, "lineitem", Some(75), false, 1));
    assert_eq!(lines.iter().collect::<std::collections::BTreeSet<_>>().len(), 1500);
    assert!(lines.iter().all(|key| set.contains(key)));
}

/// Returns the rows without their order keys.
fn contents(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split_once('\t').unwrap().1).collect()
}

#[test]
fn new_orders_differ_from_those_that_they_replace_and_from_other_sets() {
    let loaded = text(0.01, "orders", None, false, 1);
    let all: std::collections::BTreeSet<&str> = contents(&loaded).into_iter().collect();
    let first = text(0.01, "orders", Some(1), false, 1);
    let second = text(0.01, "orders", Some(2), false, 1);
    let later = text(0.01, "orders", Some(1001), false, 1);
    assert!(contents(&first).iter().all(|row| !all.contains(row)));
    assert_ne!(contents(&first), contents(&second));
    assert_ne!(contents(&first), contents(&later));
    let again = text(0.01, "orders", Some(3001), false, 1);
    assert_eq!(again.lines().collect::<Vec<_>>(), loaded.lines().take(15).collect::<Vec<_>>());
}

#[test]
fn the_status_and_price_of_a_new_order_are_those_of_its_lines() {
    let orders = text(0.01, "orders", Some(7), true, 1);
    let lines = text(0.01, "lineitem", Some(7), true, 1);
    for order in orders.lines().map(|line| line.split('\t').collect::<Vec<_>>()) {
        let own = lines.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|line| line[0] == order[0]);
        let (mut price, mut open, mut count) = (0, 0, 0);
        for line in own {
            let number = |at: usize| line[at].parse::<i64>().unwrap();
            price += number(5) * (100 - number(6)) / 100 * (100 + number(7)) / 100;
            open += usize::from(line[9] == "O");
            count += 1;
        }
        assert_eq!(price, order[3].parse::<i64>().unwrap());
        assert!((1..=7).contains(&count));
        assert_eq!(
            order[2],
            if open == count {
                "O"
            } else if open == 0 {
                "F"
            } else {
                "P"
            }
        );
    }
}

#[test]
fn every_order_is_replaced_once_by_a_thousand_sets_and_the_last_has_the_remainder() {
    for sf in [0.01, 0.0111] {
        let old = keys(&text(sf, "orders", None, false, 1));
        let new: Vec<u64> = (1..=1000).flat_map(|set| keys(&text(sf, "orders", Some(set), false, 1))).collect();
        assert_eq!(new, old.iter().map(|key| key + 8).collect::<Vec<_>>());
        let last = keys(&text(sf, "lineitem", Some(1000), false, 1));
        assert_eq!(last.last(), new.last());
    }
}

#[test]
fn after_four_thousand_sets_keys_are_those_of_the_load_again() {
    let groups: Vec<u64> = [1, 1001, 2001, 3001].map(|set| keys(&text(0.01, "orders", Some(set), false, 1))[0]).into();
    assert_eq!(groups, [9, 17, 25, 1]);
}
