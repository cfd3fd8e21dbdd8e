//! Emulated devices for Python. Each device has a separate process.

use std::path::PathBuf;

use ironbench_core::Error;
use ironbench_device::live::{DeviceSpec, MountedDevice, PowerCut};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

/// The mounted files of an emulated device, as `ironbench_device::live` describes.
#[pyclass(module = "ironbench._core", frozen)]
pub struct LiveDevice(MountedDevice);

#[pymethods]
impl LiveDevice {
    /// Mounts the device that `spec` (JSON) describes.
    #[new]
    fn new(py: Python<'_>, spec: &[u8], directory: PathBuf) -> PyResult<Self> {
        py.detach(|| MountedDevice::mount(&DeviceSpec::read(spec)?, &directory)).map(Self).map_err(raise)
    }

    fn calibrate<'py>(&self, py: Python<'py>, block_device: &str, length: u64) -> PyResult<Bound<'py, PyBytes>> {
        let measured = py.detach(|| self.0.calibrate(block_device, length)).map_err(raise)?;
        let json = serde_json::to_vec(&measured);
        let json = json.map_err(|error| raise(Error::failure("calibration", error.to_string())))?;
        Ok(PyBytes::new(py, &json))
    }

    fn pace(&self, py: Python<'_>, block_devices: Vec<String>) {
        py.detach(|| self.0.pace(&block_devices));
    }

    fn hurry(&self, py: Python<'_>) {
        py.detach(|| self.0.stop_pacing());
    }

    fn counters<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.counters()))
    }

    fn cut(&self, py: Python<'_>, how: &str, seed: u64) -> PyResult<usize> {
        let how: PowerCut = serde_json::from_value(how.into())
            .map_err(|error| raise(Error::input(format!("power cut {how}"), error.to_string())))?;
        py.detach(|| self.0.cut_power(how, seed)).map_err(raise)
    }

    fn end_trace(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.end_trace()).map_err(raise)
    }

    fn revive(&self) {
        self.0.restore_power();
    }

    fn unmount(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.unmount()).map_err(raise)
    }
}
