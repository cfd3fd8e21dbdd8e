//! Trials over connections of a database driver that is a Python package.
//!
//! A client holds the GIL while it works. The driver releases the GIL while it waits for its server, and the core's own
//! sleeps release it as well.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use ironbench_core::Error;
use ironbench_core::drive::blocking::Patience;
use ironbench_core::drive::{self as core, Control};
use ironbench_core::measure::clock;
use ironbench_core::wire::library::{Answer, Library, Parameter, Trouble};
use pgbench_script::{Gather, Program, Sql};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::door;
use crate::drive::{DriveResult, Progress, jobs_of, plan_of};

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
/// - `inside`: whether the engine does its work in the calling thread
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
    let patience = Patience::default();
    let give_up = patience.give_up();
    let open = |program: &Program, client: usize| {
        Python::attach(|py| {
            let object = connect.bind(py).call1((client, commands(program))).map_err(|error| failure(py, &error))?;
            known().push(object.clone().unbind());
            Client::new(&object, give_up.clone()).map_err(|error| failure(py, &error))
        })
    };
    door::leave(py, |poll| {
        let mut poll = || {
            if give_up.load(Relaxed) {
                // The list is copied, because its lock must not be held during the calls, which may wait for the GIL.
                let all: Vec<_> = Python::attach(|py| known().iter().map(|one| one.clone_ref(py)).collect());
                Python::attach(|py| all.iter().for_each(|one| drop(one.call_method0(py, "cancel"))));
            }
            poll()
        };
        core::called(&plan, jobs_of(&plan)?.as_deref(), &control, open, patience, &mut poll)
    })
    .map(DriveResult::from)
}

fn commands(program: &Program) -> Vec<(String, &'static str, bool)> {
    let wanted = |gather: &Gather| match gather {
        Gather::Discard => "",
        Gather::Gset { .. } => "gset",
        Gather::Aset { .. } => "aset",
    };
    program.sqls().map(|(_, sql)| (sql.with_question_marks(), wanted(&sql.gather), sql.combined)).collect()
}

/// Converts an error of `connect`. If it has a subject, cause and hint, they are kept.
fn failure(py: Python<'_>, error: &PyErr) -> Error {
    let text = |name: &str| error.value(py).getattr(name).and_then(|value| value.extract::<String>());
    let Ok(cause) = text("cause") else { return Error::failure("connection", error.to_string()) };
    Error::failure(text("subject").unwrap_or_default(), cause).hint(text("hint").unwrap_or_default())
}

struct Client {
    connection: Py<PyAny>,
    steps: Vec<Py<PyAny>>,
    inside: bool,
    open: bool,
    give_up: Arc<AtomicBool>,
}

impl Client {
    fn new(connection: &Bound<'_, PyAny>, give_up: Arc<AtomicBool>) -> PyResult<Self> {
        let steps = connection.getattr("steps")?.extract()?;
        let inside = connection.getattr("inside")?.is_truthy()?;
        Ok(Self { connection: connection.clone().unbind(), steps, inside, open: false, give_up })
    }

    fn trouble(&self, py: Python<'_>, error: &PyErr) -> Trouble {
        let Ok(value) = self.connection.bind(py).call_method1("trouble", (error.value(py),)) else {
            // If the driver cannot describe the error, the connection is given up, because the error might occur again
            // and again.
            let (class, message) = ("driver".into(), error.to_string());
            return Trouble { class, message, retryable: false, lasting: true };
        };
        let text = |name: &str| value.getattr(name).and_then(|value| value.extract::<String>());
        let is = |name: &str| value.getattr(name).and_then(|value| value.is_truthy());
        let trouble = Trouble {
            class: text("sqlstate").unwrap_or_else(|_| "driver".to_owned()).into(),
            message: text("cause").unwrap_or_else(|_| error.to_string()),
            retryable: is("retryable").unwrap_or(false),
            lasting: is("lasting").unwrap_or(true),
        };
        if self.give_up.load(Relaxed) { trouble.given_up() } else { trouble }
    }
}

impl Library for Client {
    fn run<'v>(&mut self, sql: &Sql, value: impl Fn(usize) -> Parameter<'v>) -> Result<Answer, Trouble> {
        Python::attach(|py| {
            let wanted = !matches!(sql.gather, Gather::Discard);
            let values = (0..sql.parameters.len()).map(|place| object(py, value(place))).collect::<PyResult<Vec<_>>>();
            let answer = values
                .and_then(|values| PyTuple::new(py, values))
                .and_then(|values| self.steps[sql.id].bind(py).call1((values,)))
                .and_then(|answer| if wanted { answer.extract() } else { Ok((answer.is_truthy()?, 0, Vec::new())) });
            match answer {
                Ok((open, rows, gathered)) => {
                    self.open = open;
                    Ok(Answer { rows, gathered })
                }
                Err(error) => Err(self.trouble(py, &error)),
            }
        })
    }

    fn io(&self) -> &'static str {
        if self.inside { "blocking" } else { "driver" }
    }

    fn is_remote(&self) -> bool {
        !self.inside
    }

    fn in_transaction(&self) -> bool {
        self.open
    }

    fn rollback(&mut self) -> Result<(), Trouble> {
        self.open = false;
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

fn object<'py>(py: Python<'py>, value: Parameter<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Parameter::Null => Ok(py.None().into_bound(py)),
        Parameter::Integer(integer) => Ok(integer.into_pyobject(py)?.into_any()),
        Parameter::Double(double) => Ok(double.into_pyobject(py)?.into_any()),
        Parameter::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
    }
}
