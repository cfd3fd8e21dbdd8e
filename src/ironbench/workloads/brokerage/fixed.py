"""Rows of the 33 tables that trials do not change. These are most rows of most tables, and past trades except for their
text.

Trade-Update changes the text of past trades, Data-Maintenance changes one column in each of twelve tables
(data_maintenance.sql), and trade results change brokers, accounts and holdings. Holdings have no fixed rows; the rules
in `checks` cover them.
"""

from __future__ import annotations

from datetime import date, timedelta

from ironbench.workloads.fixed_rows import FixedRows

_FEW = 65_536
"""Sums of keys use the keys modulo this number, because sums in SQLite are limited to 64 bits."""


def _key(column: str) -> str:
    return f"{column} % {_FEW}"


_ALWAYS = (
    FixedRows("zip_code", ("length(zc_town)", "length(zc_div)")),
    FixedRows("address", (_key("ad_id"), "length(ad_line1)"), key="ad_id"),
    FixedRows("status_type", ("length(st_name)",)),
    FixedRows("taxrate", ("tx_rate",)),
    FixedRows("sector", ("length(sc_name)",)),
    FixedRows("industry", ("length(in_name)",)),
    FixedRows("exchange", ("ex_num_symb", "ex_open", "ex_close")),
    FixedRows("company", (_key("co_id"), _key("co_ad_id"), "length(co_name)"), key="co_id"),
    FixedRows("company_competitor", (_key("cp_co_id"), _key("cp_comp_co_id")), key="cp_co_id"),
    FixedRows("security", (_key("s_co_id"), "s_num_out", "s_52wk_high", "s_dividend")),
    FixedRows("last_trade", ("lt_open_price",)),
    FixedRows("financial", (_key("fi_co_id"), "fi_revenue", "fi_assets"), key="fi_co_id"),
    FixedRows("news_item", (_key("ni_id"), "length(ni_headline)", "length(ni_summary)"), key="ni_id"),
    FixedRows("news_xref", (_key("nx_ni_id"), _key("nx_co_id")), key="nx_ni_id"),
    FixedRows("broker", (_key("b_id"), "length(b_name)")),
    FixedRows("trade_type", ("tt_is_sell", "tt_is_mrkt")),
    FixedRows("charge", ("ch_c_tier", "ch_chrg")),
    FixedRows("commission_rate", ("cr_from_qty", "cr_to_qty", "cr_rate")),
    FixedRows("customer", (_key("c_id"), "c_tier", _key("c_ad_id"), "length(c_l_name)"), key="c_id"),
    FixedRows("customer_taxrate", (_key("cx_c_id"),)),
    FixedRows("customer_account", (_key("ca_id"), _key("ca_b_id"), _key("ca_c_id"), "ca_tax_st"), key="ca_id"),
    FixedRows("account_permission", (_key("ap_ca_id"), "length(ap_l_name)"), key="ap_ca_id"),
    FixedRows("watch_list", (_key("wl_id"), _key("wl_c_id")), key="wl_id"),
    FixedRows("watch_item", (_key("wi_wl_id"),), key="wi_wl_id"),
)


_SMALL = 20
"""Maximum number of load units for which all past prices are read. These are 18 million rows. For more load units,
prices are sampled."""
_FIRST_MONDAY = date(2000, 1, 3)
_MONDAYS = tuple(_FIRST_MONDAY + timedelta(weeks=20 * place) for place in range(13))
"""Days whose prices are read if past prices are sampled. Past prices cover five years."""


def fixed(past: int, units: int) -> tuple[FixedRows, ...]:
    """Returns the rows that do not change. `past`: number of the first trade that a trial can place. `units`: number of
    load units."""
    days = ", ".join(f"'{day}'" for day in _MONDAYS)
    return (
        *_ALWAYS,
        FixedRows("daily_market", ("dm_close", "dm_high", "dm_low"), "" if units <= _SMALL else f"dm_date in ({days})"),
        FixedRows(
            "trade", (_key("t_id"), _key("t_ca_id"), "t_qty", "t_trade_price", "t_comm"), f"t_id < {past}", "t_id"
        ),
        FixedRows("trade_history", (_key("th_t_id"),), f"th_t_id < {past}", "th_t_id"),
        FixedRows("settlement", (_key("se_t_id"), "se_amt"), f"se_t_id < {past}", "se_t_id"),
        FixedRows("cash_transaction", (_key("ct_t_id"), "ct_amt"), f"ct_t_id < {past}", "ct_t_id"),
        FixedRows(
            "holding_history", (_key("hh_t_id"), "hh_before_qty", "hh_after_qty"), f"hh_t_id < {past}", "hh_t_id"
        ),
    )
