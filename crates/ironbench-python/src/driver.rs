//! Trials over connections of a database driver that is a Python package.
//!
//! A client holds the GIL while it works. The driver releases the GIL while it waits for its server, and the core's own
//! sleeps release it as well.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use ironbench_core::Error;
use ironbench_core::drive::blocking::GiveUpTimer;
use ironbench_core::drive::{self as core, Control};
use ironbench_core::measure::clock;
use ironbench_core::wire::library::{Answer, Library, Parameter, StatementError};
use pgbench_script::{Program, ResultUse, Sql};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::drive::{DriveResult, Progress, jobs_of, plan_of};
use crate::gil;

/// Runs one trial like `drive`, over connections that `connect` opens. `connect` gets the number of a client and its
/// SQL commands. A command is a tuple of three values:
///
/// - the text of the command, with `?` for parameters
/// - the rows to return: `gset` for the rows of the last statement, `aset` for the rows of each statement, empty for no
///   rows
/// - whether the text has several statements (`\;`)
///
/// The connection that `connect` returns has:
///
/// - `steps`: a function for each command. The function gets the values of the parameters, and runs the command to its
///   last row. The function returns whether a transaction is open afterwards. If rows are to be returned, it returns a
///   tuple of whether a transaction is open, the number of rows of the last statement, and the names and texts of the
///   columns of the last rows
/// - `works_in_calling_thread`: whether the engine does its work in the calling thread
/// - `rollback()`
/// - `trouble(error)`: describes an error that one of these raised, as an object with `sqlstate`, `cause`, `retryable`
///   and `lasting`
/// - `cancel()`: called repeatedly by another thread when the running command must end
#[pyfunction]
#[pyo3(signature = (plan, connect, progress=None))]
pub fn drive_called(
    py: Python<'_>,
    plan: &[u8],
    connect: Py<PyAny>,
    progress: Option<&Bound<'_, Progress>>,
) -> PyResult<DriveResult> {
    let plan = plan_of(plan)?;
    let control = progress.map_or_else(|| Arc::new(Control::new()), |progress| progress.get().control());
    let connected = Mutex::new(Vec::<Py<PyAny>>::new());
    let known = || connected.lock().unwrap_or_else(PoisonError::into_inner);
    let give_up_timer = GiveUpTimer::default();
    let give_up = give_up_timer.give_up();
    let in_transaction = |program: &Program, client: usize| {
        Python::attach(|py| {
            let object =
                connect.bind(py).call1((client, commands(program))).map_err(|error| connect_error(py, &error))?;
            known().push(object.clone().unbind());
            DriverConnection::new(&object, give_up.clone()).map_err(|error| connect_error(py, &error))
        })
    };
    gil::release(py, |poll| {
        let mut poll = || {
            if give_up.load(Relaxed) {
                // The list is copied, because its lock must not be held during the calls, which may wait for the GIL.
                let all: Vec<_> = Python::attach(|py| known().iter().map(|one| one.clone_ref(py)).collect());
                Python::attach(|py| all.iter().for_each(|one| drop(one.call_method0(py, "cancel"))));
            }
            poll()
        };
        core::drive_with(&plan, jobs_of(&plan)?.as_deref(), &control, in_transaction, give_up_timer, &mut poll)
    })
    .map(DriveResult::from)
}

fn commands(program: &Program) -> Vec<(String, &'static str, bool)> {
    let wanted = |result_use: &ResultUse| match result_use {
        ResultUse::Discard => "",
        ResultUse::Gset { .. } => "gset",
        ResultUse::Aset { .. } => "aset",
    };
    program.sqls().map(|(_, sql)| (sql.with_question_marks(), wanted(&sql.result_use), sql.combined)).collect()
}

/// Converts an error of `connect`. If it has a subject, cause and hint, they are kept.
fn connect_error(py: Python<'_>, error: &PyErr) -> Error {
    let text = |name: &str| error.value(py).getattr(name).and_then(|value| value.extract::<String>());
    let Ok(cause) = text("cause") else { return Error::failure("connection", error.to_string()) };
    Error::failure(text("subject").unwrap_or_default(), cause).hint(text("hint").unwrap_or_default())
}

