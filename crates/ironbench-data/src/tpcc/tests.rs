use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::random_values::{OF_NAMES, RandomText, nurand};
use super::*;
use crate::row::CopyText;
use crate::row_rng::RowRng;

fn tpcc(warehouses: u64, seed: u64) -> Tpcc {
    Tpcc { warehouses, c_load: 173, seed }
}

/// The rows of a table, as one list of the texts of all values. Values are found by the name of the column.
struct Rows {
    columns: &'static [&'static str],
    text: String,
}

impl Rows {
    fn of(tpcc: &Tpcc, table: &str) -> Self {
        let known = tpcc.tables().into_iter().find(|known| known.name == table).unwrap();
        Self { columns: known.columns, text: emitted(tpcc, table, std::iter::once(0..known.units)) }
    }

    fn all<'a, const N: usize>(&'a self, names: [&str; N]) -> impl Iterator<Item = [&'a str; N]> {
        let places = names.map(|name| self.columns.iter().position(|column| *column == name).unwrap());
        self.text.lines().map(move |line| {
            let values: Vec<&str> = line.split('\t').collect();
            assert_eq!(values.len(), self.columns.len(), "{line}");
            places.map(|place| values[place])
        })
    }

    fn column(&self, name: &str) -> impl Iterator<Item = &str> {
        self.all([name]).map(|[value]| value)
    }

    fn numbers(&self, name: &str) -> Vec<u64> {
        self.column(name).map(|value| value.parse().unwrap()).collect()
    }
}

fn emitted(tpcc: &Tpcc, table: &str, pieces: impl Iterator<Item = Range<u64>>) -> String {
    let mut text = Vec::new();
    let mut sink = CopyText::new(|bytes: &[u8], _| {
        text.extend_from_slice(bytes);
        Ok::<(), std::convert::Infallible>(())
    });
    pieces.for_each(|units| tpcc.emit(table, units, &mut sink).unwrap());
    sink.finish().unwrap();
    String::from_utf8(text).unwrap()
}

fn cents(value: &str) -> i64 {
    value.replace('.', "").parse().unwrap()
}

/// Asserts that `count` is 10% of `all`, within five standard deviations of a binomial distribution.
fn is_a_tenth(count: usize, all: usize) {
    let deviation = (all as f64 * 0.09).sqrt();
    assert!((count as f64 - all as f64 / 10.0).abs() < 5.0 * deviation, "{count} of {all}");
}

#[test]
fn tables_have_the_rows_of_the_standard() {
    let tpcc = tpcc(2, 7);
    let mut counts = BTreeMap::new();
    for table in tpcc.tables() {
        let text = Rows::of(&tpcc, table.name).text;
        counts.insert(table.name, text.lines().count());
        let (size, said) = (text.len() as u64, table.units * table.bytes_per_unit);
        assert!(size.abs_diff(said) * 10 < size.max(2_000), "{}: {said} for {size}", table.name);
    }
    // An order has ten lines on average. The standard deviation of their total number is the root of 10 for each order.
    let lines = counts.remove("order_line").unwrap();
    assert!(lines.abs_diff(600_000) < 5 * 775, "{lines}");
    let expected = [
        ("customer", 60_000),
        ("district", 20),
        ("history", 60_000),
        ("item", 100_000),
        ("new_order", 18_000),
        ("orders", 60_000),
        ("stock", 200_000),
        ("warehouse", 2),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]
    #[test]
    fn rows_do_not_depend_on_the_division_into_pieces_nor_on_the_number_of_warehouses(seed: u64, cut in 1u64..10) {
        let (few, many) = (tpcc(1, seed), tpcc(3, seed));
        for table in few.tables() {
            let end = table.units.min(20 * cut);
            let whole = emitted(&few, table.name, std::iter::once(0..end));
            let pieces = (0..end).step_by(cut as usize).map(|start| start..(start + cut).min(end));
            prop_assert_eq!(&whole, &emitted(&many, table.name, pieces));
        }
    }
}

