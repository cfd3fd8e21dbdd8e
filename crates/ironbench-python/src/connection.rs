//! PostgreSQL for Python, for everything outside the measured window, and for individually timed statements.

use ironbench_core::wire::{Session, postgres::Postgres};
use pyo3::{prelude::*, types::PyTuple};

use crate::session::SharedSession;

/// A blocking session of a PostgreSQL server.
#[pyclass(module = "ironbench._core", frozen)]
pub struct Connection {
    session: SharedSession<Postgres>,
    #[pyo3(get)]
    backend_pid: i32,
    #[pyo3(get)]
    tls: bool,
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (connection, silence_s = None))]
    fn new(py: Python<'_>, connection: &[u8], silence_s: Option<f64>) -> PyResult<Self> {
        let session = SharedSession::<Postgres>::open(py, connection, silence_s)?;
        let seen = session.inspect(py, |open| (open.backend_pid(), open.is_tls()));
        let (backend_pid, tls) = seen.expect("opened just now");
        Ok(Self { session, backend_pid, tls })
    }

    /// Runs `sql`. After `limit_s` seconds the statement fails and the connection is closed.
    #[pyo3(signature = (sql, limit_s = None))]
    fn query<'py>(&self, py: Python<'py>, sql: &str, limit_s: Option<f64>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.session.query(py, sql, limit_s)
    }

    fn measure(&self, py: Python<'_>, sql: &str) -> PyResult<(u64, f64, f64)> {
        self.session.measure(py, sql, None)
    }

    fn columns(&self, py: Python<'_>) -> Vec<String> {
        self.session.columns(py)
    }

    fn copy_in(&self, py: Python<'_>, sql: &str, data: &[u8]) -> PyResult<u64> {
        self.session.copy_in(py, sql, data)
    }

    /// Cancels the running statement. Is called from another thread.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.session.cancel(py)
    }

    fn parameter(&self, py: Python<'_>, name: &str) -> Option<String> {
        self.session.inspect(py, |open| open.parameter(name).map(str::to_owned)).flatten()
    }

    /// Returns the number of transactions that the server has committed on this connection. Returns 0 if the connection
    /// is closed.
    #[getter]
    fn commits(&self, py: Python<'_>) -> u64 {
        self.session.inspect(py, Session::commits).unwrap_or(0)
    }

    fn close(&self, py: Python<'_>) {
        self.session.close(py);
    }
}
