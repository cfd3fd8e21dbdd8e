//! Replays a trace on another device.
//!
//! In a closed replay an I/O waits for the one that caused it (`causes`).
//! The time in between is think time (`thinking`): the program's own work, which stays the same.
//! The I/O itself takes the new device's time.
//! So a trace of fixed work takes less time on a faster device, and I/Os issued together stay together.
//! Related work infers dependencies in trace replay: Tarihi, Asadi, Sarbazi-Azad, "DiskAccel", SIGMETRICS 2015;
//! Mesnier et al., "//TRACE", FAST 2007, which throttles nodes.
//! If the trace contains processor usage,
//! computing needs a core, of which there are as many as on the recorded machine.
//! On a fast device, the cores become the bottleneck. An open replay keeps the recorded arrivals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ironbench_core::measure::Histogram;
use ironbench_core::{Error, Result};

use super::Trace;
use super::causes::{Causes, NONE};
use super::cores::Cores;
use super::thinking::{Counts, Thought};
use crate::device::Device;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Fixed work: each I/O starts when the one it waited for is complete and the think time has passed.
    Closed,
    /// Fixed arrival times.
    Open,
}

#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// Nanoseconds from the first arrival to the last completion.
    pub elapsed: u64,
    pub recorded_elapsed: u64,
    /// Latencies by operation: read, write, flush.
    pub latency: [Histogram; 3],
    pub recorded_latency: [Histogram; 3],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// The longest chain of think times, a lower bound of the time on any device.
    pub thinking: u64,
    /// CPU time of the work, summed over all cores; 0 if the trace does not contain it.
    pub computing: u64,
    /// CPU time that the machine used during recording.
    pub used: u64,
    /// The part of all think times that was neither computing nor waiting for a core.
    pub idling: u64,
    /// Sum of all think times, including concurrent ones.
    pub thoughts: u64,
    /// CPU time that the device's driver would take on the host.
    pub host_cpu: u64,
}

/// Number of rows between two calls of `go_on`.
const PATIENCE: usize = 1 << 20;

/// Replays the trace on the device.
/// `go_on` is called regularly; when it returns false, the replay fails as interrupted.
pub fn replay(trace: &Trace, device: &mut dyn Device, pace: Pace, go_on: &mut dyn FnMut() -> bool) -> Result<Replayed> {
    if trace.end() > device.capacity() {
        let cause = format!("the trace reaches byte {}, but the device has only {}", trace.end(), device.capacity());
        return Err(Error::input("trace", cause).hint("use the capacity of the recorded device"));
    }
    let mut found = Replayed::default();
    let Some(start) = trace.time.first().copied() else { return Ok(found) };
    recorded(trace, start, &mut found);
    match pace {
        Pace::Open => {
            for row in 0..trace.len() {
                patient(row, go_on)?;
                submit(trace, device, row, trace.time[row] - start, &mut found);
            }
        }
        Pace::Closed => closed(trace, device, &mut found, go_on)?,
    }
    Ok(found)
}

fn closed(trace: &Trace, device: &mut dyn Device, found: &mut Replayed, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
    let counts = trace.processors.as_ref().map(|processors| Counts::of(trace, processors));
    let causes = Causes::of(trace, |now| counts.as_ref().map_or(1, |counts| counts.at_work(now)));
    let thoughts = match &counts {
        Some(counts) => counts.thoughts(trace, &causes),
        None => (0..trace.len()).map(|row| idle(trace.time[row] - causes.since[row])).collect(),
    };
    for (row, thought) in thoughts.iter().enumerate() {
        found.computing += thought.computes + thought.beside;
        found.idling += thought.waits;
        found.thoughts += trace.time[row] - causes.since[row];
    }
    found.used = counts.as_ref().map_or(0, Counts::used);
    let (cores, answering) = trace.processors.as_ref().map_or((1, 0), |told| (told.cores, told.answering));
    let mut work = Work { due: BinaryHeap::new(), cores: Cores::new(cores), thoughts: &thoughts };
    causes.after(NONE, |row| work.think(0, row));
    // For each pending I/O, the sum of think times on its chain so far.
    let mut chains: Vec<u64> = thoughts.iter().map(|one| one.computes + one.waits).collect();
    let mut seen = 0;
    while let Some(Reverse((now, what, row))) = work.due.pop() {
        patient(seen, go_on)?;
        seen += 1;
        if what == Event::Comes {
            let done = submit(trace, device, row as usize, now, found);
            found.thinking = found.thinking.max(chains[row as usize]);
            if counts.is_some() {
                let driver = device.host_cpu(trace.op[row as usize], trace.length[row as usize]);
                work.cores.through(now, 0, driver + answering);
                // Which thread gets a core first is known only after all earlier completions have been handled.
                work.due.push(Reverse((done, Event::Done, row)));
                continue;
            }
            causes.after(row, |next| work.think(done, next));
        } else {
            causes.after(row, |next| work.think(now, next));
        }
        let chain = chains[row as usize];
        causes.after(row, |next| chains[next as usize] += chain);
    }
    Ok(())
}

/// Without the machine's counts, the whole think time is kept unchanged.
fn idle(think: u64) -> Thought {
    Thought { waits: think, ..Thought::default() }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Done,
    Comes,
}

/// The events of a replay that have not happened yet.
struct Work<'a> {
    due: BinaryHeap<Reverse<(u64, Event, u32)>>,
    cores: Cores,
    thoughts: &'a [Thought],
}

