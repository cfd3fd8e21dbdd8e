//! Loading of generated rows, for Python.

use std::sync::Arc;

use ironbench_core::Error;
use ironbench_data::entries::Template;
use ironbench_data::tpch::arrow::{self, FFI_ArrowArrayStream};
use ironbench_data::wide::WideTable;
use ironbench_data::{Generator, LoadPlan, Progress, Units};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::errors::raise;

/// Progress of a running load.
#[pyclass(module = "ironbench._core", frozen)]
#[derive(Default)]
pub struct LoadProgress {
    shared: Arc<Progress>,
}

#[pymethods]
impl LoadProgress {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.shared.rows()
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.shared.bytes()
    }

    fn stop(&self) {
        self.shared.stop();
    }
}

impl LoadProgress {
    /// Counts rows and bytes. Raises FailureError if the load was stopped.
    pub fn add(&self, rows: u64, bytes: u64) -> PyResult<()> {
        self.shared.add(rows, bytes).map_err(raise)
    }
}

#[pyfunction]
pub fn load_rows<'py>(py: Python<'py>, plan: &[u8], progress: &LoadProgress) -> PyResult<Bound<'py, PyBytes>> {
    let plan: LoadPlan = serde_json::from_slice(plan).map_err(unreadable("load plan"))?;
    let shared = progress.shared.clone();
    let loaded = py.detach(|| ironbench_data::load(&plan, &shared)).map_err(raise)?;
    let json = serde_json::to_vec(&loaded).map_err(|error| raise(Error::failure("load", error.to_string())))?;
    Ok(PyBytes::new(py, &json))
}

/// Divides the tables into pieces. Returns the table, first unit and end unit of each piece.
#[pyfunction]
pub fn cut_rows(generator: &[u8], workers: usize, done: &[u8]) -> PyResult<Vec<(&'static str, u64, u64)>> {
    let generator: Generator = serde_json::from_slice(generator).map_err(unreadable("generator"))?;
    let done: Vec<Units> = serde_json::from_slice(done).map_err(unreadable("pieces done"))?;
    Ok(ironbench_data::cut_pieces(&generator, workers, &done))
}

/// Returns the LDIF of `count` entries, starting with number `first`. With a `count` of 0, only checks the template.
#[pyfunction]
pub fn template_entries<'py>(
    py: Python<'py>,
    template: &str,
    subject: &str,
    parent: &str,
    first: u64,
    count: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let template = Template::read(template).map_err(|(line, cause)| {
        let subject = if line > 0 { format!("{subject}:{line}") } else { subject.to_owned() };
        let hint = if line > 0 { "see docs/databases/directory.md" } else { "write uid: user.<number>" };
        raise(Error::input(subject, cause).hint(hint))
    })?;
    let mut entries = Vec::new();
    py.detach(|| template.write(first..first.saturating_add(count), parent, &mut entries));
    Ok(PyBytes::new(py, &entries))
}

/// A piece for engines that read Arrow. The rows are generated each time that it is read.
#[pyclass(module = "ironbench._core", frozen)]
pub struct ArrowRows {
    tpch: ironbench_data::tpch::Tpch,
    table: String,
    units: std::ops::Range<u64>,
    progress: Arc<Progress>,
}

#[pymethods]
impl ArrowRows {
    #[new]
    fn new(generator: &[u8], table: String, first: u64, past: u64, progress: &LoadProgress) -> PyResult<Self> {
        let generator: Generator = serde_json::from_slice(generator).map_err(unreadable("generator"))?;
        let Generator::Tpch(tpch) = generator else {
            return Err(raise(Error::input(table, "rows of this workload are not available as Arrow")));
        };
        Ok(Self { tpch, table, units: first..past, progress: progress.shared.clone() })
    }

    /// Implements <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema); // optional, may be ignored
        let make = || arrow::stream(&self.tpch, &self.table, self.units.clone(), self.progress.clone());
        let stream: FFI_ArrowArrayStream = py.detach(make).map_err(raise)?;
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

#[pyfunction]
pub fn write_rows(py: Python<'_>, generator: &[u8], table: &str, threads: usize, path: &str) -> PyResult<u64> {
    let generator: Generator = serde_json::from_slice(generator).map_err(unreadable("generator"))?;
    py.detach(|| ironbench_data::write_file(&generator, table, threads, path)).map_err(raise)
}

/// Returns the number of rows of the wide table that `wide` (JSON) describes, the checksum of its content, and the
/// checksum of its keys.
#[pyfunction]
pub fn wide_sums(py: Python<'_>, wide: &[u8]) -> PyResult<(u64, i64, i64)> {
    let wide: WideTable = serde_json::from_slice(wide).map_err(unreadable("table"))?;
    let sums = py.detach(|| wide.sums());
    Ok((sums.rows, sums.content, sums.keys))
}

/// Returns a function that converts a JSON error. The message contains only the position of the error. The original
/// message may contain a value, which may be the password.
pub fn unreadable(what: &str) -> impl Fn(serde_json::Error) -> PyErr {
    move |error| {
        let place = format!("line {} column {}", error.line(), error.column());
        raise(Error::input(what, format!("cannot be read ({place})")))
    }
}
