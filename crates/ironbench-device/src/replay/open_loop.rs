//! Replays a trace on another device, with the recorded arrival times (open loop).
//!
//! The replay shows how the device serves exactly these I/Os at exactly these times. The replay does not show how fast
//! a program would be on the device. A program that waits for its I/Os would issue the next ones sooner on a faster
//! device. The file docs/adr/0045-a-replay-keeps-the-recorded-times.md explains why ironbench does not infer that.

use ironbench_core::measure::Histogram;
use ironbench_core::{Error, Result};

use super::Trace;
use crate::device::{Device, Op};

#[derive(Debug, Clone, Default)]
pub struct Replayed {
    pub recorded: Served,
    pub predicted: Served,
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// CPU time that the device's driver would take on the host.
    pub host_cpu: u64,
}

/// How a device served the I/Os of a trace. Times are in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Served {
    /// Time from the first arrival to the last completion.
    pub elapsed: u64,
    /// Latencies by operation: read, write, flush.
    pub latency: [Histogram; 3],
    /// Time during which at least one I/O was in flight.
    pub busy: u64,
    /// Sum of all latencies. The field is a float, because the sum for a device that does not keep up may exceed 64
    /// bits.
    pub in_flight: f64,
}

impl Served {
    /// Adds an I/O. Calls come in order of arrival. Both times are since the first arrival.
    #[inline]
    fn add(&mut self, op: Op, arrival: u64, done: u64) {
        self.latency[op as usize].record(done - arrival);
        self.in_flight += (done - arrival) as f64;
        if done > self.elapsed {
            self.busy += done - arrival.max(self.elapsed);
            self.elapsed = done;
        }
    }

    /// Returns the mean number of I/Os in flight.
    pub fn depth(&self) -> f64 {
        if self.elapsed > 0 { self.in_flight / self.elapsed as f64 } else { 0.0 }
    }

    /// Returns the share of the time during which at least one I/O was in flight.
    pub fn busy_share(&self) -> f64 {
        if self.elapsed > 0 { self.busy as f64 / self.elapsed as f64 } else { 0.0 }
    }
}

/// `may_continue` is called once for this many rows.
const CHECK_INTERVAL: usize = 1 << 20;

/// Replays the trace on the device. `may_continue` is called regularly. When it returns false, the replay fails as
/// interrupted.
pub fn replay(trace: &Trace, device: &mut dyn Device, may_continue: &mut dyn FnMut() -> bool) -> Result<Replayed> {
    if trace.end() > device.capacity() {
        let cause = format!("the trace reaches byte {}, but the device has only {}", trace.end(), device.capacity());
        return Err(Error::input("trace", cause).hint("use the capacity of the recorded device"));
    }
    let mut found = Replayed::default();
    let Some(start) = trace.time.first().copied() else { return Ok(found) };
    for row in 0..trace.len() {
        if row % CHECK_INTERVAL == CHECK_INTERVAL - 1 && !may_continue() {
            return Err(Error::failure("replay", "interrupted"));
        }
        let (op, length, now) = (trace.op[row], trace.length[row], trace.time[row] - start);
        found.recorded.add(op, now, trace.completed[row] - start);
        found.predicted.add(op, now, device.submit(now, op, trace.offset[row], length));
        found.host_cpu += device.host_cpu(op, length);
        if let Some(bytes) = found.bytes.get_mut(op as usize) {
            *bytes += u64::from(length);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ZeroLatency;
    use crate::replay::{SyntheticLoad, run_synthetic};
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

    fn run(trace: &Trace, text: &str) -> Replayed {
        let mut device = build(&parse(text).unwrap(), &models(), None, 1).unwrap();
        replay(trace, &mut *device, &mut || true).unwrap()
    }

    #[test]
    fn a_replay_keeps_the_arrivals_and_tells_how_long_ios_were_in_flight() {
        // The first two I/Os overlap. After a pause of 900 ns, the third I/O begins before and ends after the fourth.
        let rows = [
            (100, Op::Read, 0, 512, 1100),
            (600, Op::Write, 0, 512, 1600),
            (2500, Op::Read, 0, 512, 4500),
            (3000, Op::Flush, 0, 0, 3500),
        ];
        let replayed = run(&trace(&rows), "free");
        let recorded = &replayed.recorded;
        assert_eq!((recorded.elapsed, recorded.busy, recorded.in_flight), (4400, 3500, 4500.0));
        assert_eq!((recorded.busy_share(), recorded.depth()), (3500.0 / 4400.0, 4500.0 / 4400.0));
        // On a device that takes no time, the last I/O completes when it arrives.
        let predicted = &replayed.predicted;
        assert_eq!((predicted.elapsed, predicted.busy, predicted.depth()), (2900, 0, 0.0));
        assert_eq!(replayed.bytes, [1024, 512]);
    }

    #[test]
    fn a_device_that_does_not_keep_up_completes_the_last_io_later_and_its_queue_grows() {
        // There is a random read every millisecond. A disk with a full queue does about 400 per second.
        let rows: Vec<_> = (0..1000u64)
            .map(|i| {
                (
                    i * 1_000_000,
                    Op::Read,
                    i * 7_919 * 4096 * 997 % 100_000_000_000 / 4096 * 4096,
                    4096,
                    i * 1_000_000 + 50_000,
                )
            })
            .collect();
        let replayed = run(&trace(&rows), "disk");
        assert!(replayed.predicted.elapsed > 2 * replayed.recorded.elapsed, "{}", replayed.predicted.elapsed);
        assert!(replayed.predicted.busy_share() > 0.99 && replayed.predicted.depth() > 100.0);
        assert!(replayed.recorded.depth() < 0.06);
    }

    #[test]
    fn a_trace_replayed_on_the_device_that_made_it_is_served_as_it_was() {
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
            let replayed = run(&trace(&rows), text);
            assert_eq!(replayed.predicted, replayed.recorded, "{text}");
        }
    }

    #[test]
    fn what_a_device_cannot_hold_is_refused() {
        let trace = trace(&[(0, Op::Read, 1 << 30, 4096, 1)]);
        let error = replay(&trace, &mut ZeroLatency::new(1 << 30), &mut || true).unwrap_err();
        assert!(error.cause.contains("1073745920"), "{error}");
    }

    #[test]
    fn an_empty_trace_takes_no_time_and_an_interrupt_ends_a_replay() {
        let nothing = run(&Trace::default(), "disk");
        assert_eq!((nothing.predicted.elapsed, nothing.predicted.depth()), (0, 0.0));
        let rows = vec![(0, Op::Read, 0, 512, 1); CHECK_INTERVAL];
        assert!(replay(&trace(&rows), &mut ZeroLatency::new(512), &mut || false).is_err());
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
        let load = SyntheticLoad { length: 4096, depth: 1, count: 2000, warm_up: 100, ..SyntheticLoad::default() };
        let measured = run_synthetic(&mut *device, &load);
        let mean = measured.latency.mean_s();
        assert!((measured.iops() * mean - 1.0).abs() < 0.01, "{} {}", measured.iops(), mean);
    }
}
