//! Processor and memory kernels for Python.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironbench_core::Error;
use ironbench_kernels::{KernelPlan, KernelThreads, Watch, mandelbrot, picture};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use crate::histogram::Histogram;

/// The threads of one kernel trial.
#[pyclass(module = "ironbench._core", frozen)]
pub struct Kernels(Mutex<Option<KernelThreads>>);

impl Kernels {
    fn threads(&self) -> MutexGuard<'_, Option<KernelThreads>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `wait_for` without the GIL. `wait_for` waits for at most `timeout_s`. Returns its result, or true if the
    /// threads have already been joined.
    fn wait(&self, py: Python<'_>, timeout_s: f64, wait_for: fn(&Watch, Duration) -> bool) -> bool {
        let Some(watch) = self.threads().as_ref().map(KernelThreads::watch) else { return true };
        py.detach(|| wait_for(&watch, Duration::from_secs_f64(timeout_s.clamp(0.0, 3600.0))))
    }
}

#[pymethods]
impl Kernels {
    /// Starts the threads of a plan (JSON, crates/ironbench-kernels/src/plan.rs). The threads prepare their work and
    /// warm up.
    #[new]
    fn new(py: Python<'_>, plan: &[u8]) -> PyResult<Self> {
        let plan: KernelPlan =
            serde_json::from_slice(plan).map_err(|error| raise(Error::input("kernel plan", error.to_string())))?;
        let threads = py.detach(|| KernelThreads::new(&plan)).map_err(raise)?;
        Ok(Self(Mutex::new(Some(threads))))
    }

    fn ready(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.wait(py, timeout_s, Watch::ready)
    }

    fn start(&self, duration_s: f64) {
        if let Some(threads) = self.threads().as_ref() {
            threads.start(Duration::from_secs_f64(duration_s.clamp(0.0, 1e9)));
        }
    }

    fn done(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.wait(py, timeout_s, Watch::done)
    }

    fn ended(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.wait(py, timeout_s, Watch::ended)
    }

    fn stop(&self) {
        if let Some(threads) = self.threads().as_ref() {
            threads.stop();
        }
    }

    /// Waits for the threads. Returns a summary (JSON) and the histograms of whole units and of their parts.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, BTreeMap<String, Histogram>)> {
        let threads = self.threads().take().ok_or_else(|| raise(Error::input("kernel", "was joined already")))?;
        let found = py.detach(|| threads.join()).map_err(raise)?;
        let mut histograms = BTreeMap::from([(String::new(), Histogram::from(found.all))]);
        histograms.extend(found.parts.into_iter().map(|(name, times)| (name.to_owned(), Histogram::from(times))));
        Ok((PyBytes::new(py, found.summary.to_string().as_bytes()), histograms))
    }
}

/// Computes a picture of the Mandelbrot set as a PNG file. `over` is called during the computation. If it returns true,
/// the result is None.
#[pyfunction]
pub fn mandelbrot_png<'py>(
    py: Python<'py>,
    width: usize,
    height: usize,
    limit: u32,
    over: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut steps = vec![0; width * height];
    let view = mandelbrot::View { width, height, limit };
    let (asked, failed) = (over.clone().unbind(), Mutex::new(None));
    let file = py.detach(|| {
        let is_over = || {
            Python::attach(|py| asked.call0(py).and_then(|said| said.extract(py))).unwrap_or_else(|error| {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                true
            })
        };
        let whole = mandelbrot::draw_unless(view, mandelbrot::Variant::Vector, &mut steps, &is_over);
        whole.then(|| picture::png(view, &steps))
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let file = file.transpose().map_err(raise)?;
    Ok(file.map(|bytes| PyBytes::new(py, &bytes)))
}
