//! The rows of TPC-H-derived workloads: eight tables, and the orders that refresh sets insert.
//!
//! Rows come from the crate `tpchgen` and are identical to the rows of the reference generator. A unit is one part of
//! `tpchgen`'s partitioning of a table. Any range of units can be generated without the rows before it.

pub mod arrow;
mod refresh;
mod rows;

use serde::{Deserialize, Serialize};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::plan::Table;
use crate::row::Sink;
use refresh::{Keys, NewOrders, SETS};
use rows::Rows;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tpch {
    pub scale_factor: f64,
    /// Whether money is in integer cents and rates in integer percent, for engines without exact decimals.
    pub whole_numbers: bool,
    /// Number (from 1) of a refresh set. If it is set, only the orders and lines that this set inserts are generated.
    #[serde(default)]
    pub refresh_set: Option<u64>,
}

/// Scale factor above which order keys exceed 2^31. Above it, all keys are bigint.
pub const WIDE_ABOVE: f64 = 300.0;

/// Properties of a table, known without generating its rows.
struct TableInfo {
    table: Table,
    /// Number of rows at scale factor 1 by which `tpchgen` partitions the table. The number is 0 for a table that is
    /// never partitioned. For `lineitem` it is the number of orders, and for `partsupp` the number of parts.
    base: u64,
    /// Number of these rows in one unit. A unit has about half a megabyte of text.
    per_unit: u64,
}

const LINEITEM: &[&str] = &[
    "l_orderkey",
    "l_partkey",
    "l_suppkey",
    "l_linenumber",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_tax",
    "l_returnflag",
    "l_linestatus",
    "l_shipdate",
    "l_commitdate",
    "l_receiptdate",
    "l_shipinstruct",
    "l_shipmode",
    "l_comment",
];
const ORDERS: &[&str] = &[
    "o_orderkey",
    "o_custkey",
    "o_orderstatus",
    "o_totalprice",
    "o_orderdate",
    "o_orderpriority",
    "o_clerk",
    "o_shippriority",
    "o_comment",
];
const PARTSUPP: &[&str] = &["ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost", "ps_comment"];
const PART: &[&str] =
    &["p_partkey", "p_name", "p_mfgr", "p_brand", "p_type", "p_size", "p_container", "p_retailprice", "p_comment"];
const CUSTOMER: &[&str] =
    &["c_custkey", "c_name", "c_address", "c_nationkey", "c_phone", "c_acctbal", "c_mktsegment", "c_comment"];
const SUPPLIER: &[&str] = &["s_suppkey", "s_name", "s_address", "s_nationkey", "s_phone", "s_acctbal", "s_comment"];
const NATION: &[&str] = &["n_nationkey", "n_name", "n_regionkey", "n_comment"];
const REGION: &[&str] = &["r_regionkey", "r_name", "r_comment"];

/// Properties of all tables. The largest tables are first, so that the last pieces to be copied are small. Sizes are
/// for rows as text at scale factor 1.
const TABLE_INFOS: &[TableInfo] = &[
    info("lineitem", LINEITEM, 1_500_000, 1_000, 488),
    info("orders", ORDERS, 1_500_000, 4_000, 110),
    info("partsupp", PARTSUPP, 200_000, 1_000, 576),
    info("part", PART, 200_000, 4_000, 117),
    info("customer", CUSTOMER, 150_000, 3_000, 158),
    info("supplier", SUPPLIER, 10_000, 3_000, 137),
    info("nation", NATION, 0, 25, 88),
    info("region", REGION, 0, 5, 77),
];

const fn info(
    name: &'static str,
    columns: &'static [&'static str],
    base: u64,
    per_unit: u64,
    bytes_per_row: u64,
) -> TableInfo {
    TableInfo { table: Table { name, columns, units: 1, bytes_per_unit: bytes_per_row * per_unit }, base, per_unit }
}

impl Tpch {
    pub fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = TABLE_INFOS.iter().map(|info| self.divided(info)).collect();
        if self.refresh_set.is_some() {
            // A refresh set is a single unit, whatever its size.
            tables.retain(|table| table.name == "orders" || table.name == "lineitem");
            tables.iter_mut().for_each(|table| table.units = 1);
        }
        tables
    }

    fn divided(&self, info: &TableInfo) -> Table {
        let rows = (info.base as f64 * self.scale_factor) as u64;
        Table { units: (rows / info.per_unit).max(1), ..info.table }
    }

    /// Returns which part of `tpchgen`'s partitioning a unit of a table is, and the number of parts.
    fn part(&self, table: &str, unit: u64) -> (i32, i32) {
        let units = TABLE_INFOS.iter().find(|info| info.table.name == table).map_or(1, |info| self.divided(info).units);
        (unit as i32 + 1, units as i32)
    }

    pub fn emit<S: Sink>(&self, table: &str, units: std::ops::Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        let sf = self.scale_factor;
        if let Some(set) = self.refresh_set {
            return self.emit_new(table, &NewOrders::of(sf, set), sink);
        }
        let mut rows = Rows::new(sink, sf > WIDE_ABOVE, self.whole_numbers, Keys::default());
        for unit in units {
            let (part, parts) = self.part(table, unit);
            match table {
                "lineitem" => LineItemGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.lineitem(&row))?,
                "orders" => OrderGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.order(&row))?,
                "partsupp" => PartSuppGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.partsupp(&row))?,
                "part" => PartGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.part(&row))?,
                "customer" => CustomerGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.customer(&row))?,
                "supplier" => SupplierGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.supplier(&row))?,
                "nation" => NationGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.nation(&row))?,
                "region" => RegionGenerator::new(sf, part, parts).iter().try_for_each(|row| rows.region(&row))?,
                _ => unreachable!("TPC-H has no table {table}"),
            }
        }
        Ok(())
    }

    /// Emits the orders of a refresh set, or the lines of these orders.
    fn emit_new<S: Sink>(&self, table: &str, new: &NewOrders, sink: &mut S) -> Result<(), S::Error> {
        let sf = self.scale_factor;
        let mut rows = Rows::new(sink, sf > WIDE_ABOVE, self.whole_numbers, new.keys);
        for (part, end) in new.parts(sf) {
            if table == "orders" {
                let orders = OrderGenerator::new(sf, part, SETS as i32);
                orders.iter().take_while(|row| row.o_orderkey < end).try_for_each(|row| rows.order(&row))?;
            } else {
                let lines = LineItemGenerator::new(sf, part, SETS as i32);
                lines.iter().take_while(|row| row.l_orderkey < end).try_for_each(|row| rows.lineitem(&row))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
