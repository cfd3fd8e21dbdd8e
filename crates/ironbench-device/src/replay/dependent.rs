//! The same work on another device.
//!
//! In a closed replay an I/O waits for the one that let it come: the last that had been completed when it arrived. The time
//! between is think time (the program's own work) and stays as it was; the I/O's own time is the new device's. So a
//! trace of fixed work takes shorter on a faster device, and what was issued together stays together. (The idea is that
//! of inferred dependencies in trace replay; Tarihi, Asadi, Sarbazi-Azad, "DiskAccel", SIGMETRICS 2015, and Mesnier et al.,
//! "//TRACE", FAST 2007, which finds them by throttling nodes.) An open replay keeps the recorded arrivals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ironbench_core::measure::Histogram;
use ironbench_core::{Error, Result};

use super::Trace;
use crate::device::Device;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Fixed work: each I/O comes when what it waited for is done, and the think time has passed.
    Closed,
    /// Fixed arrivals.
    Open,
}

#[derive(Debug, Clone, Default)]
pub struct Replayed {
    /// From the first arrival to the last completion; nanoseconds.
    pub elapsed: u64,
    pub recorded_elapsed: u64,
    /// By operation: read, write, flush.
    pub latency: [Histogram; 3],
    pub recorded_latency: [Histogram; 3],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// The longest chain of think times: what no device can shorten.
    pub thinking: u64,
    /// Host CPU that the device's driver would take.
    pub host_cpu: u64,
}

/// Rows between two questions whether to go on.
const PATIENCE: usize = 1 << 20;
const NONE: u32 = u32::MAX;

/// Runs the trace through the device. `go_on` is asked now and then; where it says no, the replay fails as interrupted.
pub fn replay(trace: &Trace, device: &mut dyn Device, pace: Pace, go_on: &mut dyn FnMut() -> bool) -> Result<Replayed> {
    if trace.end() > device.capacity() {
        let cause = format!("it reaches byte {}, and the device holds {}", trace.end(), device.capacity());
        return Err(Error::input("trace", cause).hint("give the device the capacity it was recorded on"));
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
        Pace::Closed => closed(trace, device, start, &mut found, go_on)?,
    }
    Ok(found)
}

fn closed(
    trace: &Trace,
    device: &mut dyn Device,
    start: u64,
    found: &mut Replayed,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<()> {
    let waits = Waits::of(trace, start);
    let mut due: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    waits.after(NONE, |row| due.push(Reverse((waits.think[row as usize], row))));
    // Per I/O, the think times on its chain so far; only of those still waited for.
    let mut thought = waits.think.clone();
    let mut done_rows = 0;
    while let Some(Reverse((now, row))) = due.pop() {
        patient(done_rows, go_on)?;
        done_rows += 1;
        let done = submit(trace, device, row as usize, now, found);
        let chain = thought[row as usize];
        found.thinking = found.thinking.max(chain);
        waits.after(row, |next| {
            thought[next as usize] += chain;
            due.push(Reverse((done + waits.think[next as usize], next)));
        });
    }
    Ok(())
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

/// Which I/O each waits for, and how long it thinks after that; as lists of those that wait.
struct Waits {
    think: Vec<u64>,
    /// The first that waits for this one; the last entry is for those that wait for nothing.
    first: Vec<u32>,
    /// The next that waits for the same.
    next: Vec<u32>,
}

impl Waits {
    fn of(trace: &Trace, start: u64) -> Self {
        let rows = trace.len();
        let (mut think, mut first, mut next) = (vec![0; rows], vec![NONE; rows + 1], vec![NONE; rows]);
        let mut running: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut latest: Option<(u64, u32)> = None;
        for row in 0..rows {
            let now = trace.time[row];
            while let Some(Reverse((done, which))) = running.peek().copied() {
                if done > now {
                    break;
                }
                latest = Some((done, which));
                running.pop();
            }
            let (since, waited) = latest.map_or((start, rows), |(done, which)| (done, which as usize));
            think[row] = now - since;
            next[row] = first[waited];
            first[waited] = row as u32;
            running.push(Reverse((trace.completed[row], row as u32)));
        }
        Self { think, first, next }
    }

    /// Those that wait for `row`, or for nothing.
    fn after(&self, row: u32, mut each: impl FnMut(u32)) {
        let mut at = if row == NONE { self.first[self.think.len()] } else { self.first[row as usize] };
        while at != NONE {
            each(at);
            at = self.next[at as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::model::Free;
    use crate::replay::{Probe, probe};
    use crate::testing::models;
    use crate::{build, parse};

    /// `(time, op, offset, length, completed)` rows.
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
        assert!(read(1, 7, &[0; 4]).unwrap_err().cause.contains("no operation"));
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
