//! Splits SQL files into statements, for Python.

use std::sync::Mutex;

use ironbench_core::Error;
use ironbench_data::statements::{Dialect, Kind, Scanner};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

type Row<'py> = (&'static str, u64, usize, Bound<'py, PyBytes>);

/// Splits a file into statements. The file is passed piece by piece.
#[pyclass(module = "ironbench._core", frozen)]
pub struct SqlScanner {
    scanner: Mutex<Scanner>,
}

#[pymethods]
impl SqlScanner {
    #[new]
    #[pyo3(signature = (dialect, merged = Vec::new()))]
    fn new(dialect: &str, merged: Vec<String>) -> PyResult<Self> {
        let known = Dialect::named(dialect).ok_or_else(|| raise(Error::input(dialect, "unknown SQL dialect")))?;
        Ok(Self { scanner: Mutex::new(Scanner::new(known, &merged)) })
    }

    /// Returns the pieces of the text. Each has a kind, a line, the offset of the first word, and a text.
    #[pyo3(signature = (data, last = false))]
    fn feed<'py>(&self, py: Python<'py>, data: &[u8], last: bool) -> Vec<Row<'py>> {
        let pieces = py.detach(|| self.scanner.lock().expect("no thread panics with it").feed(data, last));
        pieces.into_iter().map(|one| (name(one.kind), one.line, one.begins, PyBytes::new(py, &one.text))).collect()
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Sql => "sql",
        Kind::Merged => "merged",
        Kind::Client => "client",
        Kind::Rows => "rows",
        Kind::RowsEnd => "rows-end",
        Kind::OpenText => "open-text",
        Kind::OpenRows => "open-rows",
    }
}
