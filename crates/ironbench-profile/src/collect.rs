//! Turns the kernel's records into counts of stacks. There is one row for each combination of stack, thread and reason.

use foldhash::HashMap;
use perf_event_open_sys::bindings;

use crate::processes::{NameId, Processes, Role};
use crate::progress::Progress;
use crate::record::{Batch, Record, Sample, UserState};
use crate::stacks::{EMPTY, StackId, Stacks};
use crate::timeline::{RowId, Timeline};
use crate::traced::Traced;
use crate::tracefs::Scheduler;
use crate::unwind::Unwinder;
use crate::waits::{Reason, Thread, Wait, Waits};

/// Maximum number of rows, about 40 MB.
const MOST_ROWS: usize = 1 << 19;
/// Bit of a tracepoint's common_flags (TRACE_FLAG_HARDIRQ, include/linux/trace_events.h). The common_flags are the
/// third byte of the raw data.
const IN_INTERRUPT: u8 = 0x08;

/// The kind of samples that an event produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Clock,
    Switch,
    Waking,
}

/// A row of the profile. Samples are counted for each row. `reason` is the reason of a wait, or None for CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub reason: Option<Reason>,
    pub role: Role,
    pub name: NameId,
    pub stack: StackId,
    pub waker: StackId,
}

/// All rows. The number of rows is limited. At the limit, a new combination is counted in the row without the waker's
/// stack. If there is no such row, it is counted in the row without the thread's stack.
#[derive(Default)]
pub struct Rows {
    pub rows: Vec<Row>,
    ids: HashMap<Row, RowId>,
}

impl Rows {
    fn id(&mut self, row: Row) -> RowId {
        if let Some(&id) = self.ids.get(&row) {
            return id;
        }
        if self.rows.len() >= MOST_ROWS {
            if row.waker != EMPTY {
                return self.id(Row { waker: EMPTY, ..row });
            }
            if row.stack != EMPTY {
                return self.id(Row { stack: EMPTY, ..row });
            }
        }
        let id = self.rows.len() as RowId;
        self.rows.push(row);
        self.ids.insert(row, id);
        id
    }
}

pub struct Collector {
    sources: HashMap<u64, Source>,
    scheduler: Option<Scheduler>,
    /// The sampling thread, which is not part of the profile.
    sampler_tid: i32,
    /// CPU time that one sample of the clock stands for.
    period_ns: u64,
    pub processes: Processes,
    pub stacks: Stacks,
    pub rows: Rows,
    pub timeline: Timeline,
    waits: Waits,
    pub traced: Traced,
    pub progress: Progress,
    unwinder: Unwinder,
    /// CPU samples that the kernel could not write.
    pub lost: u64,
    pub truncated: u64,
    /// CPU samples of processes that have no role.
    pub others: u64,
}

impl Collector {
    pub fn new(
        sources: HashMap<u64, Source>,
        scheduler: Option<Scheduler>,
        processes: Processes,
        stacks: Stacks,
        sampler_tid: i32,
        period_ns: u64,
    ) -> Self {
        Self {
            sources,
            scheduler,
            sampler_tid,
            period_ns,
            processes,
            stacks,
            rows: Rows::default(),
            timeline: Timeline::default(),
            waits: Waits::default(),
            traced: Traced::default(),
            progress: Progress::default(),
            unwinder: Unwinder::default(),
            lost: 0,
            truncated: 0,
            others: 0,
        }
    }

    /// Adds a record. Records must arrive in order of time.
    pub fn add(&mut self, record: &Record<'_>) {
        match *record {
            Record::Sample(ref sample) => match (self.sources.get(&sample.event), self.scheduler) {
                (Some(Source::Clock), _) => self.ran(sample),
                (Some(Source::Switch), Some(scheduler)) => self.switched(sample, scheduler),
                (Some(Source::Waking), Some(scheduler)) => self.woke(sample, scheduler),
                _ => {}
            },
            Record::Map(ref map) => self.processes.mapped(map),
            Record::Comm { pid, tid, name, exec } => {
                if self.processes.role(pid).is_some() {
                    self.processes.named(tid, name);
                    if exec {
                        self.processes.executed(pid);
                    }
                }
            }
            Record::Fork { pid, tid, parent_pid, parent_tid } => {
                self.processes.forked(pid, tid, parent_pid, parent_tid);
            }
            Record::Exit { pid, tid } => {
                self.processes.exited(pid, tid);
                self.waits.exited(tid);
            }
            Record::SwitchIn { tid, time } => {
                for wait in self.waits.switched_in(tid, time) {
                    self.waited(&wait);
                }
            }
            // Switches are only lost after the end of a window, where they do not count.
            Record::Lost { event, records } if self.sources.get(&event) == Some(&Source::Clock) => self.lost += records,
            Record::Lost { .. } => {}
            Record::Other => {}
        }
    }

