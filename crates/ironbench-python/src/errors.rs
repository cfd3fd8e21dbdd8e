//! Converts core errors to `ironbench.errors`. That module is imported when the first error is raised.

use ironbench_core::{Error, Kind};
use pyo3::prelude::*;

pyo3::import_exception!(ironbench.errors, FailureError);
pyo3::import_exception!(ironbench.errors, InputError);

/// Creates the exception with subject, cause and hint. The server's SQLSTATE becomes its attribute `sqlstate`, and the
/// server's error number its attribute `number`.
pub fn raise(error: Error) -> PyErr {
    let arguments = (error.subject, error.cause, error.hint);
    let raised = match error.kind {
        Kind::Input => InputError::new_err(arguments),
        Kind::Failure => FailureError::new_err(arguments),
    };
    if error.sqlstate.is_empty() && error.number == 0 {
        return raised;
    }
    Python::attach(|py| {
        let value = raised.value(py);
        let number = if error.number == 0 { Ok(()) } else { value.setattr("number", error.number) };
        match value.setattr("sqlstate", error.sqlstate).and(number) {
            Ok(()) => raised,
            Err(failed) => failed,
        }
    })
}
