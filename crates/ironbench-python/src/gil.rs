//! Runs long work without the GIL, checks for signals meanwhile, and converts errors.

use std::sync::Mutex;

use ironbench_core::Result;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::raise;

/// Runs `work` without the GIL. `work` must call its argument at least every 50 ms. If a call returns false, a signal
/// handler of Python has raised an exception, and `work` must end soon. After Ctrl-C, the result of `work` is returned
/// as usual. Other exceptions are raised here.
pub fn release<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T> + Send,
) -> PyResult<T> {
    let raised = Mutex::new(None::<PyErr>);
    let outcome = py.detach(|| {
        work(&mut || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(error) => {
                let mut first = raised.lock().expect("nothing panics while it holds the error");
                first.get_or_insert(error);
                false
            }
        })
    });
    let raised = raised.into_inner().expect("nothing panics while it holds the error");
    match raised {
        Some(error) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
        _ => outcome.map_err(raise),
    }
}
