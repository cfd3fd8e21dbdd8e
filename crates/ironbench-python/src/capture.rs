//! Captures of production work for Python: reading logs, and writing the tape of a replay.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use ironbench_capture::mask::Mask;
use ironbench_capture::observed::{Collector, Dialect, Event, Observed, SessionNames};
use ironbench_capture::rows::{self, FFI_ArrowArrayStream, Logs, Progress, Statements};
use ironbench_capture::tape::{self, RecordBatchStreamReader};
use ironbench_core::Error;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::data::unreadable;
use crate::errors::raise;
use crate::proxy::CapturedRows;

pub const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// The statements in log files as Arrow. All streams share one position, so that each statement is read once.
#[pyclass(module = "ironbench._core", frozen)]
pub struct LogRows {
    statements: Statements,
    progress: Arc<Progress>,
}

#[pymethods]
impl LogRows {
    /// Opens the files. `logs` is JSON of `Logs` in crates/ironbench-capture/src/rows.rs.
    #[new]
    fn new(py: Python<'_>, logs: &[u8]) -> PyResult<Self> {
        let logs: Logs = serde_json::from_slice(logs).map_err(unreadable("logs"))?;
        let progress = Arc::<Progress>::default();
        let shared = Arc::clone(&progress);
        let statements = py.detach(|| rows::open(&logs, shared)).map_err(raise)?;
        Ok(Self { statements, progress })
    }

    /// Implements <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema); // optional, may be ignored
        PyCapsule::new_with_value(py, self.statements.stream(), STREAM)
    }

    /// Returns how many bytes of the files have been read.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.progress.bytes.load(Relaxed)
    }

    #[getter]
    fn statements(&self) -> u64 {
        self.progress.statements.load(Relaxed)
    }

    fn stop(&self) {
        self.progress.stop.store(true, Relaxed);
    }

    /// Returns the summary of observations, as JSON of `Summary` in crates/ironbench-capture/src/rows.rs. The summary
    /// is complete when all statements have been read.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let summary = self.progress.summary.lock().unwrap_or_else(PoisonError::into_inner);
        let json = serde_json::to_vec(&*summary);
        let json = json.map_err(|error| raise(Error::failure("capture", error.to_string())))?;
        Ok(PyBytes::new(py, &json))
    }
}

/// Statements that an engine has read from its logs. Analyses them, and assigns them to transactions.
#[pyclass(module = "ironbench._core", frozen)]
pub struct LoggedRows(Mutex<LoggedState>);

struct LoggedState {
    collector: Collector,
    names: Arc<SessionNames>,
    requests: u32,
}

#[pymethods]
impl LoggedRows {
    /// `mask` says whether the rows contain no literals.
    #[new]
    fn new(mask: bool) -> PyResult<Self> {
        let collector = Collector::new(mask, Dialect::Mysql).map_err(raise)?;
        Ok(Self(Mutex::new(LoggedState { collector, names: Arc::default(), requests: 0 })))
    }

    /// Adds a statement. Returns whether the rows should be taken.
    #[pyo3(signature = (session, at_us, text, names, prepared, values, types, duration_us, rows))]
    #[expect(clippy::too_many_arguments, reason = "the fields of a statement")]
    fn add(
        &self,
        session: u32,
        at_us: i64,
        text: &[u8],
        names: (&str, &str),
        prepared: Option<&str>,
        values: Vec<Option<Vec<u8>>>,
        types: &str,
        duration_us: Option<u64>,
        rows: Option<u64>,
    ) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (user, database) = names;
        if *state.names.user != *user.as_bytes() || *state.names.database != *database.as_bytes() {
            let (user, database) = (user.into(), database.into());
            state.names = Arc::new(SessionNames { user, database, application: Vec::new() });
        }
        state.requests = state.requests.wrapping_add(1);
        let statement = Observed {
            session,
            at_us,
            text: text.into(),
            prepared: prepared.map(|name| name.as_bytes().into()),
            values,
            types: types.into(),
            duration_us,
            rows,
            generated: None,
            error: None,
            obstacle: None,
            request: state.requests,
            in_block: false,
            leaves_block: None,
            after_gap: false,
            names: Arc::clone(&state.names),
        };
        state.collector.add(Event::Statement(Box::new(statement)));
        state.collector.is_full()
    }

    /// Returns the statements that were added since the last call. Returns None if there are none.
    fn take(&self) -> Option<CapturedRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).collector.batch().map(CapturedRows)
    }
}

/// Returns a statement of PostgreSQL with masked literals and without comments.
#[pyfunction]
pub fn masked_statement(text: &str) -> PyResult<String> {
    let mask = Mask::new(Dialect::Postgres);
    let mask = mask.map_err(|error| raise(Error::failure("key of the mask", error.to_string())))?;
    Ok(mask.statement(text).0)
}

/// Writes the tape of a replay from an object with `__arrow_c_stream__`, whose columns
/// crates/ironbench-capture/src/tape.rs describes. Returns the start and end of each client's range in the tape.
#[pyfunction]
pub fn write_tape(rows: &Bound<'_, PyAny>, path: PathBuf) -> PyResult<Vec<(u64, u64)>> {
    let capsule = rows.call_method0("__arrow_c_stream__")?;
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name contains such a stream, which is moved out of the capsule.
    let stream = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) };
    let stream = stream.map_err(|error| raise(Error::failure("capture", error.to_string())))?;
    // This thread keeps the GIL, because the stream may be implemented in Python.
    let parts = tape::write(stream, &path).map_err(raise)?;
    Ok(parts.into_iter().map(|part| (part.start, part.end)).collect())
}
