//! The relay that adds latency, for Python. Each relay has a separate process.

use ironbench_core::Error;
use ironbench_core::relay;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

/// See `ironbench_core::relay`.
#[pyclass(module = "ironbench._core", frozen)]
pub struct Relay(relay::Relay);

#[pymethods]
impl Relay {
    /// Starts the relay that `order` (JSON) describes.
    #[new]
    fn new(py: Python<'_>, order: &[u8]) -> PyResult<Self> {
        let order: relay::RelayConfig = serde_json::from_slice(order)
            .map_err(|error| raise(Error::input("order of the latency relay", error.to_string())))?;
        py.detach(|| relay::Relay::start(&order)).map(Self).map_err(raise)
    }

    #[getter]
    fn address(&self) -> &str {
        self.0.address()
    }

    fn measure(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.measure()).map_err(raise)
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let json = serde_json::to_vec(&self.0.counters());
        let json = json.map_err(|error| raise(Error::failure("latency relay", error.to_string())))?;
        Ok(PyBytes::new(py, &json))
    }
}