    /// Handles the end of a window in which switches were recorded.
    pub fn end_window(&mut self, time: u64, records: &Batch) {
        // Some records may be newer than the end of the window.
        self.traced.end(time);
        for &(_, at) in &records.index {
            self.add(&records.record(at));
        }
        for wait in self.waits.waits_until(time) {
            self.waited(&wait);
        }
    }

    fn ran(&mut self, sample: &Sample<'_>) {
        if sample.tid == self.sampler_tid {
            return;
        }
        let Some(role) = self.processes.role(sample.pid) else {
            self.others += 1;
            return;
        };
        self.waits.ran(sample.tid);
        let (name, stack) = (self.processes.name(sample.tid), self.unwound(sample, UserState::parse(sample.rest)));
        let row = self.rows.id(Row { reason: None, role, name, stack, waker: EMPTY });
        self.timeline.add(row, sample.time, self.period_ns);
    }

    fn switched(&mut self, sample: &Sample<'_>, scheduler: Scheduler) {
        let (raw, user) = sample.tracepoint();
        let (pid, state) = (scheduler.previous_pid.read(raw), scheduler.previous_state.read(raw));
        let (Some(pid), Some(state)) = (pid, state) else { return };
        if sample.tid == self.sampler_tid {
            return;
        }
        let Some(role) = self.processes.role(sample.pid) else { return };
        let (name, stack) = (self.processes.name(sample.tid), self.unwound(sample, UserState::parse(user)));
        self.waits.switched_out(pid, Thread { tid: sample.tid, role, name, stack }, state, sample.time);
    }

    fn woke(&mut self, sample: &Sample<'_>, scheduler: Scheduler) {
        let (raw, _) = sample.tracepoint();
        let Some(pid) = scheduler.woken_pid.read(raw).filter(|&pid| self.waits.is_blocked(pid)) else { return };
        // There are two cases in which only the kernel's frames are used. An interrupt can hit any process, so the
        // process that was interrupted did not wake the thread. And the mappings of a process without a role are not
        // known.
        let is_interrupt = raw.get(2).is_some_and(|flags| flags & IN_INTERRUPT != 0);
        let waker = if is_interrupt || self.processes.role(sample.pid).is_none() {
            let kernel = sample.chain.iter().position(|&address| address == bindings::PERF_CONTEXT_USER);
            let chain = &sample.chain[..kernel.unwrap_or(sample.chain.len())];
            self.stack(&Sample { chain, ..*sample })
        } else {
            self.stack(sample)
        };
        self.waits.woken(pid, waker, sample.time);
    }

    fn waited(&mut self, wait: &Wait) {
        let &Wait { role, name, reason, stack, waker, start, end, .. } = wait;
        let Some((start, end)) = self.traced.counted(start, end) else { return };
        let row = self.rows.id(Row { reason: Some(reason), role, name, stack, waker });
        self.timeline.add_interval(row, start, end);
    }

    /// Returns the stack of a sample whose chain contains all frames.
    fn stack(&mut self, sample: &Sample<'_>) -> StackId {
        let truncated = self.stacks.is_truncated(sample.chain);
        self.truncated += u64::from(truncated);
        self.stacks.id(&self.processes.space(sample.pid), sample.chain, truncated)
    }

    /// Returns the stack of a sample whose chain contains only the kernel's frames. The user's frames are unwound here.
    fn unwound(&mut self, sample: &Sample<'_>, user: Option<UserState<'_>>) -> StackId {
        let Some(user) = user else { return self.stack(sample) };
        let space = self.processes.space(sample.pid);
        let mut chain = sample.chain.to_vec();
        chain.push(bindings::PERF_CONTEXT_USER);
        let files = &self.processes.files;
        let complete = self.unwinder.unwind(&space, files, user, self.stacks.depth_limit, &mut chain);
        self.truncated += u64::from(!complete);
        self.stacks.id(&space, &chain, !complete)
    }
}
