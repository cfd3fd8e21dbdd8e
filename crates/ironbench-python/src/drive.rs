//! The drive call and its result.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironbench_core::Error;
use ironbench_core::drive::jobs::Jobs;
use ironbench_core::drive::ldap::AccessLogReplay;
use ironbench_core::drive::outcome::{Columns, Outcome};
use ironbench_core::drive::plan::Plan;
use ironbench_core::drive::turns::TurnTotals;
use ironbench_core::drive::{self as core, Capture, Control, ProbeClient, merge};
use ironbench_core::measure::clock;
use ironbench_core::measure::seconds::Second;
use ironbench_data::brokerage::roles::{self, Roles};
use ironbench_data::inputs::{self, Inputs};
use ironbench_data::populate::Populate;
use ironbench_data::tpcc::terminals::{self, Terminals};
use ironbench_data::ycsb;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use serde::Deserialize;

use crate::errors::raise;
use crate::gil;
use crate::histogram::Histogram;

/// Result of a turn. The result consists of the number of successful transactions, the number of failed transactions,
/// and three times in seconds: those of the transactions, of the start-up and of draining.
type TurnResult = (u64, u64, f64, f64, f64);

/// Progress of a running `drive`, which other threads can read.
#[pyclass(module = "ironbench._core", frozen)]
pub struct Progress {
    control: Arc<Control>,
    /// State of a drive that runs in another process, or None for a drive in this process.
    remote: Mutex<Option<RemoteState>>,
}

/// Progress of a drive that runs in another process.
#[derive(Clone)]
struct RemoteState {
    phase: String,
    elapsed_s: f64,
    transactions: u64,
    errors: u64,
    seconds: Vec<SecondRow>,
}

/// A second of the window that is complete. This tuple contains a width, the numbers of successful and failed
/// transactions, the mean and standard deviation of the response time, and the number of committed transactions of the
/// first script.
type SecondRow = (f64, u64, u64, f64, f64, u64);

impl Progress {
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    fn remote(&self) -> MutexGuard<'_, Option<RemoteState>> {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Self {
        Self { control: Arc::new(Control::new()), remote: Mutex::new(None) }
    }

    /// Stops the trial within a second. The trial's result is marked as `cut_short`.
    fn stop(&self) {
        self.control.stop();
    }

    /// Closes the window of a trial that only observes other work. Is called when that work has ended.
    fn finish(&self) {
        self.control.finish();
    }

    /// Sets the start of a drive that is a part of a trial. All parts have the same start, which is a time on
    /// CLOCK_REALTIME.
    fn begin_at(&self, unix_ns: u64) {
        self.control.begin_at(unix_ns);
    }

    /// Makes the drive run in turns. Must be called before the drive starts. Such a drive ends with `finish`.
    fn by_turns(&self) {
        self.control.turns.ask();
    }

    /// Starts a turn. All clients must be resting. The clients work on these CPUs for `start_up_s`, and then for the
    /// measured slice.
    fn begin_turn(&self, start_up_s: f64, slice_s: f64, cpus: Vec<usize>) {
        self.control.turns.begin(clock::from_seconds(start_up_s), clock::from_seconds(slice_s), cpus);
    }

    /// Waits until all clients rest, because they are connected or have ended their turn.
    ///
    /// Returns how many transactions that started in the slice succeeded, how many failed, and three times in seconds.
    /// The first is the time that all clients spent on these transactions and on the think time after them. The second
    /// is the time before the slice. The third is the time from the slice's end until the last client rested. Returns
    /// None if the drive is over.
    fn rested(&self, py: Python<'_>) -> PyResult<Option<TurnResult>> {
        let turns = &self.control.turns;
        let totals = gil::release(py, |poll| Ok(turns.rested(poll)))?;
        let seconds = clock::to_seconds;
        Ok(totals.map(|TurnTotals { transactions, failed, busy_ns, start_up_ns, drain_ns, .. }| {
            (transactions, failed, seconds(busy_ns), seconds(start_up_ns), seconds(drain_ns))
        }))
    }

    /// Discards the measurements of the last turn. All clients must be resting.
    fn forget(&self) {
        self.control.turns.forget();
    }

    /// Whether all clients of a drive in turns have ended.
    #[getter]
    fn over(&self) -> bool {
        self.control.turns.is_over()
    }

    #[getter]
    fn stopping(&self) -> bool {
        self.control.is_stopped()
    }

    /// Shows the state of a drive that runs in another process.
    fn show(&self, phase: String, elapsed_s: f64, transactions: u64, errors: u64, mut seconds: Vec<SecondRow>) {
        let mut remote = self.remote();
        if let Some(before) = remote.take() {
            seconds.splice(0..0, before.seconds);
        }
        *remote = Some(RemoteState { phase, elapsed_s, transactions, errors, seconds });
    }

    /// Returns the complete seconds of the window, starting with number `after`.
    fn seconds(&self, after: usize) -> Vec<SecondRow> {
        if let Some(remote) = &*self.remote() {
            return remote.seconds.get(after..).unwrap_or_default().to_vec();
        }
        let passed = |s: Second| (s.width_s, s.transactions, s.failed, s.mean_s, s.stdev_s, s.first_committed);
        self.control.seconds(after).into_iter().map(passed).collect()
    }

    #[getter]
    fn phase(&self) -> String {
        self.remote().as_ref().map_or_else(|| self.control.phase().name().to_owned(), |remote| remote.phase.clone())
    }

    #[getter]
    fn elapsed_s(&self) -> f64 {
        self.remote().as_ref().map_or_else(|| self.control.elapsed_s(), |remote| remote.elapsed_s)
    }

    #[getter]
    fn transactions(&self) -> u64 {
        let live = &self.control.live.transactions;
        self.remote().as_ref().map_or_else(|| live.load(Relaxed), |remote| remote.transactions)
    }

    #[getter]
    fn errors(&self) -> u64 {
        let live = &self.control.live.failed;
        self.remote().as_ref().map_or_else(|| live.load(Relaxed), |remote| remote.errors)
    }
}

