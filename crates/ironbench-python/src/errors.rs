//! Core errors as `ironbench.errors`, looked up when the first one is raised.

use ironbench_core::{Error, Kind};
use pyo3::PyErr;

pyo3::import_exception!(ironbench.errors, FailureError);
pyo3::import_exception!(ironbench.errors, InputError);

/// Subject, cause and hint, as the Python class that fits.
pub fn raise(error: Error) -> PyErr {
    let arguments = (error.subject, error.cause, error.hint);
    match error.kind {
        Kind::Input => InputError::new_err(arguments),
        Kind::Failure => FailureError::new_err(arguments),
    }
}
