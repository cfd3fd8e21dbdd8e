//! Generated rows as Python values, for drivers that are Python packages.

use std::collections::HashMap;

use ironbench_core::Error;
use ironbench_data::Generator;
use ironbench_data::row::Sink;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::data::{LoadProgress, unreadable};
use crate::errors::raise;

/// 1970-01-01 as a number for `date.fromordinal`.
const EPOCH: i64 = 719_163;

/// Passes the rows of the units to `insert`, which is called with the names of the columns and a list of at most
/// `max_rows` rows.
#[pyfunction]
pub fn hand_rows(
    py: Python<'_>,
    generator: &[u8],
    table: &str,
    units: (u64, u64),
    max_rows: usize,
    insert: Bound<'_, PyAny>,
    progress: &LoadProgress,
) -> PyResult<()> {
    let generator: Generator = serde_json::from_slice(generator).map_err(unreadable("generator"))?;
    let tables = generator.tables();
    let Some(known) = tables.iter().find(|known| known.name == table) else {
        return Err(raise(Error::input(table, "no such table in this workload")));
    };
    let mut batcher = RowBatcher {
        max_rows,
        columns: known.columns.iter().map(|name| (*name).to_owned()).collect(),
        insert,
        progress,
        rows: Vec::with_capacity(max_rows),
        row: Vec::new(),
        bytes: 0,
        error: None,
        decimal: py.import("decimal")?.getattr("Decimal")?,
        date: py.import("datetime")?.getattr("date")?.getattr("fromordinal")?,
        timestamp: py.import("datetime")?.getattr("datetime")?.getattr("fromisoformat")?,
        dates: HashMap::new(),
    };
    generator.emit(table, units.0..units.1, &mut batcher)?;
    batcher.finish()
}

/// A sink that collects rows as Python values, and passes them to Python in batches.
struct RowBatcher<'py, 'p> {
    max_rows: usize,
    columns: Vec<String>,
    insert: Bound<'py, PyAny>,
    progress: &'p LoadProgress,
    rows: Vec<Bound<'py, PyTuple>>,
    row: Vec<Bound<'py, PyAny>>,
    bytes: u64,
    /// The first error of the current row, which is raised at the end of the row.
    error: Option<PyErr>,
    decimal: Bound<'py, PyAny>,
    date: Bound<'py, PyAny>,
    timestamp: Bound<'py, PyAny>,
    /// Cache of dates. There are only a few thousand different dates, and each of them occurs in very many rows.
    dates: HashMap<i32, Bound<'py, PyAny>>,
}

impl<'py> RowBatcher<'py, '_> {
    fn add(&mut self, value: PyResult<Bound<'py, PyAny>>, bytes: u64) {
        self.bytes += bytes + 1;
        match value {
            Ok(value) => self.row.push(value),
            Err(error) => drop(self.error.get_or_insert(error)),
        }
    }

    fn number(&mut self, value: i64) {
        let object = value.into_pyobject(self.insert.py()).map(Bound::into_any).map_err(PyErr::from);
        self.add(object, u64::from(value.unsigned_abs().checked_ilog10().unwrap_or(0)) + 1);
    }

    fn exact(&mut self, text: String) {
        let bytes = text.len() as u64;
        self.add(self.decimal.call1((text,)), bytes);
    }

    fn finish(&mut self) -> PyResult<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let count = self.rows.len() as u64;
        let rows = PyList::new(self.insert.py(), self.rows.drain(..))?;
        self.insert.call1((self.columns.clone(), rows))?;
        self.progress.add(count, std::mem::take(&mut self.bytes))
    }
}

impl Sink for RowBatcher<'_, '_> {
    type Error = PyErr;

    fn smallint(&mut self, value: i16) {
        self.number(value.into());
    }

    fn integer(&mut self, value: i32) {
        self.number(value.into());
    }

    fn bigint(&mut self, value: i64) {
        self.number(value);
    }

    fn decimal(&mut self, hundredths: i64) {
        let (sign, value) = (if hundredths < 0 { "-" } else { "" }, hundredths.unsigned_abs());
        self.exact(format!("{sign}{}.{:02}", value / 100, value % 100));
    }

    fn rate(&mut self, ten_thousandths: i64) {
        let (sign, value) = (if ten_thousandths < 0 { "-" } else { "" }, ten_thousandths.unsigned_abs());
        self.exact(format!("{sign}{}.{:04}", value / 10_000, value % 10_000));
    }

    fn text(&mut self, value: &str) {
        let object = value.into_pyobject(self.insert.py()).map(Bound::into_any).map_err(PyErr::from);
        self.add(object, value.len() as u64);
    }

    fn date(&mut self, day: i32) {
        if let Some(known) = self.dates.get(&day) {
            return self.add(Ok(known.clone()), 10);
        }
        let made = self.date.call1((i64::from(day) + EPOCH,));
        if let Ok(made) = &made {
            self.dates.insert(day, made.clone());
        }
        self.add(made, 10);
    }

    fn timestamp(&mut self, second: i64) {
        let day = self.date.call1((second.div_euclid(86_400) + EPOCH,)).and_then(|day| day.str()?.extract::<String>());
        let (minutes, seconds) = (second.rem_euclid(86_400) / 60, second.rem_euclid(60));
        let text = day.map(|day| format!("{day} {:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60));
        self.add(text.and_then(|text| self.timestamp.call1((text,))), 19);
    }

    fn null(&mut self) {
        self.add(Ok(self.insert.py().None().into_bound(self.insert.py())), 0);
    }

    fn end_row(&mut self) -> PyResult<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.rows.push(PyTuple::new(self.insert.py(), self.row.drain(..))?);
        if self.rows.len() >= self.max_rows { self.finish() } else { Ok(()) }
    }
}
