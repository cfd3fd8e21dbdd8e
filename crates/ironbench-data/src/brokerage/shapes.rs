//! Names, columns and sizes of the 33 tables.

use super::Brokerage;
use super::market::PAST_DAYS;
use super::population::{COMPANIES, GROUP, LOAD_UNIT, SECURITIES, TRADES_PER_DAY};
use crate::plan::Table;

/// The unit by which a table is divided.
#[derive(Clone, Copy)]
enum Unit {
    /// A single row. The table has this many rows at any scale.
    Row(u64),
    /// A load unit: 1000 customers.
    Thousand,
    /// A group of 40 customers, for rows that are derived from trades. For this unit, `bytes` is the size per trade.
    Group,
    Customer,
    Company,
    Security,
    /// A business day with the past prices of all securities. For this unit, `bytes` is the size per security.
    Day,
    Address,
    News,
    /// No rows, because the table is empty at the start.
    Nothing,
}

pub struct Shape {
    name: &'static str,
    unit: Unit,
    /// Approximate size of a unit's rows as text.
    bytes: u64,
    columns: &'static [&'static str],
}

/// Number of addresses of exchanges, which precede the addresses of companies and customers.
pub const EXCHANGE_ADDRESSES: u64 = super::market::EXCHANGES;
pub const NEWS_PER_COMPANY: u64 = 2;
pub const ZIP_CODES: u64 = 14_741;
pub const INDUSTRIES: u64 = 102;
pub const SECTORS: u64 = 12;

impl Shape {
    pub fn table(&self, brokerage: &Brokerage) -> Table {
        let load_units = brokerage.load_units();
        let (units, bytes) = match self.unit {
            Unit::Row(rows) => (rows, self.bytes),
            Unit::Thousand => (load_units, self.bytes),
            Unit::Group => {
                (brokerage.customers / GROUP, self.bytes * TRADES_PER_DAY * brokerage.days * GROUP / LOAD_UNIT)
            }
            Unit::Customer => (brokerage.customers, self.bytes),
            Unit::Company => (load_units * COMPANIES, self.bytes),
            Unit::Security => (load_units * SECURITIES, self.bytes),
            Unit::Day => (PAST_DAYS, self.bytes * load_units * SECURITIES),
            Unit::Address => (EXCHANGE_ADDRESSES + load_units * (COMPANIES + LOAD_UNIT), self.bytes),
            Unit::News => (load_units * COMPANIES * NEWS_PER_COMPANY, self.bytes + brokerage.lob.bytes() as u64),
            Unit::Nothing => (0, self.bytes),
        };
        Table { name: self.name, columns: self.columns, units, bytes_per_unit: bytes.max(1) }
    }
}

