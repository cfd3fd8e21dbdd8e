//! A blocking session of a server for Python, for any protocol.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironbench_core::wire::{Session, Wish};
use ironbench_core::{Error, Result, measure::clock};
use pyo3::{prelude::*, sync::MutexExt, types::PyTuple};
use serde::de::DeserializeOwned;

use crate::errors::raise;

/// A session that runs one statement at a time. Other threads wait.
pub struct Shared<S> {
    state: Mutex<State<S>>,
    /// The exception that Python's signal handler raised while a statement ran (Ctrl-C).
    signalled: Signalled,
}

struct State<S> {
    session: Option<S>,
    columns: Vec<String>,
    changes: u64,
}

type Signalled = Arc<Mutex<Option<PyErr>>>;

/// Parses connection settings from JSON. The text of a JSON error may contain the value, which may be the password.
pub fn described<C: DeserializeOwned>(connection: &[u8]) -> PyResult<C> {
    serde_json::from_slice(connection).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        raise(Error::input("connection", format!("its description cannot be read ({place})")))
    })
}

impl<S: Session> Shared<S> {
    /// Connects with `open`. The session asks whether to give up while it waits for the server.
    pub fn open(py: Python<'_>, open: impl FnOnce(Wish) -> Result<S> + Send) -> PyResult<Self> {
        let signalled = Signalled::default();
        let raised = signalled.clone();
        let listen = Box::new(move || {
            let Err(error) = Python::attach(|py| py.check_signals()) else {
                return false;
            };
            *locked(&raised) = Some(error);
            true
        });
        let session =
            py.detach(|| open(listen)).map_err(|error| locked(&signalled).take().unwrap_or_else(|| raise(error)))?;
        Ok(Self { state: Mutex::new(State { session: Some(session), columns: Vec::new(), changes: 0 }), signalled })
    }

    /// Runs `sql`. After `limit_s` seconds the statement fails and the connection is closed. `None` means no limit.
    pub fn query<'py>(&self, py: Python<'py>, sql: &str, limit_s: Option<f64>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let rows = self.run(py, |state| {
            let (rows, affected) = within(state.session()?, limit_s, |session| session.query(sql))?;
            state.columns = rows.columns().to_vec();
            state.changes = affected;
            Ok(rows)
        })?;
        (0..rows.len()).map(|row| PyTuple::new(py, rows.row(row))).collect()
    }

    /// Runs `sql` without returning rows to Python. Returns the number of rows, and the instants of submission and of
    /// the last byte of the reply. After `limit_s` seconds the statement fails and the connection is closed.
    pub fn measure(&self, py: Python<'_>, sql: &str, limit_s: Option<f64>) -> PyResult<(u64, f64, f64)> {
        self.run(py, |state| {
            let submitted = clock::now();
            let rows = within(state.session()?, limit_s, |session| session.count(sql))?;
            Ok((rows, clock::to_seconds(submitted), clock::to_seconds(clock::now())))
        })
    }

    pub fn copy_in(&self, py: Python<'_>, sql: &str, data: &[u8]) -> PyResult<u64> {
        self.run(py, |state| state.session()?.copy_in(sql, data))
    }

    /// Runs `work` on the session.
    pub fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut S) -> Result<T> + Send) -> PyResult<T> {
        self.run(py, |state| work(state.session()?))
    }

    pub fn columns(&self, py: Python<'_>) -> Vec<String> {
        self.state(py).columns.clone()
    }

    pub fn changes(&self, py: Python<'_>) -> u64 {
        self.state(py).changes
    }

    /// Calls `look` with the session. Returns `None` if the session is closed.
    pub fn look<T>(&self, py: Python<'_>, look: impl FnOnce(&S) -> T) -> Option<T> {
        self.state(py).session.as_ref().map(look)
    }

    pub fn close(&self, py: Python<'_>) {
        let session = self.state(py).session.take();
        py.detach(|| drop(session));
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State<S>> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` without the GIL. The session itself checks for Ctrl-C and cancels the statement.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State<S>) -> Result<T> + Send) -> PyResult<T> {
        let outcome = py.detach(|| work(&mut locked(&self.state)));
        match locked(&self.signalled).take() {
            Some(signal) => Err(signal),
            None => outcome.map_err(raise),
        }
    }
}

/// Maximum time limit of a statement, in seconds.
const MOST_S: f64 = 3600.0;

/// Runs one statement, which must end within `limit_s` even if the server keeps sending data.
fn within<S: Session, T>(session: &mut S, limit_s: Option<f64>, run: impl FnOnce(&mut S) -> Result<T>) -> Result<T> {
    session.set_deadline(limit_s.map(|limit| Instant::now() + Duration::from_secs_f64(limit.clamp(0.0, MOST_S))));
    let answer = run(session);
    session.set_deadline(None);
    answer
}

impl<S: Session> State<S> {
    fn session(&mut self) -> Result<&mut S> {
        self.session.as_mut().ok_or_else(|| Error::failure(S::NAME, "the connection is closed"))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
