//! MySQL and MariaDB for Python, for everything outside the measured window, and for individually timed statements.

use ironbench_core::wire::mysql::Mysql;
use pyo3::{prelude::*, types::PyTuple};

use crate::session::SharedSession;

/// A blocking session of a MySQL or MariaDB server.
#[pyclass(module = "ironbench._core", frozen)]
pub struct MysqlConnection {
    session: SharedSession<Mysql>,
    #[pyo3(get)]
    connection_id: u32,
    #[pyo3(get)]
    tls: bool,
}

#[pymethods]
impl MysqlConnection {
    #[new]
    #[pyo3(signature = (connection, silence_s = None))]
    fn new(py: Python<'_>, connection: &[u8], silence_s: Option<f64>) -> PyResult<Self> {
        let session = SharedSession::<Mysql>::open(py, connection, silence_s)?;
        let seen = session.inspect(py, |open| (open.connection_id(), open.is_tls()));
        let (connection_id, tls) = seen.expect("opened just now");
        Ok(Self { session, connection_id, tls })
    }

    /// Runs `sql`. After `limit_s` seconds the statement fails and the connection is closed.
    #[pyo3(signature = (sql, limit_s = None))]
    fn query<'py>(&self, py: Python<'py>, sql: &str, limit_s: Option<f64>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.session.query(py, sql, limit_s)
    }

    /// Runs a statement in any character set. Returns the number of affected rows.
    fn execute(&self, py: Python<'_>, sql: &[u8]) -> PyResult<u64> {
        self.session.with(py, |session| Ok(session.run_bytes(sql)?.affected))
    }

    fn measure(&self, py: Python<'_>, sql: &str) -> PyResult<(u64, f64, f64)> {
        self.session.measure(py, sql, None)
    }

    fn columns(&self, py: Python<'_>) -> Vec<String> {
        self.session.columns(py)
    }

    fn changes(&self, py: Python<'_>) -> u64 {
        self.session.changes(py)
    }

    fn copy_in(&self, py: Python<'_>, sql: &str, data: &[u8]) -> PyResult<u64> {
        self.session.copy_in(py, sql, data)
    }

    /// Cancels the running statement. Is called from another thread.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.session.cancel(py)
    }

    /// Returns a parameter from the server's greeting, such as `server_version`.
    fn parameter(&self, py: Python<'_>, name: &str) -> Option<String> {
        let version = self.session.inspect(py, |open| open.version().to_owned());
        version.filter(|_| name == "server_version")
    }

    fn close(&self, py: Python<'_>) {
        self.session.close(py);
    }
}
