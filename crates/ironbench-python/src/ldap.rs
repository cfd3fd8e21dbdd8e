//! LDAP directories for Python, for everything outside the measured window, and for individually timed operations.

use ironbench_core::wire::{Session, ldap::Ldap};
use pyo3::{prelude::*, types::PyTuple};

use crate::session::SharedSession;

/// A blocking session of a directory server.
#[pyclass(module = "ironbench._core", frozen)]
pub struct LdapConnection {
    session: SharedSession<Ldap>,
    #[pyo3(get)]
    tls: bool,
}

#[pymethods]
impl LdapConnection {
    #[new]
    #[pyo3(signature = (connection, silence_s = None))]
    fn new(py: Python<'_>, connection: &[u8], silence_s: Option<f64>) -> PyResult<Self> {
        let session = SharedSession::<Ldap>::open(py, connection, silence_s)?;
        let tls = session.inspect(py, Session::is_tls).expect("opened just now");
        Ok(Self { session, tls })
    }

    /// Runs an operation. After `limit_s` seconds the operation fails and the connection is closed.
    #[pyo3(signature = (sql, limit_s = None))]
    fn query<'py>(&self, py: Python<'py>, sql: &str, limit_s: Option<f64>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.session.query(py, sql, limit_s)
    }

    /// Runs an operation without returning its entries. After `limit_s` seconds the operation fails and the connection
    /// is closed.
    #[pyo3(signature = (sql, limit_s = None))]
    fn measure(&self, py: Python<'_>, sql: &str, limit_s: Option<f64>) -> PyResult<(u64, f64, f64)> {
        self.session.measure(py, sql, limit_s)
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

    fn close(&self, py: Python<'_>) {
        self.session.close(py);
    }
}