#[pyclass(module = "ironbench._core", frozen)]
pub struct DriveResult(Outcome);

impl From<Outcome> for DriveResult {
    fn from(outcome: Outcome) -> Self {
        Self(outcome)
    }
}

type Packed<'py> = BTreeMap<String, Bound<'py, PyBytes>>;

fn packed<'py>(py: Python<'py>, columns: &Columns) -> Packed<'py> {
    let column = |values: &[f64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        PyBytes::new(py, &bytes)
    };
    columns.iter().map(|(name, values)| (name.clone(), column(values))).collect()
}

#[pymethods]
impl DriveResult {
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let json = serde_json::to_vec(&self.0.summary);
        let json = json.map_err(|error| raise(Error::failure("summary of the trial", error.to_string())))?;
        Ok(PyBytes::new(py, &json))
    }

    #[getter]
    fn timeline<'py>(&self, py: Python<'py>) -> Packed<'py> {
        packed(py, &self.0.timeline)
    }

    #[getter]
    fn seconds<'py>(&self, py: Python<'py>) -> Packed<'py> {
        packed(py, &self.0.seconds)
    }

    #[getter]
    fn histograms(&self) -> BTreeMap<String, Histogram> {
        self.0.histograms.iter().map(|(name, histogram)| (name.clone(), histogram.clone().into())).collect()
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> BTreeMap<String, Vec<(f64, Bound<'py, PyBytes>)>> {
        let list = |samples: &[(f64, Vec<u8>)]| samples.iter().map(|(t, b)| (*t, PyBytes::new(py, b))).collect();
        self.0.samples.iter().map(|(name, samples)| (name.clone(), list(samples))).collect()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Outcome::from_bytes(data).map(Self).map_err(raise)
    }

    /// Merges the results of several drives that put load on one system at the same time.
    #[staticmethod]
    fn merged(py: Python<'_>, parts: Vec<PyBackedBytes>) -> PyResult<Self> {
        py.detach(|| merge::merged(parts.iter().map(|part| Outcome::from_bytes(part)))).map(Self).map_err(raise)
    }
}

