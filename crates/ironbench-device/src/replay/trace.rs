//! A device's requests and completions, with one row per I/O, stored in columns.

use ironbench_core::{Error, Result};

use crate::device::Op;

/// Rows in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub time: Vec<u64>,
    pub op: Vec<Op>,
    pub offset: Vec<u64>,
    pub length: Vec<u32>,
    pub completed: Vec<u64>,
}

impl Trace {
    /// Decodes columns from little-endian bytes. A value of `time`, `offset` and `completed` has 8 bytes, one of
    /// `length` 4, and one of `op` 1 (0 read, 1 write, 2 flush).
    ///
    /// # Errors
    /// Input: the lengths of the columns do not match.
    pub fn from_bytes(time: &[u8], op: &[u8], offset: &[u8], length: &[u8], completed: &[u8]) -> Result<Self> {
        let rows = op.len();
        let whole = [time.len(), offset.len(), completed.len()].iter().all(|bytes| *bytes == rows * 8);
        if !whole || length.len() != rows * 4 {
            return Err(Error::input("trace", "the columns have different lengths"));
        }
        let op = op.iter().map(|code| match code {
            0 => Ok(Op::Read),
            1 => Ok(Op::Write),
            2 => Ok(Op::Flush),
            _ => Err(Error::input("trace", format!("{code} is not an operation")).hint("0 read, 1 write, 2 flush")),
        });
        let trace = Self {
            time: longs(time),
            op: op.collect::<Result<_>>()?,
            offset: longs(offset),
            length: length.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("4 bytes"))).collect(),
            completed: longs(completed),
        };
        for row in 0..rows {
            if trace.completed[row] < trace.time[row] {
                return Err(Error::input("trace", format!("I/O {row} was completed before it arrived")));
            }
            if row > 0 && trace.time[row] < trace.time[row - 1] {
                return Err(Error::input("trace", format!("I/O {row} arrived before the previous I/O"))
                    .hint("order the rows by time_ns"));
            }
        }
        Ok(trace)
    }

    pub fn len(&self) -> usize {
        self.op.len()
    }

    pub fn is_empty(&self) -> bool {
        self.op.is_empty()
    }

    /// Returns the end of the highest range accessed.
    pub fn end(&self) -> u64 {
        let ends = (0..self.len()).filter(|row| self.op[*row] != Op::Flush);
        ends.map(|row| self.offset[row].saturating_add(u64::from(self.length[row]))).max().unwrap_or(0)
    }
}

fn longs(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes"))).collect()
}
