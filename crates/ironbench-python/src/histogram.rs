//! HDR histograms for Python.

use std::collections::BTreeMap;

use ironbench_core::measure::{self, hlog};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

/// A mergeable HDR histogram of nanoseconds, with 3 significant digits.
#[pyclass(module = "ironbench._core")]
pub struct Histogram(measure::Histogram);

impl From<measure::Histogram> for Histogram {
    fn from(histogram: measure::Histogram) -> Self {
        Self(histogram)
    }
}

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Self {
        Self(measure::Histogram::new())
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        measure::Histogram::from_bytes(data).map(Self).map_err(raise)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn record(&mut self, value_ns: u64) {
        self.0.record(value_ns);
    }

    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) {
        // The other histogram is cloned first, because merging a histogram with itself must not borrow it twice.
        let other = other.borrow().0.clone();
        slf.borrow_mut().0.merge(&other);
    }

    fn quantile(&self, q: f64) -> f64 {
        self.0.quantile_s(q)
    }

    fn quantiles(&self, q: Vec<f64>) -> Vec<f64> {
        q.into_iter().map(|q| self.0.quantile_s(q)).collect()
    }

    fn buckets(&self) -> Vec<(f64, f64, u64)> {
        self.0.buckets()
    }

    #[getter]
    fn mean_s(&self) -> f64 {
        self.0.mean_s()
    }

    #[getter]
    fn stdev_s(&self) -> f64 {
        self.0.stdev_s()
    }

    #[getter]
    fn min_s(&self) -> f64 {
        self.0.min_s()
    }

    #[getter]
    fn max_s(&self) -> f64 {
        self.0.max_s()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn sum_s(&self) -> f64 {
        self.0.sum_s()
    }
}

/// Writes HdrHistogram's standard interval log, one tagged line per histogram.
#[pyfunction]
pub fn write_hlog(
    histograms: BTreeMap<String, Bound<'_, Histogram>>,
    start_unix_s: f64,
    interval_s: f64,
) -> PyResult<String> {
    let histograms = histograms.into_iter().map(|(name, h)| (name, h.borrow().0.clone())).collect();
    hlog::write(&histograms, start_unix_s, interval_s).map_err(raise)
}

#[pyfunction]
pub fn read_hlog(text: &str) -> PyResult<BTreeMap<String, Histogram>> {
    let histograms = hlog::read(text).map_err(raise)?;
    Ok(histograms.into_iter().map(|(name, histogram)| (name, Histogram(histogram))).collect())
}