/// A connection of a driver, as described at `drive_called`.
struct DriverConnection {
    connection: Py<PyAny>,
    steps: Vec<Py<PyAny>>,
    works_in_calling_thread: bool,
    in_transaction: bool,
    give_up: Arc<AtomicBool>,
}

impl DriverConnection {
    fn new(connection: &Bound<'_, PyAny>, give_up: Arc<AtomicBool>) -> PyResult<Self> {
        let steps = connection.getattr("steps")?.extract()?;
        let works_in_calling_thread = connection.getattr("inside")?.is_truthy()?;
        Ok(Self {
            connection: connection.clone().unbind(),
            steps,
            works_in_calling_thread,
            in_transaction: false,
            give_up,
        })
    }

    fn trouble(&self, py: Python<'_>, error: &PyErr) -> StatementError {
        let Ok(value) = self.connection.bind(py).call_method1("trouble", (error.value(py),)) else {
            // If the driver cannot describe the error, the connection is given up, because the error might occur again
            // and again.
            let (class, message) = ("driver".into(), error.to_string());
            return StatementError { class, message, retryable: false, lasting: true };
        };
        let text = |name: &str| value.getattr(name).and_then(|value| value.extract::<String>());
        let is = |name: &str| value.getattr(name).and_then(|value| value.is_truthy());
        let trouble = StatementError {
            class: text("sqlstate").unwrap_or_else(|_| "driver".to_owned()).into(),
            message: text("cause").unwrap_or_else(|_| error.to_string()),
            retryable: is("retryable").unwrap_or(false),
            lasting: is("lasting").unwrap_or(true),
        };
        if self.give_up.load(Relaxed) { trouble.interrupted() } else { trouble }
    }
}

impl Library for DriverConnection {
    fn run<'v>(&mut self, sql: &Sql, value: impl Fn(usize) -> Parameter<'v>) -> Result<Answer, StatementError> {
        Python::attach(|py| {
            let wanted = !matches!(sql.result_use, ResultUse::Discard);
            let values =
                (0..sql.parameters.len()).map(|place| to_python(py, value(place))).collect::<PyResult<Vec<_>>>();
            let answer = values
                .and_then(|values| PyTuple::new(py, values))
                .and_then(|values| self.steps[sql.id].bind(py).call1((values,)))
                .and_then(|answer| if wanted { answer.extract() } else { Ok((answer.is_truthy()?, 0, Vec::new())) });
            match answer {
                Ok((in_transaction, rows, gathered)) => {
                    self.in_transaction = in_transaction;
                    Ok(Answer { rows, gathered })
                }
                Err(error) => Err(self.trouble(py, &error)),
            }
        })
    }

    fn io(&self) -> &'static str {
        if self.works_in_calling_thread { "blocking" } else { "driver" }
    }

    fn is_remote(&self) -> bool {
        !self.works_in_calling_thread
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn rollback(&mut self) -> Result<(), StatementError> {
        self.in_transaction = false;
        let done = Python::attach(|py| {
            self.connection.call_method0(py, "rollback").map(drop).map_err(|error| self.trouble(py, &error))
        });
        // After `cancel`, errors are expected and ignored.
        if self.give_up.load(Relaxed) { Ok(()) } else { done }
    }

    fn within<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        Python::attach(|_| work(self))
    }

    fn sleep_until(&self, instant: u64) {
        if instant > clock::now() {
            Python::attach(|py| py.detach(|| clock::sleep_until(instant)));
        }
    }
}

fn to_python<'py>(py: Python<'py>, value: Parameter<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Parameter::Null => Ok(py.None().into_bound(py)),
        Parameter::Integer(integer) => Ok(integer.into_pyobject(py)?.into_any()),
        Parameter::Double(double) => Ok(double.into_pyobject(py)?.into_any()),
        Parameter::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
    }
}
