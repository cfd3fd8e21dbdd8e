//! Loading of generated rows, for Python.

use std::sync::Arc;

use ironbench_core::Error;
use ironbench_data::{Generator, LoadPlan, Progress};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

/// Shared with a running load.
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

#[pyfunction]
pub fn load_rows<'py>(py: Python<'py>, plan: &[u8], progress: &LoadProgress) -> PyResult<Bound<'py, PyBytes>> {
    let plan: LoadPlan = serde_json::from_slice(plan).map_err(unreadable("load plan"))?;
    let shared = progress.shared.clone();
    let loaded = py.detach(|| ironbench_data::load(&plan, &shared)).map_err(raise)?;
    let json = serde_json::to_vec(&loaded).map_err(|error| raise(Error::failure("load", error.to_string())))?;
    Ok(PyBytes::new(py, &json))
}

#[pyfunction]
pub fn write_rows(py: Python<'_>, generator: &[u8], table: &str, threads: usize, path: &str) -> PyResult<u64> {
    let generator: Generator = serde_json::from_slice(generator).map_err(unreadable("generator"))?;
    py.detach(|| ironbench_data::write_file(&generator, table, threads, path)).map_err(raise)
}

/// Of the error only the place is shown: its text may hold a value, and that may be the password.
fn unreadable(what: &str) -> impl Fn(serde_json::Error) -> PyErr {
    move |error| {
        let place = format!("line {} column {}", error.line(), error.column());
        raise(Error::input(what, format!("cannot be read ({place})")))
    }
}
