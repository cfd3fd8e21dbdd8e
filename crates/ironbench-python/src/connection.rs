//! PostgreSQL for Python: everything outside the timed window, and statements that are timed one by one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironbench_core::{
    Error, Result,
    drive::plan,
    measure::clock,
    wire::postgres::{Cancel, Connector, Session},
};
use pyo3::{prelude::*, sync::MutexExt, types::PyTuple};

use crate::errors::raise;

/// A blocking session of a PostgreSQL server. One statement runs at a time; other threads wait for it.
#[pyclass(module = "ironbench._core", frozen)]
pub struct Connection {
    state: Mutex<State>,
    /// What Python's signal handler raised while a statement ran (Ctrl-C).
    signalled: Arc<Mutex<Option<PyErr>>>,
    cancel: Cancel,
    #[pyo3(get)]
    backend_pid: i32,
    #[pyo3(get)]
    tls: bool,
}

struct State {
    session: Option<Session>,
    columns: Vec<String>,
}

#[pymethods]
impl Connection {
    #[new]
    fn new(py: Python<'_>, connection: &[u8]) -> PyResult<Self> {
        // The text of a JSON error may show the value it is about, and that may be the password.
        let connection: plan::Connection = serde_json::from_slice(connection).map_err(|error| {
            let place = format!("line {} column {}", error.line(), error.column());
            raise(Error::input("connection", format!("its description cannot be read ({place})")))
        })?;
        let signalled: Arc<Mutex<Option<PyErr>>> = Arc::default();
        let raised = signalled.clone();
        let listen = Box::new(move || {
            let Err(error) = Python::attach(|py| py.check_signals()) else {
                return false;
            };
            *locked(&raised) = Some(error);
            true
        });
        let session = py
            .detach(|| Connector::new(connection).and_then(|connector| Session::open_unless(&connector, listen)))
            .map_err(|error| locked(&signalled).take().unwrap_or_else(|| raise(error)))?;
        Ok(Self {
            signalled,
            cancel: session.canceller(),
            backend_pid: session.backend_pid(),
            tls: session.is_tls(),
            state: Mutex::new(State { session: Some(session), columns: Vec::new() }),
        })
    }

    fn query<'py>(&self, py: Python<'py>, sql: &str) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let rows = self.run(py, |state| {
            let rows = state.session()?.query(sql)?;
            state.columns = rows.columns().to_vec();
            Ok(rows)
        })?;
        (0..rows.len()).map(|row| PyTuple::new(py, rows.row(row))).collect()
    }

    /// Rows, and the instants of submission and of the answer's last byte; nothing is handed to Python.
    fn measure(&self, py: Python<'_>, sql: &str) -> PyResult<(u64, f64, f64)> {
        self.run(py, |state| {
            let submitted = clock::now();
            let rows = state.session()?.count(sql)?;
            Ok((rows, clock::to_seconds(submitted), clock::to_seconds(clock::now())))
        })
    }

    fn columns(&self, py: Python<'_>) -> Vec<String> {
        self.state(py).columns.clone()
    }

    fn copy_in(&self, py: Python<'_>, sql: &str, data: &[u8]) -> PyResult<u64> {
        self.run(py, |state| {
            let mut copy = state.session()?.copy_in(sql)?;
            copy.send(data)?;
            copy.finish()
        })
    }

    /// Cancels from another thread what the connection is running.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.cancel.send()).map_err(raise)
    }

    fn parameter(&self, py: Python<'_>, name: &str) -> Option<String> {
        self.state(py).session.as_ref()?.parameter(name).map(str::to_owned)
    }

    fn close(&self, py: Python<'_>) {
        let session = self.state(py).session.take();
        py.detach(|| drop(session));
    }
}

impl State {
    fn session(&mut self) -> Result<&mut Session> {
        self.session.as_mut().ok_or_else(|| Error::failure("PostgreSQL", "the connection is closed"))
    }
}

impl Connection {
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` without the GIL; the session itself listens for Ctrl-C and cancels the statement.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> Result<T> + Send) -> PyResult<T> {
        let outcome = py.detach(|| work(&mut locked(&self.state)));
        match locked(&self.signalled).take() {
            Some(signal) => Err(signal),
            None => outcome.map_err(raise),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
