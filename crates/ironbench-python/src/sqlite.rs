//! SQLite files for Python, for everything outside the measured window, and for individually timed statements.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironbench_core::measure::clock;
use ironbench_core::measure::threads::{Gate, ThreadSettings, run_with_leader};
use ironbench_core::wire::sqlite::Session;
use ironbench_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::errors::raise;

/// Interval at which a long statement lets Python check for Ctrl-C.
const LISTEN_EVERY: Duration = Duration::from_millis(50);

/// A blocking session on an SQLite file, which is created if necessary.
#[pyclass(module = "ironbench._core", frozen)]
pub struct SqliteConnection {
    state: Mutex<State>,
}

struct State {
    session: Option<Session>,
    columns: Vec<String>,
    changes: u64,
}

#[pymethods]
impl SqliteConnection {
    #[new]
    #[pyo3(signature = (path, pragmas = Vec::new()))]
    fn new(path: &str, pragmas: Vec<String>) -> PyResult<Self> {
        let session = Session::open(path, &pragmas).map_err(raise)?;
        Ok(Self { state: Mutex::new(State { session: Some(session), columns: Vec::new(), changes: 0 }) })
    }

    fn query<'py>(&self, py: Python<'py>, sql: &str) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let table = self.run(py, |session| session.query(sql))?;
        self.locked(py).columns = table.columns;
        table.rows.into_iter().map(|row| PyTuple::new(py, row)).collect()
    }

    /// Runs `sql` without returning rows to Python. Returns the number of rows, the instant before the statement, and
    /// the instant after its last row.
    ///
    /// The statement runs in this thread, and lets Python check for Ctrl-C itself. Another thread is not used, because
    /// starting and ending it would take time between two statements.
    fn measure(&self, py: Python<'_>, sql: &str) -> PyResult<(u64, f64, f64)> {
        let signal_error: Arc<Mutex<Option<PyErr>>> = Arc::default();
        let raised = signal_error.clone();
        let listen = move || {
            let Err(error) = Python::attach(|py| py.check_signals()) else {
                return false;
            };
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            true
        };
        let measured = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let session = state.session.as_mut().ok_or_else(closed)?;
            let submitted = clock::now();
            let rows = session.count(sql, listen)?;
            Ok((rows, clock::to_seconds(submitted), clock::to_seconds(clock::now())))
        });
        match signal_error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(signal) => Err(signal),
            None => measured.map_err(raise),
        }
    }

    fn copy_in(&self, py: Python<'_>, sql: &str, data: &[u8]) -> PyResult<u64> {
        self.run(py, |session| session.copy_in(sql, data))
    }

    fn columns(&self, py: Python<'_>) -> Vec<String> {
        self.locked(py).columns.clone()
    }

    fn changes(&self, py: Python<'_>) -> u64 {
        self.locked(py).changes
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.locked(py).session.take();
        py.detach(|| session.map_or(Ok(()), Session::close)).map_err(raise)
    }
}

fn closed() -> Error {
    Error::failure("SQLite", "the connection is closed")
}

impl SqliteConnection {
    fn locked(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in another thread. This thread checks for Ctrl-C meanwhile, and interrupts the statement if it was
    /// pressed.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Session) -> Result<T> + Send) -> PyResult<T> {
        let mut state = self.locked(py);
        let state = &mut *state;
        let Some(session) = &mut state.session else {
            return Err(raise(closed()));
        };
        let interrupter = session.interrupter();
        let changes = &mut state.changes;
        let member = move || {
            let outcome = work(session);
            *changes = session.changes();
            outcome
        };
        let (gate, mut signal_error) = (Gate::<()>::default(), None);
        let listen = || {
            while !py.detach(|| gate.ended(1, LISTEN_EVERY)) {
                if signal_error.is_none() {
                    signal_error = py.check_signals().err();
                }
                if signal_error.is_some() {
                    interrupter.interrupt();
                }
            }
            Ok(())
        };
        let outcome = run_with_leader(&gate, [(ThreadSettings::new("sqlite"), member)], listen);
        match signal_error {
            Some(error) => Err(error),
            None => outcome.map(|(_, mut each)| each.remove(0)).map_err(raise),
        }
    }
}
