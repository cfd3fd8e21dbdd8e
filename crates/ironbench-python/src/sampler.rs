//! The sampling threads, for trials that the drive loop does not run.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ironbench_core::Error;
use ironbench_core::drive::plan::ObserverSource;
use ironbench_core::sample;
use ironbench_core::wire::Server;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::de::DeserializeOwned;

use crate::errors::raise;

/// State of a sampler, which is prepared at first, then running, and finally ended.
enum State {
    Prepared(sample::Prepared),
    Running(sample::Sampler),
    Ended,
}

#[pyclass(module = "ironbench._core", frozen)]
pub struct Sampler(Mutex<State>);

/// The collected samples.
#[pyclass(module = "ironbench._core", frozen)]
pub struct Sampled(sample::Samples);

impl Sampler {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Sampler {
    #[new]
    fn new(py: Python<'_>, sources: &[u8], connection: &[u8]) -> PyResult<Self> {
        let sources: Vec<ObserverSource> = read("observer sources", sources)?;
        let connection: Option<Server> = read("connection", connection)?;
        let prepared = py.detach(|| sample::Prepared::new(&sources, connection.as_ref())).map_err(raise)?;
        Ok(Self(Mutex::new(State::Prepared(prepared))))
    }

    /// Starts sampling and the window.
    fn start(&self) -> PyResult<()> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Ended) {
            State::Prepared(prepared) => {
                *state = State::Running(prepared.start(Instant::now()).map_err(raise)?);
                Ok(())
            }
            _ => Err(raise(Error::input("sampler", "is started once"))),
        }
    }

    /// Ends the window.
    fn mark(&self) {
        if let State::Running(sampler) = &*self.state() {
            sampler.mark();
        }
    }

    fn stop(&self, py: Python<'_>) -> PyResult<Sampled> {
        match std::mem::replace(&mut *self.state(), State::Ended) {
            State::Running(sampler) => Ok(Sampled(py.detach(|| sampler.stop()))),
            _ => Err(raise(Error::input("sampler", "is not running"))),
        }
    }
}

#[pymethods]
impl Sampled {
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let summary = serde_json::json!({
            "observer_cpu_s": self.0.cpu_s,
            "samples_dropped": self.0.dropped,
            "samples_missed": self.0.missed,
            "observer_notes": self.0.notes,
            "observer_backend_pids": self.0.backend_pids,
            "observer_connections": self.0.own.connections,
            "observer_commits": self.0.own.commits,
            "observer_commits_uncertain": self.0.own.unanswered,
        });
        PyBytes::new(py, summary.to_string().as_bytes())
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> BTreeMap<String, Vec<(f64, Bound<'py, PyBytes>)>> {
        let list = |samples: &[(f64, Vec<u8>)]| samples.iter().map(|(t, b)| (*t, PyBytes::new(py, b))).collect();
        self.0.by_source.iter().map(|(name, samples)| (name.clone(), list(samples))).collect()
    }
}

/// Parses JSON. The message of an error contains only its position. The original message may contain a value, which may
/// be the password.
fn read<T: DeserializeOwned>(what: &str, json: &[u8]) -> PyResult<T> {
    serde_json::from_slice(json).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        raise(Error::input(what, format!("cannot be read ({place})")))
    })
}
