//! Device models for Python, with their text form, synthetic loads, and the replay of traces.

use std::collections::BTreeMap;

use ironbench_core::Error;
use ironbench_device::replay::{
    ListedLoad, LoadResult, Replayed, Served, SyntheticLoad, Trace, replay, run_listed, run_synthetic,
};
use ironbench_device::{Device, Models, build, parse};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use crate::gil::release;
use crate::histogram::Histogram;

/// Seed of the model on which a trace is replayed.
const SEED: u64 = 1;

type Columns<'a> = (&'a [u8], &'a [u8], &'a [u8], &'a [u8], &'a [u8]);

#[pyfunction]
pub fn normal_device(text: &str, models: &[u8]) -> PyResult<String> {
    built(text, models, None, 0).map_err(raise)?;
    Ok(parse(text).map_err(raise)?.to_string())
}

#[pyfunction]
#[pyo3(signature = (text, models, capacity=None))]
pub fn device_capacity(text: &str, models: &[u8], capacity: Option<u64>) -> PyResult<u64> {
    Ok(built(text, models, capacity, 0).map_err(raise)?.capacity())
}

#[pyfunction]
pub fn probe_device(
    py: Python<'_>,
    text: &str,
    models: &[u8],
    capacity: Option<u64>,
    load: &[u8],
) -> PyResult<(f64, f64, Histogram)> {
    let load: SyntheticLoad = serde_json::from_slice(load)
        .map_err(|error| raise(Error::input("probe", format!("cannot be read: {error}"))))?;
    let mut device = built(text, models, capacity, load.seed).map_err(raise)?;
    Ok(figures(py.detach(|| run_synthetic(&mut *device, &load))))
}

#[pyfunction]
pub fn ask_device(
    py: Python<'_>,
    text: &str,
    models: &[u8],
    capacity: Option<u64>,
    load: &[u8],
    places: &[u8],
) -> PyResult<(f64, f64, Histogram)> {
    let load: ListedLoad = serde_json::from_slice(load)
        .map_err(|error| raise(Error::input("I/Os", format!("cannot be read: {error}"))))?;
    let (places, rest) = places.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(raise(Error::input("I/Os", "the offsets are not numbers of 8 bytes")));
    }
    let places: Vec<u64> = places.iter().map(|place| u64::from_le_bytes(*place)).collect();
    let mut device = built(text, models, capacity, load.seed).map_err(raise)?;
    py.detach(|| run_listed(&mut *device, &load, &places)).map(figures).map_err(raise)
}

fn figures(measured: LoadResult) -> (f64, f64, Histogram) {
    (measured.iops(), measured.rate(), measured.latency.into())
}

#[pyfunction]
pub fn replay_trace<'py>(
    py: Python<'py>,
    text: &str,
    models: &[u8],
    capacity: Option<u64>,
    columns: Columns<'_>,
) -> PyResult<(Bound<'py, PyBytes>, BTreeMap<String, Histogram>)> {
    let mut device = built(text, models, capacity, SEED).map_err(raise)?;
    let (time, op, offset, length, completed) = columns;
    let replayed = release(py, |may_continue| {
        let trace = Trace::from_bytes(time, op, offset, length, completed)?;
        replay(&trace, &mut *device, may_continue)
    })?;
    let summary = serde_json::json!({
        "recorded": load(&replayed.recorded),
        "predicted": load(&replayed.predicted),
        "host_cpu_s": seconds(replayed.host_cpu),
        "read_bytes": replayed.bytes[0],
        "written_bytes": replayed.bytes[1],
    });
    Ok((PyBytes::new(py, summary.to_string().as_bytes()), histograms(replayed)))
}

fn load(served: &Served) -> serde_json::Value {
    serde_json::json!({
        "elapsed_s": seconds(served.elapsed),
        "busy_share": served.busy_share(),
        "in_flight": served.depth(),
    })
}

fn built(text: &str, models: &[u8], capacity: Option<u64>, seed: u64) -> ironbench_core::Result<Box<dyn Device>> {
    build(&parse(text)?, &Models::from_json(models)?, capacity, seed)
}

fn histograms(replayed: Replayed) -> BTreeMap<String, Histogram> {
    let mut found = BTreeMap::new();
    for (prefix, latencies) in [("", replayed.predicted.latency), ("recorded_", replayed.recorded.latency)] {
        for (op, latency) in ["read", "write", "flush"].into_iter().zip(latencies) {
            found.insert(format!("{prefix}{op}"), latency.into());
        }
    }
    found
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
