//! A blocking session of a server for Python, for any protocol.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironbench_core::wire::{Cancel, Connector, Session, SessionProtocol};
use ironbench_core::{Error, Result, measure::clock};
use pyo3::{prelude::*, sync::MutexExt, types::PyTuple};
use serde::de::DeserializeOwned;

use crate::errors::raise;

/// A session that runs one statement at a time. If several threads use it, they wait for each other.
pub struct SharedSession<P: SessionProtocol> {
    state: Mutex<State<P>>,
    cancel: Option<Cancel<P>>,
    /// The exception that Python's signal handler raised while a statement ran (Ctrl-C).
    signal_error: SignalError,
}

struct State<P: SessionProtocol> {
    session: Option<Session<P>>,
    columns: Vec<String>,
    changes: u64,
}

type SignalError = Arc<Mutex<Option<PyErr>>>;

/// Parses connection settings from JSON. An error contains only its position. The original message may contain the
/// value, which may be the password.
fn parse_settings<C: DeserializeOwned>(connection: &[u8]) -> PyResult<C> {
    serde_json::from_slice(connection).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        raise(Error::input("connection", format!("its description cannot be read ({place})")))
    })
}

impl<P: SessionProtocol> SharedSession<P>
where
    P::Settings: DeserializeOwned,
{
    /// Connects. The session checks for Ctrl-C while it waits for the server. If the server sends nothing for
    /// `silence_s` seconds, and does not answer a new connection either, the statement fails.
    pub fn open(py: Python<'_>, connection: &[u8], silence_s: Option<f64>) -> PyResult<Self> {
        let connection = parse_settings(connection)?;
        let signal_error = SignalError::default();
        let raised = signal_error.clone();
        let listen = Box::new(move || {
            let Err(error) = Python::attach(|py| py.check_signals()) else {
                return false;
            };
            *locked(&raised) = Some(error);
            true
        });
        let open = || {
            let mut session = Session::open(&Connector::new(connection)?, listen)?;
            if let Some(silence) = silence_s {
                session.give_up_when_frozen(Duration::from_secs_f64(silence.clamp(0.0, 3600.0)));
            }
            Ok(session)
        };
        let session = py.detach(open).map_err(|error| locked(&signal_error).take().unwrap_or_else(|| raise(error)))?;
        let cancel = session.canceller();
        let state = Mutex::new(State { session: Some(session), columns: Vec::new(), changes: 0 });
        Ok(Self { state, cancel, signal_error })
    }

    /// Cancels the running statement. Is called from another thread.
    pub fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.cancel.as_ref().map_or(Ok(()), Cancel::send)).map_err(raise)
    }

    /// Runs `sql`. After `limit_s` seconds the statement fails and the connection is closed. `None` means no limit.
    pub fn query<'py>(&self, py: Python<'py>, sql: &str, limit_s: Option<f64>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let rows = self.run(py, |state| {
            let outcome = with_time_limit(state.session()?, limit_s, |session| session.run(sql))?;
            state.columns = outcome.rows.columns().to_vec();
            state.changes = outcome.affected;
            Ok(outcome.rows)
        })?;
        (0..rows.len()).map(|row| PyTuple::new(py, rows.row(row))).collect()
    }

    /// Runs `sql` without returning rows to Python. Returns the number of rows, the instant of submission, and the
    /// instant of the last byte of the reply. After `limit_s` seconds the statement fails and the connection is closed.
    pub fn measure(&self, py: Python<'_>, sql: &str, limit_s: Option<f64>) -> PyResult<(u64, f64, f64)> {
        self.run(py, |state| {
            let submitted = clock::now();
            let rows = with_time_limit(state.session()?, limit_s, |session| session.count(sql))?;
            Ok((rows, clock::to_seconds(submitted), clock::to_seconds(clock::now())))
        })
    }

    pub fn copy_in(&self, py: Python<'_>, sql: &str, data: &[u8]) -> PyResult<u64> {
        self.run(py, |state| state.session()?.copy_in(sql, data))
    }

    /// Runs `work` on the session.
    pub fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Session<P>) -> Result<T> + Send) -> PyResult<T> {
        self.run(py, |state| work(state.session()?))
    }

    pub fn columns(&self, py: Python<'_>) -> Vec<String> {
        self.state(py).columns.clone()
    }

    pub fn changes(&self, py: Python<'_>) -> u64 {
        self.state(py).changes
    }

    /// Calls `inspect` with the session. Returns `None` if the session is closed.
    pub fn inspect<T>(&self, py: Python<'_>, inspect: impl FnOnce(&Session<P>) -> T) -> Option<T> {
        self.state(py).session.as_ref().map(inspect)
    }

    pub fn close(&self, py: Python<'_>) {
        let session = self.state(py).session.take();
        py.detach(|| drop(session));
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State<P>> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` without the GIL. The session itself checks for Ctrl-C, and cancels the statement if it was pressed.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State<P>) -> Result<T> + Send) -> PyResult<T> {
        let outcome = py.detach(|| work(&mut locked(&self.state)));
        match locked(&self.signal_error).take() {
            Some(signal) => Err(signal),
            None => outcome.map_err(raise),
        }
    }
}

/// Maximum time limit of a statement, in seconds.
const MAX_LIMIT_S: f64 = 3600.0;

/// Runs one statement, which must end within `limit_s` even if the server keeps sending data.
fn with_time_limit<P: SessionProtocol, T>(
    session: &mut Session<P>,
    limit_s: Option<f64>,
    run: impl FnOnce(&mut Session<P>) -> Result<T>,
) -> Result<T> {
    session.set_deadline(limit_s.map(|limit| Instant::now() + Duration::from_secs_f64(limit.clamp(0.0, MAX_LIMIT_S))));
    let answer = run(session);
    session.set_deadline(None);
    answer
}

impl<P: SessionProtocol> State<P> {
    fn session(&mut self) -> Result<&mut Session<P>> {
        self.session.as_mut().ok_or_else(|| Error::failure(P::NAME, "the connection is closed"))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