/// Parses a plan from JSON.
pub fn plan_of(json: &[u8]) -> PyResult<Plan> {
    // The message contains only the position of the error. The original message may contain the value, which may be the
    // password.
    serde_json::from_slice(json).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        raise(Error::input("drive plan", format!("cannot be read ({place})")))
    })
}

/// Runs one trial from its plan (JSON). Releases the GIL. Ctrl-C ends the trial and keeps the result.
#[pyfunction]
#[pyo3(signature = (plan, progress=None))]
pub fn drive(py: Python<'_>, plan: &[u8], progress: Option<&Bound<'_, Progress>>) -> PyResult<DriveResult> {
    let plan = plan_of(plan)?;
    let control = progress.map_or_else(|| Arc::new(Control::new()), |progress| progress.get().control());
    gil::release(py, |poll| run_plan(&plan, &control, poll)).map(DriveResult)
}

/// Returns the variables that scripts may use without defining them, if this kind of source provides the jobs.
#[pyfunction]
pub fn job_variables(kind: &str) -> PyResult<Vec<&'static str>> {
    match kind {
        "brokerage" => Ok(roles::VARIABLES.to_vec()),
        "tpcc" => Ok(terminals::VARIABLES.to_vec()),
        _ => Err(raise(Error::input("kind of jobs", format!("unknown kind {kind}")))),
    }
}

/// Returns what is wrong with each operation of a directory. The text is empty for a valid operation.
#[pyfunction]
pub fn operation_complaints(operations: Vec<String>) -> Vec<String> {
    operations.iter().map(|text| core::ldap::complaint(text)).collect()
}

/// The kinds of work other than scripts.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Work {
    Populate(Populate),
    #[serde(rename = "bystander")]
    ProbeClient(ProbeClient),
    Replay(AccessLogReplay),
    Capture(Capture),
}

/// The kinds of sources of jobs. A source of jobs sets the inputs of scripts, or chooses the next script instead of the
/// weights.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum JobSource {
    Brokerage(Box<roles::Options>),
    Inputs(inputs::Options),
    Tpcc(terminals::Options),
    Ycsb(ycsb::Options),
}

/// Creates the source of jobs. Returns None if weights choose the scripts.
pub fn jobs_of(plan: &Plan) -> ironbench_core::Result<Option<Box<dyn Jobs>>> {
    let Some(jobs) = &plan.jobs else { return Ok(None) };
    let unreadable = |error: serde_json::Error| Error::input("jobs of the drive plan", error.to_string());
    let jobs: Box<dyn Jobs> = match JobSource::deserialize(jobs).map_err(unreadable)? {
        JobSource::Brokerage(options) => Box::new(Roles::new(*options, plan.clients, plan.part_or_whole(), plan.seed)?),
        JobSource::Inputs(options) => Box::new(Inputs::new(options, plan.part_or_whole(), plan.seed)?),
        JobSource::Tpcc(options) => Box::new(Terminals::new(options, plan.clients, plan.part_or_whole(), plan.seed)?),
        JobSource::Ycsb(options) => Box::new(ycsb::Operations::new(options, plan.part_or_whole(), plan.seed)?),
    };
    Ok(Some(jobs))
}

fn run_plan(plan: &Plan, control: &Control, poll: &mut dyn FnMut() -> bool) -> ironbench_core::Result<Outcome> {
    let Some(work) = &plan.work else {
        return core::drive(plan, jobs_of(plan)?.as_deref(), control, poll);
    };
    let unreadable = |error: serde_json::Error| Error::input("work of the drive plan", error.to_string());
    match Work::deserialize(work).map_err(unreadable)? {
        Work::Populate(populate) => populate.drive(plan, control, poll),
        Work::ProbeClient(client) => client.drive(plan, control, poll),
        Work::Replay(replay) => replay.drive(plan, control, poll),
        Work::Capture(capture) => capture.drive(plan, control, poll),
    }
}
