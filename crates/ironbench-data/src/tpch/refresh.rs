//! The rows that the sets of refresh function RF1 insert.
//!
//! A set inserts as many orders as it deletes, by the rules of the initial population (TPC-H specification 2.17.3,
//! clauses 2.6 and 4.2). A new order has other contents than the order that it replaces. Only the keys of the two are
//! close to each other. The generator continues its random number streams after the last loaded order to generate the
//! new ones. Sets 3,001 to 4,000 insert the loaded rows again. After them, the database is as it was loaded.

use tpchgen::generators::OrderGenerator;

/// Number of refresh sets into which the orders are divided. The sets after these divide the orders again, and use
/// other keys.
pub const SETS: u64 = 1000;
/// Number of groups of `SETS` refresh sets. Of every 32 keys, each group uses another eight. A fifth group would use
/// the same keys as the first.
const KEY_GROUPS: u64 = 4;
const KEYS_OF_A_GROUP: u64 = 8;
/// The lowest bits of a key, of which there are this many, select one of eight keys. The next constant is the number of
/// bits above them, which select one of the four groups.
const SPARSE_KEEP: i64 = 3;
const SPARSE_BITS: i64 = 2;

/// The orders of one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewOrders {
    /// First part of the rows, in `tpchgen`'s partitioning into `SETS` parts. The rows of parts beyond `SETS` are not
    /// loaded.
    pub part: i32,
    /// Number of orders.
    pub count: i64,
    pub keys: Keys,
}

/// Converts the key that `tpchgen` gives to an order to the key in the set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keys {
    /// Number that is subtracted from the position of an order before its key is computed.
    shift: i64,
    /// Number that is added to the key of an order.
    offset: i64,
}

impl NewOrders {
    /// Returns the orders of the set with this number, from 1.
    pub fn of(scale_factor: f64, number: u64) -> Self {
        let (group, set) = ((number - 1) / SETS + 1, (number - 1) % SETS + 1);
        let offset = group % KEY_GROUPS * KEYS_OF_A_GROUP;
        let skipped = if offset == 0 { 0 } else { group * SETS };
        let each = OrderGenerator::calculate_row_count(scale_factor, 1, SETS as i32);
        Self {
            part: (set + skipped) as i32,
            count: OrderGenerator::calculate_row_count(scale_factor, set as i32, SETS as i32),
            keys: Keys { shift: skipped as i64 * each, offset: offset as i64 },
        }
    }

    /// Returns the parts that contain the rows, each with the key before which the set ends. The last set may have more
    /// orders than the others, because it includes the remainder of the division.
    pub fn parts(&self, scale_factor: f64) -> impl Iterator<Item = (i32, i64)> {
        let each = OrderGenerator::calculate_row_count(scale_factor, 1, SETS as i32);
        let first = i64::from(self.part - 1) * each;
        let end = OrderGenerator::make_order_key(first + self.count + 1);
        let parts = if i64::from(self.part) == SETS as i64 { 1 } else { (self.count + each - 1) / each };
        (self.part..).take(parts as usize).map(move |part| (part, end))
    }
}

impl Keys {
    #[inline]
    pub fn of(self, key: i64) -> i64 {
        if self.shift == 0 {
            return key + self.offset;
        }
        let position = (key >> (SPARSE_KEEP + SPARSE_BITS) << SPARSE_KEEP) + (key & ((1 << SPARSE_KEEP) - 1));
        OrderGenerator::make_order_key(position - self.shift) + self.offset
    }
}
