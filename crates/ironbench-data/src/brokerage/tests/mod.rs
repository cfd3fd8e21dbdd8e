//! Tests the rows of all tables: their number, the division into units, their keys and references.

mod derived_tables;
mod draws;

pub use draws::fits;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proptest::prelude::*;

use super::population::Trades;
use super::*;
use crate::Generator;
use crate::load::write_text;
use crate::row::CopyText;

fn brokerage(customers: u64, days: u64, seed: u64) -> Brokerage {
    Brokerage { customers, days, lob: Lob::Small, seed }
}

/// Returns the rows of some units of a table as text.
fn piece(brokerage: &Brokerage, table: &str, units: Range<u64>) -> String {
    let mut text = Vec::new();
    let mut sink = CopyText::new(|bytes: &[u8], _| {
        text.extend_from_slice(bytes);
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(()) = brokerage.emit(table, units, &mut sink);
    let Ok(()) = sink.finish();
    String::from_utf8(text).unwrap()
}

fn shape(brokerage: &Brokerage, table: &str) -> Table {
    *brokerage.tables().iter().find(|known| known.name == table).unwrap()
}

/// The rows of a table, split into columns.
struct Rows {
    text: String,
    columns: &'static [&'static str],
}

impl Rows {
    fn of(brokerage: &Brokerage, table: &str) -> Self {
        let shape = shape(brokerage, table);
        Self { text: piece(brokerage, table, 0..shape.units), columns: shape.columns }
    }

    /// Returns the named columns of each row.
    fn all<'a, const N: usize>(&'a self, names: [&str; N]) -> impl Iterator<Item = [&'a str; N]> {
        let places = names.map(|name| self.columns.iter().position(|column| *column == name).unwrap());
        self.text.lines().map(move |line| {
            let (mut named, mut values) = ([""; N], 0);
            for (index, value) in line.split('\t').enumerate() {
                (0..N).filter(|at| places[*at] == index).for_each(|at| named[at] = value);
                values = index + 1;
            }
            assert_eq!(values, self.columns.len(), "{line}");
            named
        })
    }

    fn count(&self) -> u64 {
        self.text.lines().count() as u64
    }
}

fn whole(text: &str) -> i64 {
    text.parse().unwrap()
}

/// Converts a number with two decimals to hundredths.
fn cents(text: &str) -> i64 {
    whole(&text.replace('.', ""))
}

#[test]
fn there_are_33_tables() {
    let names: BTreeSet<&str> = brokerage(1000, 1, 0).tables().iter().map(|table| table.name).collect();
    assert_eq!(names.len(), 33);
}

#[test]
fn tables_that_do_not_follow_from_trades_have_the_rows_of_their_scale() {
    for units in [1, 3] {
        let brokerage = brokerage(units * 1000, 1, 7);
        let fixed = [
            ("charge", 15),
            ("commission_rate", 240),
            ("exchange", 4),
            ("industry", 102),
            ("sector", 12),
            ("status_type", 5),
            ("taxrate", 320),
            ("trade_type", 5),
            ("zip_code", 14_741),
            ("trade_request", 0),
        ];
        let scaled = [
            ("customer", 1000),
            ("customer_account", 5000),
            ("customer_taxrate", 2000),
            ("watch_list", 1000),
            ("company", 500),
            ("company_competitor", 1500),
            ("daily_market", 893_925),
            ("financial", 10_000),
            ("last_trade", 685),
            ("news_item", 1000),
            ("news_xref", 1000),
            ("security", 685),
            ("broker", 10),
        ];
        for (table, rows) in fixed.into_iter().chain(scaled.map(|(table, rows)| (table, rows * units))) {
            assert_eq!(Rows::of(&brokerage, table).count(), rows, "{table}");
        }
        assert_eq!(Rows::of(&brokerage, "address").count(), 4 + 1500 * units);
        // The tolerance is five standard deviations: 0.534 for an account, 29.2 for a list.
        for (table, mean, deviation) in [("account_permission", 7_100, 189), ("watch_item", 100_000, 4_610)] {
            let rows = Rows::of(&brokerage, table).count();
            assert!(rows.abs_diff(mean * units) < deviation * units, "{table}: {rows}");
        }
    }
}