#[test]
fn keys_are_complete() {
    let tpcc = tpcc(2, 3);
    let whole = |table, names: [&str; 3]| -> BTreeSet<[u64; 3]> {
        let rows = Rows::of(&tpcc, table);
        let keys: Vec<[u64; 3]> = rows.all(names).map(|key| key.map(|value| value.parse().unwrap())).collect();
        let unique: BTreeSet<_> = keys.iter().copied().collect();
        assert_eq!(unique.len(), keys.len(), "{table}");
        unique
    };
    let customers = whole("customer", ["c_w_id", "c_d_id", "c_id"]);
    assert_eq!(customers.first(), Some(&[1, 1, 1]));
    assert_eq!(customers.last(), Some(&[2, 10, 3000]));
    assert_eq!(customers, whole("history", ["h_c_w_id", "h_c_d_id", "h_c_id"]));
    assert_eq!(customers, whole("history", ["h_w_id", "h_d_id", "h_c_id"]));
    assert_eq!(customers, whole("orders", ["o_w_id", "o_d_id", "o_id"]));
    // Every customer has one order. The order numbers are not in the order of the customers.
    assert_eq!(customers, whole("orders", ["o_w_id", "o_d_id", "o_c_id"]));
    let orders = Rows::of(&tpcc, "orders");
    let same = orders.all(["o_id", "o_c_id"]).filter(|[order, customer]| order == customer).count();
    assert!(same < 60, "{same} of 60000");
    let undelivered = whole("new_order", ["no_w_id", "no_d_id", "no_o_id"]);
    assert_eq!(undelivered, customers.into_iter().filter(|key| key[2] > 2_100).collect());
    let lines = Rows::of(&tpcc, "order_line");
    let mut counts: BTreeMap<[u64; 3], u64> = BTreeMap::new();
    for key in lines.all(["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"]) {
        let [warehouse, district, order, line] = key.map(|value| value.parse().unwrap());
        let count = counts.entry([warehouse, district, order]).or_default();
        *count += 1;
        assert_eq!(*count, line);
    }
    let counted: BTreeMap<[u64; 3], u64> = orders
        .all(["o_w_id", "o_d_id", "o_id", "o_ol_cnt"])
        .map(|row| row.map(|value| value.parse().unwrap()))
        .map(|[warehouse, district, order, lines]| ([warehouse, district, order], lines))
        .collect();
    assert_eq!(counts, counted);
    assert_eq!(counts.values().copied().collect::<BTreeSet<u64>>(), (5..=15).collect());
    let stock: BTreeSet<(u64, u64)> = {
        let stock = Rows::of(&tpcc, "stock");
        stock.numbers("s_w_id").into_iter().zip(stock.numbers("s_i_id")).collect()
    };
    assert_eq!((stock.len(), stock.first(), stock.last()), (200_000, Some(&(1, 1)), Some(&(2, 100_000))));
}

#[test]
fn delivered_orders_have_a_carrier_a_time_and_no_amount() {
    let tpcc = tpcc(1, 5);
    let orders = Rows::of(&tpcc, "orders");
    for [order, carrier, local] in orders.all(["o_id", "o_carrier_id", "o_all_local"]) {
        let delivered = order.parse::<u64>().unwrap() <= 2_100;
        assert_eq!(carrier != "\\N", delivered, "{order}");
        assert!(!delivered || (1..=10).contains(&carrier.parse::<u64>().unwrap()));
        assert_eq!(local, "1");
    }
    let lines = Rows::of(&tpcc, "order_line");
    for [order, time, amount, quantity, supplier] in
        lines.all(["ol_o_id", "ol_delivery_d", "ol_amount", "ol_quantity", "ol_supply_w_id"])
    {
        let delivered = order.parse::<u64>().unwrap() <= 2_100;
        assert_eq!(time, if delivered { "2026-01-01 00:00:00" } else { "\\N" });
        assert_eq!(amount == "0.00", delivered);
        assert!(delivered || (1..=999_999).contains(&cents(amount)));
        assert_eq!((quantity, supplier), ("5", "1"));
    }
    let items: BTreeSet<u64> = lines.numbers("ol_i_id").into_iter().collect();
    // 300,000 draws miss an item with probability exp(-3).
    assert!(items.first() >= Some(&1) && items.last() <= Some(&100_000) && items.len().abs_diff(95_000) < 500);
}

#[test]
fn amounts_are_those_of_the_standard() {
    let tpcc = tpcc(2, 9);
    let all_are = |table, column, value: &str| {
        let rows = Rows::of(&tpcc, table);
        assert!(rows.column(column).all(|found| found == value), "{table}.{column}");
    };
    all_are("warehouse", "w_ytd", "300000.00");
    all_are("district", "d_ytd", "30000.00");
    all_are("district", "d_next_o_id", "3001");
    all_are("customer", "c_balance", "-10.00");
    all_are("customer", "c_ytd_payment", "10.00");
    all_are("customer", "c_credit_lim", "50000.00");
    all_are("customer", "c_payment_cnt", "1");
    all_are("customer", "c_delivery_cnt", "0");
    all_are("customer", "c_middle", "OE");
    all_are("history", "h_amount", "10.00");
    for column in ["s_ytd", "s_order_cnt", "s_remote_cnt"] {
        all_are("stock", column, "0");
    }
    let within = |table, column, low: i64, high: i64| {
        let rows = Rows::of(&tpcc, table);
        let values: Vec<i64> = rows.column(column).map(cents).collect();
        let (least, most) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        assert!(low <= least && most <= high, "{table}.{column}: {least} to {most}");
        // With at least 1,000 draws, the least and greatest values are close to the ends of the range.
        assert!(values.len() < 1_000 || (least - low) + (high - most) <= (high - low) / 20, "{table}.{column}");
    };
    within("item", "i_price", 100, 10_000);
    within("item", "i_im_id", 1, 10_000);
    within("stock", "s_quantity", 10, 100);
    within("customer", "c_discount", 0, 5_000);
    within("warehouse", "w_tax", 0, 2_000);
    within("district", "d_tax", 0, 2_000);
}

