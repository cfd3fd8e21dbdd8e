//! The proxy that captures the statements of an application, for Python.

use std::time::Duration;

use ironbench_capture::observed::{self, RecordBatch};
use ironbench_core::Error;
use ironbench_proxy::proxy;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::capture::STREAM;
use crate::data::unreadable;
use crate::errors::raise;

/// See `ironbench_proxy::proxy`.
#[pyclass(module = "ironbench._core", frozen)]
pub struct Proxy(proxy::Proxy);

#[pymethods]
impl Proxy {
    /// Starts the proxy that `order` (JSON) describes.
    #[new]
    fn new(py: Python<'_>, order: &[u8]) -> PyResult<Self> {
        let order = serde_json::from_slice(order).map_err(unreadable("order of the proxy"))?;
        py.detach(|| proxy::Proxy::start(order)).map(Self).map_err(raise)
    }

    #[getter]
    fn address(&self) -> &str {
        self.0.address()
    }

    /// Whether no thread of the proxy has failed.
    #[getter]
    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    /// Waits at most `seconds` for statements. Returns them, or None if there are none yet. Also returns whether more
    /// may follow.
    fn take(&self, py: Python<'_>, seconds: f64) -> (Option<CapturedRows>, bool) {
        let (batch, more) = py.detach(|| self.0.take(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))));
        (batch.map(CapturedRows), more)
    }

    /// Notes that statements could not be stored. Returns the transactions that are incomplete, because earlier
    /// statements of them are stored.
    fn lose(&self, rows: &CapturedRows) -> Vec<u64> {
        self.0.lose(&rows.0)
    }

    /// Closes all connections.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.stop()).map_err(raise)
    }

    /// Returns the counters as JSON of `Counters` in crates/ironbench-proxy/src/proxy.rs.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let json = serde_json::to_vec(&self.0.counters());
        let json = json.map_err(|error| raise(Error::failure("proxy", error.to_string())))?;
        Ok(PyBytes::new(py, &json))
    }
}

/// Statements of a capture, as Arrow.
#[pyclass(module = "ironbench._core", frozen)]
pub struct CapturedRows(pub RecordBatch);

#[pymethods]
impl CapturedRows {
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Implements <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema); // optional, may be ignored
        PyCapsule::new_with_value(py, observed::stream(self.0.clone()), STREAM)
    }
}
