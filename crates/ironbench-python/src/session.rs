//! A blocking session of a server for Python, whichever wire it speaks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironbench_core::wire::Rows;
use ironbench_core::{Error, Result, measure::clock};
use pyo3::{prelude::*, sync::MutexExt, types::PyTuple};
use serde::de::DeserializeOwned;

use crate::errors::raise;

/// A wire's session.
pub trait Wire: Send {
    /// How messages call the engine.
    const NAME: &'static str;

    /// Rows of the last statement that returned rows, and how many the last statement affected.
    fn query(&mut self, sql: &str) -> Result<(Rows, u64)>;

    /// Rows that are read, counted and let go.
    fn count(&mut self, sql: &str) -> Result<u64>;

    /// Rows copied of `data`.
    fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<u64>;
}

/// One statement runs at a time; other threads wait for it.
pub struct Shared<W> {
    state: Mutex<State<W>>,
    /// What Python's signal handler raised while a statement ran (Ctrl-C).
    signalled: Signalled,
}

struct State<W> {
    wire: Option<W>,
    columns: Vec<String>,
    changes: u64,
}

type Signalled = Arc<Mutex<Option<PyErr>>>;
/// Asked now and then while something is waited for: whether to give up.
pub type Wish = Box<dyn FnMut() -> bool + Send>;

/// What Python gives as JSON. The text of a JSON error may show the value it is about, and that may be the password.
pub fn described<C: DeserializeOwned>(connection: &[u8]) -> PyResult<C> {
    serde_json::from_slice(connection).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        raise(Error::input("connection", format!("its description cannot be read ({place})")))
    })
}

impl<W: Wire> Shared<W> {
    /// `open` connects, and lets the session ask the wish while it waits for the server.
    pub fn open(py: Python<'_>, open: impl FnOnce(Wish) -> Result<W> + Send) -> PyResult<Self> {
        let signalled = Signalled::default();
        let raised = signalled.clone();
        let listen = Box::new(move || {
            let Err(error) = Python::attach(|py| py.check_signals()) else {
                return false;
            };
            *locked(&raised) = Some(error);
            true
        });
        let wire =
            py.detach(|| open(listen)).map_err(|error| locked(&signalled).take().unwrap_or_else(|| raise(error)))?;
        Ok(Self { state: Mutex::new(State { wire: Some(wire), columns: Vec::new(), changes: 0 }), signalled })
    }

    pub fn query<'py>(&self, py: Python<'py>, sql: &str) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let rows = self.run(py, |state| {
            let (rows, affected) = state.wire()?.query(sql)?;
            state.columns = rows.columns().to_vec();
            state.changes = affected;
            Ok(rows)
        })?;
        (0..rows.len()).map(|row| PyTuple::new(py, rows.row(row))).collect()
    }

    /// Rows, and the instants of submission and of the answer's last byte; nothing is handed to Python.
    pub fn measure(&self, py: Python<'_>, sql: &str) -> PyResult<(u64, f64, f64)> {
        self.run(py, |state| {
            let submitted = clock::now();
            let rows = state.wire()?.count(sql)?;
            Ok((rows, clock::to_seconds(submitted), clock::to_seconds(clock::now())))
        })
    }

    pub fn copy_in(&self, py: Python<'_>, sql: &str, data: &[u8]) -> PyResult<u64> {
        self.run(py, |state| state.wire()?.copy_in(sql, data))
    }

    pub fn columns(&self, py: Python<'_>) -> Vec<String> {
        self.state(py).columns.clone()
    }

    pub fn changes(&self, py: Python<'_>) -> u64 {
        self.state(py).changes
    }

    /// What `look` says of the session; `None` when it is closed.
    pub fn look<T>(&self, py: Python<'_>, look: impl FnOnce(&W) -> T) -> Option<T> {
        self.state(py).wire.as_ref().map(look)
    }

    pub fn close(&self, py: Python<'_>) {
        let wire = self.state(py).wire.take();
        py.detach(|| drop(wire));
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State<W>> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` without the GIL; the session itself listens for Ctrl-C and cancels the statement.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State<W>) -> Result<T> + Send) -> PyResult<T> {
        let outcome = py.detach(|| work(&mut locked(&self.state)));
        match locked(&self.signalled).take() {
            Some(signal) => Err(signal),
            None => outcome.map_err(raise),
        }
    }
}

impl<W: Wire> State<W> {
    fn wire(&mut self) -> Result<&mut W> {
        self.wire.as_mut().ok_or_else(|| Error::failure(W::NAME, "the connection is closed"))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