impl Work<'_> {
    /// Starts the think time before this I/O.
    #[inline]
    fn think(&mut self, now: u64, row: u32) {
        let Thought { computes, beside, waits } = self.thoughts[row as usize];
        let computed = self.cores.through(now, computes, beside);
        self.due.push(Reverse((computed + waits, Event::Comes, row)));
    }
}

#[inline]
fn submit(trace: &Trace, device: &mut dyn Device, row: usize, now: u64, found: &mut Replayed) -> u64 {
    let (op, length) = (trace.op[row], trace.length[row]);
    let done = device.submit(now, op, trace.offset[row], length);
    found.latency[op as usize].record(done - now);
    found.elapsed = found.elapsed.max(done);
    found.host_cpu += device.host_cpu(op, length);
    done
}

fn recorded(trace: &Trace, start: u64, found: &mut Replayed) {
    for row in 0..trace.len() {
        let op = trace.op[row];
        found.recorded_latency[op as usize].record(trace.completed[row] - trace.time[row]);
        found.recorded_elapsed = found.recorded_elapsed.max(trace.completed[row] - start);
        if let Some(bytes) = found.bytes.get_mut(op as usize) {
            *bytes += u64::from(trace.length[row]);
        }
    }
}

fn patient(row: usize, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
    if row % PATIENCE == PATIENCE - 1 && !go_on() {
        return Err(Error::failure("replay", "interrupted"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::model::Free;
    use crate::replay::{Probe, probe};
    use crate::testing::models;
    use crate::{build, parse};

    /// Builds a trace from rows of `(time, op, offset, length, completed)`.
    fn trace(rows: &[(u64, Op, u64, u32, u64)]) -> Trace {
        let mut trace = Trace::default();
        for (time, op, offset, length, completed) in rows {
            trace.time.push(*time);
            trace.op.push(*op);
            trace.offset.push(*offset);
            trace.length.push(*length);
            trace.completed.push(*completed);
        }
        trace
    }

    fn run(trace: &Trace, text: &str, pace: Pace) -> Replayed {
        let mut device = build(&parse(text).unwrap(), &models(), None, 1).unwrap();
        replay(trace, &mut *device, pace, &mut || true).unwrap()
    }

    #[test]
    fn on_a_free_device_only_thinking_remains() {
        let rows = [(100, Op::Read, 0, 512, 1100), (1150, Op::Read, 0, 512, 2150), (1200, Op::Write, 0, 512, 5200)];
        let trace = trace(&rows);
        let replayed = run(&trace, "free", Pace::Closed);
        assert_eq!((replayed.elapsed, replayed.thinking, replayed.recorded_elapsed), (100, 100, 5100));
        assert_eq!(run(&trace, "free", Pace::Open).elapsed, 1100);
    }

    #[test]
    fn a_trace_replayed_on_the_device_that_made_it_takes_as_long() {
        for text in ["disk", "flash", "volume", "raid0(2, disk)"] {
            let mut device = build(&parse(text).unwrap(), &models(), None, 1).unwrap();
            let (mut rows, mut now) = (Vec::new(), 0);
            for i in 0..500u64 {
                let op = [Op::Read, Op::Write, Op::Flush][(i % 3) as usize];
                let offset = (i * 7_919 * 4096 * 997) % 100_000_000_000 / 4096 * 4096;
                let done = device.submit(now, op, offset, 8192);
                rows.push((now, op, offset, 8192, done));
                now = done + 1000 * (i % 5);
            }
            let trace = trace(&rows);
            let replayed = run(&trace, text, Pace::Closed);
            assert_eq!(replayed.elapsed, replayed.recorded_elapsed, "{text}");
            assert_eq!(replayed.latency, replayed.recorded_latency, "{text}");
        }
    }

    #[test]
    fn what_a_device_cannot_hold_is_refused() {
        let trace = trace(&[(0, Op::Read, 1 << 30, 4096, 1)]);
        let error = replay(&trace, &mut Free::new(1 << 30), Pace::Closed, &mut || true).unwrap_err();
        assert!(error.cause.contains("1073745920"), "{error}");
    }

    #[test]
    fn an_empty_trace_takes_no_time_and_an_interrupt_ends_a_replay() {
        assert_eq!(run(&Trace::default(), "disk", Pace::Closed).elapsed, 0);
        let rows = vec![(0, Op::Read, 0, 512, 1); PATIENCE];
        assert!(replay(&trace(&rows), &mut Free::new(512), Pace::Closed, &mut || false).is_err());
    }

    #[test]
    fn columns_that_do_not_fit_together_are_refused() {
        let eight = 5u64.to_le_bytes();
        let read =
            |time: u64, op: u8, length: &[u8]| Trace::from_bytes(&time.to_le_bytes(), &[op], &eight, length, &eight);
        assert_eq!(read(1, 0, &[1, 0, 0, 0]).unwrap().len(), 1);
        assert!(read(1, 0, &[1]).unwrap_err().cause.contains("length"));
        assert!(read(1, 7, &[0; 4]).unwrap_err().cause.contains("not an operation"));
        assert!(read(6, 0, &[0; 4]).unwrap_err().cause.contains("before it arrived"));
    }

    #[test]
    fn a_probe_of_one_after_another_is_the_mean_time() {
        let mut device = build(&parse("flat").unwrap(), &models(), None, 1).unwrap();
        let load = Probe { length: 4096, depth: 1, count: 2000, warm_up: 100, ..Probe::default() };
        let measured = probe(&mut *device, &load);
        let mean = measured.latency.mean_s();
        assert!((measured.iops() * mean - 1.0).abs() < 0.01, "{} {}", measured.iops(), mean);
    }
}
