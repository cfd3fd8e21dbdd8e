//! Passes the columns of each table to a sink, in the order of `tables`.

use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{Customer, LineItem, Nation, Order, Part, PartSupp, Region, Supplier};

use super::refresh::Keys;
use crate::row::{Sink, TextBuffer};

pub(super) struct Rows<'a, S> {
    sink: &'a mut S,
    buffer: TextBuffer,
    wide: bool,
    whole_numbers: bool,
    order_keys: Keys,
}

impl<'a, S: Sink> Rows<'a, S> {
    pub(super) fn new(sink: &'a mut S, wide: bool, whole_numbers: bool, order_keys: Keys) -> Self {
        Self { sink, buffer: TextBuffer::default(), wide, whole_numbers, order_keys }
    }

    fn key(&mut self, key: i64) {
        if self.wide { self.sink.bigint(key) } else { self.sink.integer(key as i32) }
    }

    fn hundredths(&mut self, value: TPCHDecimal) {
        if self.whole_numbers { self.sink.bigint(value.into_inner()) } else { self.sink.decimal(value.into_inner()) }
    }

    fn date(&mut self, date: TPCHDate) {
        self.sink.date(date.to_unix_epoch());
    }

    fn shown(&mut self, value: &impl std::fmt::Display) {
        self.sink.text(self.buffer.of(format_args!("{value}")));
    }

    pub(super) fn lineitem(&mut self, row: &LineItem<'_>) -> Result<(), S::Error> {
        self.key(self.order_keys.of(row.l_orderkey));
        self.key(row.l_partkey);
        self.key(row.l_suppkey);
        self.sink.integer(row.l_linenumber);
        // Quantities are whole numbers. Engines without exact decimals store them unchanged.
        if self.whole_numbers {
            self.sink.bigint(row.l_quantity)
        } else {
            self.sink.decimal(row.l_quantity * 100)
        }
        self.hundredths(row.l_extendedprice);
        self.hundredths(row.l_discount);
        self.hundredths(row.l_tax);
        self.sink.text(row.l_returnflag);
        self.sink.text(row.l_linestatus);
        self.date(row.l_shipdate);
        self.date(row.l_commitdate);
        self.date(row.l_receiptdate);
        self.sink.text(row.l_shipinstruct);
        self.sink.text(row.l_shipmode);
        self.sink.text(row.l_comment);
        self.sink.end_row()
    }

    pub(super) fn order(&mut self, row: &Order<'_>) -> Result<(), S::Error> {
        self.key(self.order_keys.of(row.o_orderkey));
        self.key(row.o_custkey);
        self.sink.text(row.o_orderstatus.as_str());
        self.hundredths(row.o_totalprice);
        self.date(row.o_orderdate);
        self.sink.text(row.o_orderpriority);
        self.shown(&row.o_clerk);
        self.sink.integer(row.o_shippriority);
        self.sink.text(row.o_comment);
        self.sink.end_row()
    }

    pub(super) fn partsupp(&mut self, row: &PartSupp<'_>) -> Result<(), S::Error> {
        self.key(row.ps_partkey);
        self.key(row.ps_suppkey);
        self.sink.integer(row.ps_availqty);
        self.hundredths(row.ps_supplycost);
        self.sink.text(row.ps_comment);
        self.sink.end_row()
    }

    pub(super) fn part(&mut self, row: &Part<'_>) -> Result<(), S::Error> {
        self.key(row.p_partkey);
        self.shown(&row.p_name);
        self.shown(&row.p_mfgr);
        self.shown(&row.p_brand);
        self.sink.text(row.p_type);
        self.sink.integer(row.p_size);
        self.sink.text(row.p_container);
        self.hundredths(row.p_retailprice);
        self.sink.text(row.p_comment);
        self.sink.end_row()
    }

    pub(super) fn customer(&mut self, row: &Customer<'_>) -> Result<(), S::Error> {
        self.key(row.c_custkey);
        self.shown(&row.c_name);
        self.shown(&row.c_address);
        self.key(row.c_nationkey);
        self.shown(&row.c_phone);
        self.hundredths(row.c_acctbal);
        self.sink.text(row.c_mktsegment);
        self.sink.text(row.c_comment);
        self.sink.end_row()
    }

    pub(super) fn supplier(&mut self, row: &Supplier) -> Result<(), S::Error> {
        self.key(row.s_suppkey);
        self.shown(&row.s_name);
        self.shown(&row.s_address);
        self.key(row.s_nationkey);
        self.shown(&row.s_phone);
        self.hundredths(row.s_acctbal);
        self.sink.text(&row.s_comment);
        self.sink.end_row()
    }

    pub(super) fn nation(&mut self, row: &Nation<'_>) -> Result<(), S::Error> {
        self.key(row.n_nationkey);
        self.sink.text(row.n_name);
        self.key(row.n_regionkey);
        self.sink.text(row.n_comment);
        self.sink.end_row()
    }

    pub(super) fn region(&mut self, row: &Region<'_>) -> Result<(), S::Error> {
        self.key(row.r_regionkey);
        self.sink.text(row.r_name);
        self.sink.text(row.r_comment);
        self.sink.end_row()
    }
}