#[test]
fn tables_that_follow_from_trades_have_the_rows_of_their_days() {
    let brokerage = brokerage(1000, 3, 7);
    let rows = |table| Rows::of(&brokerage, table).count();
    let trades = 3 * 57_600;
    assert_eq!((rows("trade"), rows("settlement")), (trades, trades));
    for (table, share) in [("trade_history", 2.4), ("cash_transaction", 0.92)] {
        let found = rows(table) as f64 / trades as f64;
        assert!((found / share - 1.0).abs() < 0.01, "{table}: {found} of a trade");
    }
}

#[test]
fn after_300_days_accounts_hold_as_much_as_the_standard_has_them_hold() {
    // Any group of customers is representative: its activity and number of accounts differ from the average of all
    // customers by a few percent.
    let brokerage = brokerage(1000, 300, 3);
    let (groups, trades) = (0..2, Trades::new(300));
    let made = (trades.before(80) - trades.before(0)) as f64;
    let rows = |table| piece(&brokerage, table, groups.clone()).lines().count() as f64;
    let accounts: usize = (0..80).map(|customer| brokerage.accounts(customer).count()).sum();
    let ratios = [
        ("holding", rows("holding") / made, 0.051, 0.15),
        ("holding_history", rows("holding_history") / made, 1.340, 0.05),
        ("holding_summary", rows("holding_summary") / accounts as f64, 9.956, 0.05),
    ];
    for (table, found, expected, tolerance) in ratios {
        assert!((found / expected - 1.0).abs() < tolerance, "{table}: {found:.4}, expected {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]
    #[test]
    fn rows_do_not_depend_on_how_tables_are_cut(seed: u64, cuts in prop::collection::vec(0.0..1.0f64, 1..5)) {
        let brokerage = brokerage(2000, 1, seed);
        for table in brokerage.tables() {
            let mut bounds: Vec<u64> = cuts.iter().map(|cut| (table.units as f64 * cut) as u64).collect();
            bounds.extend([0, table.units]);
            bounds.sort_unstable();
            let mut pieces: Vec<_> = bounds.windows(2).map(|pair| pair[0]..pair[1]).collect();
            // The pieces are generated in reverse order, to show that later pieces need no state of earlier ones.
            let made: BTreeMap<u64, String> =
                pieces.drain(..).rev().map(|units| (units.end, piece(&brokerage, table.name, units))).collect();
            let whole = piece(&brokerage, table.name, 0..table.units);
            prop_assert!(made.into_values().collect::<String>() == whole, "{}", table.name);
        }
    }

    #[test]
    fn rows_do_not_depend_on_the_number_of_threads(seed: u64, threads in 2usize..7) {
        let generator = Generator::Brokerage(brokerage(1000, 1, seed));
        for table in ["trade", "holding_history", "customer_account", "broker"] {
            let text = |threads| {
                let mut out = Vec::new();
                write_text(&generator, table, threads, &mut out).unwrap();
                out
            };
            prop_assert!(text(1) == text(threads), "{table}");
        }
    }
}

#[test]
fn keys_are_unique_and_references_are_met() {
    let brokerage = brokerage(2000, 1, 5);
    let keys: &[(&str, &[&str])] = &[
        ("trade", &["t_id"]),
        ("trade_history", &["th_t_id", "th_st_id"]),
        ("settlement", &["se_t_id"]),
        ("cash_transaction", &["ct_t_id"]),
        ("holding_history", &["hh_h_t_id", "hh_t_id"]),
        ("holding", &["h_t_id"]),
        ("holding_summary", &["hs_ca_id", "hs_s_symb"]),
        ("broker", &["b_id"]),
        ("broker", &["b_name"]),
        ("watch_item", &["wi_wl_id", "wi_s_symb"]),
        ("customer", &["c_id"]),
        ("customer", &["c_tax_id"]),
        ("customer_account", &["ca_id"]),
        ("account_permission", &["ap_ca_id", "ap_tax_id"]),
        ("customer_taxrate", &["cx_tx_id", "cx_c_id"]),
        ("watch_list", &["wl_id"]),
        ("address", &["ad_id"]),
        ("financial", &["fi_co_id", "fi_year", "fi_qtr"]),
        ("company", &["co_id"]),
        ("company", &["co_name"]),
        ("company_competitor", &["cp_co_id", "cp_comp_co_id", "cp_in_id"]),
        ("security", &["s_symb"]),
        ("security", &["s_co_id", "s_issue"]),
        ("last_trade", &["lt_s_symb"]),
        ("news_item", &["ni_id"]),
        ("news_xref", &["nx_ni_id", "nx_co_id"]),
        ("zip_code", &["zc_code"]),
        ("taxrate", &["tx_id"]),
        ("commission_rate", &["cr_c_tier", "cr_tt_id", "cr_ex_id", "cr_from_qty"]),
        ("industry", &["in_id"]),
        ("industry", &["in_name"]),
        ("charge", &["ch_tt_id", "ch_c_tier"]),
        ("sector", &["sc_id"]),
        ("status_type", &["st_id"]),
        ("trade_type", &["tt_id"]),
        ("exchange", &["ex_id"]),
        ("daily_market", &["dm_date", "dm_s_symb"]),
    ];
    let references = [
        ("trade", "t_ca_id", "customer_account", "ca_id"),
        ("trade", "t_s_symb", "security", "s_symb"),
        ("trade", "t_tt_id", "trade_type", "tt_id"),
        ("trade", "t_st_id", "status_type", "st_id"),
        ("trade_history", "th_st_id", "status_type", "st_id"),
        ("holding", "h_t_id", "trade", "t_id"),
        ("holding_history", "hh_h_t_id", "trade", "t_id"),
        ("holding_summary", "hs_s_symb", "security", "s_symb"),
        ("watch_item", "wi_s_symb", "security", "s_symb"),
        ("watch_item", "wi_wl_id", "watch_list", "wl_id"),
        ("watch_list", "wl_c_id", "customer", "c_id"),
        ("customer", "c_ad_id", "address", "ad_id"),
        ("customer", "c_st_id", "status_type", "st_id"),
        ("customer_account", "ca_b_id", "broker", "b_id"),
        ("customer_account", "ca_c_id", "customer", "c_id"),
        ("account_permission", "ap_ca_id", "customer_account", "ca_id"),
        ("account_permission", "ap_tax_id", "customer", "c_tax_id"),
        ("customer_taxrate", "cx_tx_id", "taxrate", "tx_id"),
        ("customer_taxrate", "cx_c_id", "customer", "c_id"),
        ("address", "ad_zc_code", "zip_code", "zc_code"),
        ("company", "co_in_id", "industry", "in_id"),
        ("company", "co_ad_id", "address", "ad_id"),
        ("company_competitor", "cp_comp_co_id", "company", "co_id"),
        ("security", "s_co_id", "company", "co_id"),
        ("company_competitor", "cp_in_id", "industry", "in_id"),
        ("security", "s_ex_id", "exchange", "ex_id"),
        ("exchange", "ex_ad_id", "address", "ad_id"),
        ("financial", "fi_co_id", "company", "co_id"),
        ("industry", "in_sc_id", "sector", "sc_id"),
        ("last_trade", "lt_s_symb", "security", "s_symb"),
        ("daily_market", "dm_s_symb", "security", "s_symb"),
        ("news_xref", "nx_ni_id", "news_item", "ni_id"),
        ("news_xref", "nx_co_id", "company", "co_id"),
        ("charge", "ch_tt_id", "trade_type", "tt_id"),
        ("commission_rate", "cr_ex_id", "exchange", "ex_id"),
        ("broker", "b_st_id", "status_type", "st_id"),
    ];
    let rows: HashMap<&str, Rows> =
        brokerage.tables().iter().map(|table| (table.name, Rows::of(&brokerage, table.name))).collect();
    for (table, columns) in keys {
        let mut seen = HashSet::new();
        // A column that occurs twice in a key changes nothing.
        let named: [&str; 4] = std::array::from_fn(|at| columns[at.min(columns.len() - 1)]);
        for (row, key) in rows[table].all(named).enumerate() {
            assert!(seen.insert(key), "{table} {columns:?} row {row}");
        }
    }
    for (table, column, target, key) in references {
        let known: HashSet<&str> = rows[target].all([key]).map(|[value]| value).collect();
        assert!(rows[table].all([column]).all(|[value]| known.contains(value)), "{table}.{column} to {target}.{key}");
    }
    let own = rows["company_competitor"].all(["cp_co_id", "cp_comp_co_id"]).filter(|[one, other]| one == other).count();
    assert_eq!(own, 0);
}

#[test]
fn news_are_as_long_as_asked_for() {
    for (lob, low, high) in [(Lob::Full, 99_980, 100_000), (Lob::Small, 980, 1000), (Lob::None, 0, 0)] {
        let brokerage = Brokerage { customers: 1000, days: 1, lob, seed: 1 };
        let text = piece(&brokerage, "news_item", 0..20);
        for line in text.lines() {
            let item = line.split('\t').nth(3).unwrap().len();
            assert!((low..=high).contains(&item), "{lob:?}: {item}");
        }
    }
}