const fn shape(name: &'static str, unit: Unit, bytes: u64, columns: &'static [&'static str]) -> Shape {
    Shape { name, unit, bytes, columns }
}

/// The shapes of all tables. The largest tables are first, so that the last pieces of a load are small.
#[rustfmt::skip]
pub const SHAPES: &[Shape] = &[
    shape("trade", Unit::Group, 165, &[
        "t_id", "t_dts", "t_st_id", "t_tt_id", "t_is_cash", "t_s_symb", "t_qty", "t_bid_price", "t_ca_id", "t_exec_name",
        "t_trade_price", "t_chrg", "t_comm", "t_tax", "t_lifo",
    ]),
    shape("trade_history", Unit::Group, 110, &["th_t_id", "th_st_id", "th_dts"]),
    shape("holding_history", Unit::Group, 60, &["hh_h_t_id", "hh_t_id", "hh_before_qty", "hh_after_qty"]),
    shape("settlement", Unit::Group, 60, &["se_t_id", "se_cash_type", "se_cash_due_date", "se_amt"]),
    shape("cash_transaction", Unit::Group, 85, &["ct_t_id", "ct_dts", "ct_amt", "ct_name"]),
    shape("news_item", Unit::News, 300, &[
        "ni_id", "ni_headline", "ni_summary", "ni_item", "ni_dts", "ni_source", "ni_author",
    ]),
    shape("daily_market", Unit::Day, 45, &[
        "dm_date", "dm_s_symb", "dm_close", "dm_high", "dm_low", "dm_vol",
    ]),
    shape("holding", Unit::Group, 6, &["h_t_id", "h_ca_id", "h_s_symb", "h_dts", "h_price", "h_qty"]),
    shape("holding_summary", Unit::Group, 2, &["hs_ca_id", "hs_s_symb", "hs_qty"]),
    shape("broker", Unit::Thousand, 600, &["b_id", "b_st_id", "b_name", "b_num_trades", "b_comm_total"]),
    shape("watch_item", Unit::Customer, 1700, &["wi_wl_id", "wi_s_symb"]),
    shape("customer", Unit::Customer, 240, &[
        "c_id", "c_tax_id", "c_st_id", "c_l_name", "c_f_name", "c_m_name", "c_gndr", "c_tier", "c_dob", "c_ad_id",
        "c_ctry_1", "c_area_1", "c_local_1", "c_ext_1", "c_ctry_2", "c_area_2", "c_local_2", "c_ext_2", "c_ctry_3",
        "c_area_3", "c_local_3", "c_ext_3", "c_email_1", "c_email_2",
    ]),
    shape("customer_account", Unit::Customer, 300, &["ca_id", "ca_b_id", "ca_c_id", "ca_name", "ca_tax_st", "ca_bal"]),
    shape("account_permission", Unit::Customer, 300, &["ap_ca_id", "ap_acl", "ap_tax_id", "ap_l_name", "ap_f_name"]),
    shape("customer_taxrate", Unit::Customer, 32, &["cx_tx_id", "cx_c_id"]),
    shape("watch_list", Unit::Customer, 22, &["wl_id", "wl_c_id"]),
    shape("address", Unit::Address, 55, &["ad_id", "ad_line1", "ad_line2", "ad_zc_code", "ad_ctry"]),
    shape("financial", Unit::Company, 2200, &[
        "fi_co_id", "fi_year", "fi_qtr", "fi_qtr_start_date", "fi_revenue", "fi_net_earn", "fi_basic_eps",
        "fi_dilut_eps", "fi_margin", "fi_inventory", "fi_assets", "fi_liability", "fi_out_basic", "fi_out_dilut",
    ]),
    shape("company", Unit::Company, 260, &[
        "co_id", "co_st_id", "co_name", "co_in_id", "co_sp_rate", "co_ceo", "co_ad_id", "co_desc", "co_open_date",
    ]),
    shape("company_competitor", Unit::Company, 90, &["cp_co_id", "cp_comp_co_id", "cp_in_id"]),
    shape("security", Unit::Security, 170, &[
        "s_symb", "s_issue", "s_st_id", "s_name", "s_ex_id", "s_co_id", "s_num_out", "s_start_date", "s_exch_date",
        "s_pe", "s_52wk_high", "s_52wk_high_date", "s_52wk_low", "s_52wk_low_date", "s_dividend", "s_yield",
    ]),
    shape("last_trade", Unit::Security, 50, &["lt_s_symb", "lt_dts", "lt_price", "lt_open_price", "lt_vol"]),
    shape("news_xref", Unit::News, 22, &["nx_ni_id", "nx_co_id"]),
    shape("zip_code", Unit::Row(ZIP_CODES), 30, &["zc_code", "zc_town", "zc_div"]),
    shape("taxrate", Unit::Row(super::costs::COUNTRIES + super::costs::DIVISIONS), 40, &[
        "tx_id", "tx_name", "tx_rate",
    ]),
    shape("commission_rate", Unit::Row(240), 30, &[
        "cr_c_tier", "cr_tt_id", "cr_ex_id", "cr_from_qty", "cr_to_qty", "cr_rate",
    ]),
    shape("industry", Unit::Row(INDUSTRIES), 35, &["in_id", "in_name", "in_sc_id"]),
    shape("charge", Unit::Row(15), 12, &["ch_tt_id", "ch_c_tier", "ch_chrg"]),
    shape("sector", Unit::Row(SECTORS), 20, &["sc_id", "sc_name"]),
    shape("status_type", Unit::Row(5), 15, &["st_id", "st_name"]),
    shape("trade_type", Unit::Row(5), 30, &["tt_id", "tt_name", "tt_is_sell", "tt_is_mrkt"]),
    shape("exchange", Unit::Row(super::market::EXCHANGES), 150, &[
        "ex_id", "ex_name", "ex_num_symb", "ex_open", "ex_close", "ex_desc", "ex_ad_id",
    ]),
    shape("trade_request", Unit::Nothing, 60, &["tr_t_id", "tr_tt_id", "tr_s_symb", "tr_qty", "tr_bid_price", "tr_b_id"]),
];