#[test]
fn texts_have_their_lengths_and_a_tenth_is_original_or_bad_credit() {
    let tpcc = tpcc(1, 11);
    let lengths = |table, column, low: usize, high: usize| {
        let rows = Rows::of(&tpcc, table);
        let found: BTreeSet<usize> = rows.column(column).map(str::len).collect();
        assert!(low <= *found.first().unwrap() && *found.last().unwrap() <= high, "{table}.{column}: {found:?}");
        assert!(rows.column(column).count() < 10_000 || found.len() == high - low + 1, "{table}.{column}: {found:?}");
    };
    lengths("item", "i_name", 14, 24);
    lengths("item", "i_data", 26, 50);
    lengths("stock", "s_data", 26, 50);
    lengths("stock", "s_dist_10", 24, 24);
    lengths("customer", "c_first", 8, 16);
    lengths("customer", "c_street_1", 10, 20);
    lengths("customer", "c_state", 2, 2);
    lengths("customer", "c_phone", 16, 16);
    lengths("customer", "c_data", 300, 500);
    lengths("history", "h_data", 12, 24);
    lengths("warehouse", "w_name", 6, 10);
    lengths("order_line", "ol_dist_info", 24, 24);
    for (table, column) in [("item", "i_data"), ("stock", "s_data")] {
        let rows = Rows::of(&tpcc, table);
        let places: Vec<usize> = rows.column(column).filter_map(|text| text.find("ORIGINAL")).collect();
        is_a_tenth(places.len(), 100_000);
        assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), 43, "anywhere in 26 to 50 characters");
    }
    let customers = Rows::of(&tpcc, "customer");
    let credit: Vec<&str> = customers.column("c_credit").collect();
    is_a_tenth(credit.iter().filter(|credit| **credit == "BC").count(), credit.len());
    assert!(credit.iter().all(|credit| ["BC", "GC"].contains(credit)));
    assert!(customers.column("c_zip").all(|zip| zip.len() == 9 && zip.ends_with("11111")));
    assert!(customers.column("c_phone").all(|phone| phone.bytes().all(|byte| byte.is_ascii_digit())));
}

#[test]
fn last_names_have_a_syllable_for_each_digit() {
    let mut text = RandomText::default();
    assert_eq!(text.last_name(0), "BARBARBAR");
    assert_eq!(text.last_name(371), "PRICALLYOUGHT");
    assert_eq!(text.last_name(999), "EINGEINGEING");
    let names: BTreeSet<String> = (0..1000).map(|number| text.last_name(number).to_owned()).collect();
    assert_eq!(names.len(), 1000);
}

#[test]
fn the_first_customers_have_every_name_and_the_others_draw_theirs() {
    let tpcc = tpcc(1, 13);
    let customers = Rows::of(&tpcc, "customer");
    let mut text = RandomText::default();
    let number: BTreeMap<String, u64> = (0..1000).map(|number| (text.last_name(number).to_owned(), number)).collect();
    let mut drawn = [0u64; 1000];
    for [district, customer, name] in customers.all(["c_d_id", "c_id", "c_last"]) {
        let customer: u64 = customer.parse().unwrap();
        if customer <= 1000 {
            assert_eq!(number[name], customer - 1, "district {district}");
        } else {
            drawn[number[name] as usize] += 1;
        }
    }
    // The probability of each value is computed from all equally likely pairs of the two draws.
    let mut expected = [0f64; 1000];
    for coarse in 0..=OF_NAMES {
        for even in 0..1000 {
            expected[(((coarse | even) + tpcc.c_load) % 1000) as usize] += 20_000.0 / 256_000.0;
        }
    }
    let chi_squared: f64 = drawn
        .iter()
        .zip(expected)
        .map(|(&count, mean)| if mean > 0.0 { (count as f64 - mean).powi(2) / mean } else { count as f64 * 1e9 })
        .sum();
    // With 999 degrees of freedom, the mean is 999 and the standard deviation 45. If some values are impossible, both
    // are lower.
    assert!(chi_squared < 999.0 + 5.0 * 45.0, "{chi_squared}");
}

#[test]
fn numbers_that_are_not_uniform_stay_in_their_range() {
    let mut rng = RowRng::new(1, 2, 3);
    let drawn: BTreeSet<u64> = (0..200_000).map(|_| nurand(&mut rng, 1023, 1, 3000, 259)).collect();
    assert_eq!((drawn.first(), drawn.last()), (Some(&1), Some(&3000)));
}
