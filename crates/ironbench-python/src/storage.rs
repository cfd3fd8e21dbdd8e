//! Storage benchmarks without a database, for Python.

use std::sync::Arc;

use ironbench_core::Error;
use ironbench_storage as storage;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use crate::gil;
use crate::histogram::Histogram;

/// Progress of a running pass, which another thread can read and stop.
#[pyclass(module = "ironbench._core", frozen)]
#[derive(Default)]
pub struct StorageProgress(Arc<storage::Progress>);

#[pymethods]
impl StorageProgress {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn ios(&self) -> u64 {
        self.0.ios()
    }

    fn stop(&self) {
        self.0.stop();
    }
}

#[pyclass(module = "ironbench._core", frozen)]
pub struct StoragePass(storage::Outcome);

#[pymethods]
impl StoragePass {
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let json = serde_json::to_vec(&self.0.summary);
        let json = json.map_err(|error| raise(Error::failure("summary of a pass", error.to_string())))?;
        Ok(PyBytes::new(py, &json))
    }

    #[getter]
    fn reads(&self) -> Histogram {
        self.0.reads.clone().into()
    }

    #[getter]
    fn writes(&self) -> Histogram {
        self.0.writes.clone().into()
    }

    #[getter]
    fn buckets(&self) -> Vec<u64> {
        self.0.buckets.clone()
    }
}

#[pyfunction]
pub fn storage_pass(py: Python<'_>, plan: &[u8], progress: &StorageProgress) -> PyResult<StoragePass> {
    let plan: storage::Pass = serde_json::from_slice(plan)
        .map_err(|error| raise(Error::input("storage pass", format!("cannot be read ({error})"))))?;
    let shared = Arc::clone(&progress.0);
    gil::release(py, |poll| storage::run(&plan, &shared, poll)).map(StoragePass)
}
