//! Profiles for Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ironbench_core::Error;
use ironbench_profile::{self as core, Kind, Line, Reason};
use pyo3::prelude::*;

use crate::errors::raise;

/// Returns what is missing for a profile. Each element has a code and a detail.
#[pyfunction]
pub fn available(kinds: Vec<String>) -> PyResult<Vec<(&'static str, String)>> {
    Ok(core::available(&parse_kinds(&kinds)?))
}

#[pyclass(module = "ironbench._core", frozen)]
pub struct Profiler(Mutex<core::Profiler>);

#[pyclass(module = "ironbench._core", frozen)]
pub struct Profile(core::Profile);

impl Profiler {
    fn profiler(&self) -> MutexGuard<'_, core::Profiler> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Profiler {
    #[new]
    fn new(kinds: Vec<String>, hz: u32, engine_roots: Vec<i32>) -> PyResult<Self> {
        let profiler = core::Profiler::new(&parse_kinds(&kinds)?, hz, &engine_roots).map_err(raise)?;
        Ok(Self(Mutex::new(profiler)))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.profiler().start()).map_err(raise)
    }

    fn stop(&self, py: Python<'_>, windows: Vec<(u64, u64)>) -> PyResult<Profile> {
        py.detach(|| self.profiler().stop(&windows)).map(Profile).map_err(raise)
    }
}

impl Profile {
    fn column<'a, T>(&'a self, value: impl Fn(&'a Line) -> T) -> Vec<T> {
        self.0.lines.iter().map(value).collect()
    }
}

#[pymethods]
impl Profile {
    #[getter]
    fn kind(&self) -> Vec<&str> {
        self.column(|line| if line.reason.is_none() { "cpu" } else { "wait" })
    }

    #[getter]
    fn role(&self) -> Vec<&str> {
        self.column(|line| line.role.name())
    }

    #[getter]
    fn thread(&self) -> Vec<&str> {
        self.column(|line| line.thread.as_str())
    }

    #[getter]
    fn reason(&self) -> Vec<&str> {
        self.column(|line| match line.reason {
            None => "",
            Some(Reason::Blocked) => "blocked",
            Some(Reason::CpuQueue) => "cpu-queue",
        })
    }

    #[getter]
    fn stack(&self) -> Vec<&str> {
        self.column(|line| line.stack.as_str())
    }

    #[getter]
    fn waker(&self) -> Vec<&str> {
        self.column(|line| line.waker.as_str())
    }

    #[getter]
    fn samples(&self) -> Vec<u64> {
        self.column(|line| line.samples)
    }

    #[getter]
    fn seconds(&self) -> Vec<f64> {
        self.column(|line| line.seconds)
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    #[getter]
    fn truncated(&self) -> u64 {
        self.0.truncated
    }

    #[getter]
    fn others(&self) -> u64 {
        self.0.others
    }

    #[getter]
    fn sampler_cpu_s(&self) -> f64 {
        self.0.sampler_cpu_s
    }

    #[getter]
    fn unresolved_share(&self) -> f64 {
        self.0.unresolved_share
    }
}

fn parse_kinds(kinds: &[String]) -> PyResult<Vec<Kind>> {
    let kind = |name: &String| match name.as_str() {
        "cpu" => Ok(Kind::Cpu),
        "wait" => Ok(Kind::Wait),
        other => Err(raise(Error::input("profile", format!("unknown kind '{other}'")))),
    };
    kinds.iter().map(kind).collect()
}
