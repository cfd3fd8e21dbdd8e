//! Tests how well a replay predicts a program on another device, for programs whose true time is known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pgbench_script::Random;

use crate::device::{Device, Op};
use crate::replay::{Pace, Processors, Trace, replay};
use crate::testing::models;
use crate::{build, parse};

const CAPACITY: u64 = 16 << 30;

fn device(text: &str) -> Box<dyn Device> {
    build(&parse(text).unwrap(), &models(), Some(CAPACITY), 1).unwrap()
}

/// Simulates clients that think, read a block, and think again, with a fixed number of reads each.
/// Times are in nanoseconds.
fn clients(device: &mut dyn Device, clients: usize, reads: usize, mean_think: f64) -> Trace {
    let mut randoms: Vec<Random> = (0..clients).map(|client| Random::new(client as u64)).collect();
    let mut think = |client: usize| (-(1.0 - randoms[client].fraction()).ln() * mean_think) as u64;
    let mut due: BinaryHeap<Reverse<(u64, usize, usize)>> =
        (0..clients).map(|client| Reverse((think(client), client, 0))).collect();
    let mut trace = Trace::default();
    while let Some(Reverse((now, client, number))) = due.pop() {
        // Chosen so that every device gets the same blocks.
        let block = Random::new((client * reads + number) as u64).up_to(CAPACITY / 8192 - 1);
        let done = device.submit(now, Op::Read, block * 8192, 8192);
        trace.time.push(now);
        trace.op.push(Op::Read);
        trace.offset.push(block * 8192);
        trace.length.push(8192);
        trace.completed.push(done);
        if number + 1 < reads {
            due.push(Reverse((done + think(client), client, number + 1)));
        }
    }
    trace
}

/// Returns predicted time divided by true time on `to`, for work recorded on `from`.
fn error(from: &str, to: &str, count: usize, mean_think: f64) -> f64 {
    let recorded = clients(&mut *device(from), count, 600, mean_think);
    let truth = clients(&mut *device(to), count, 600, mean_think);
    let elapsed = truth.completed.iter().max().unwrap() - truth.time[0];
    let predicted = replay(&recorded, &mut *device(to), Pace::Closed, &mut || true).unwrap();
    predicted.elapsed as f64 / elapsed as f64
}

#[test]
fn one_client_is_predicted_exactly_and_several_that_wait_for_the_device_nearly() {
    for (from, to) in [("disk", "flash"), ("flash", "disk"), ("disk", "raid0(4, disk)")] {
        for think in [0.0, 200e3, 5e6] {
            let one = error(from, to, 1, think);
            assert!((one - 1.0).abs() < 0.01, "{from} {to} {think}: {one}");
        }
        let several = error(from, to, 8, 10e3);
        assert!((several - 1.0).abs() < 0.25, "{from} {to}: {several}");
    }
}

/// Tests the limitation for many clients with long think times.
/// See docs/understand/emulation.md, and the warning in `devices/replay.py`.
#[test]
fn several_clients_that_think_for_long_are_predicted_as_if_they_waited_for_each_other() {
    let faster = error("disk", "flash", 8, 10e6);
    assert!((0.3..0.9).contains(&faster), "{faster}");
    let slower = error("flash", "disk", 8, 10e6);
    assert!((1.1..2.2).contains(&slower), "{slower}");
}

/// The machine of clients that compute between two reads.
/// Threads take turns on its cores, and the machine counts its usage.
struct Machine {
    cores: u32,
    running: u32,
    /// Runnable clients with their remaining computing time.
    ready: VecDeque<(usize, u64)>,
    now: u64,
    used: u64,
    runnable: u64,
    /// CPU used and runnable time, every `SAMPLED` nanoseconds.
    samples: Vec<(u64, u64)>,
}

const SLICE: u64 = 1_000_000;
const SAMPLED: u64 = 10_000_000;

impl Machine {
    fn until(&mut self, now: u64) {
        while self.now < now {
            let next = (self.samples.len() as u64 * SAMPLED).min(now);
            let passed = next - self.now;
            self.used += passed * u64::from(self.running);
            self.runnable += passed * (u64::from(self.running) + self.ready.len() as u64);
            self.now = next;
            if next == self.samples.len() as u64 * SAMPLED {
                self.samples.push((self.used, self.runnable));
            }
        }
    }
}

/// Simulates clients that compute, read a block, and compute again, with a fixed number of reads each.
fn computing(device: &mut dyn Device, clients: usize, reads: usize, mean: f64, cores: u32) -> Trace {
    let mut randoms: Vec<Random> = (0..clients).map(|client| Random::new(client as u64)).collect();
    let mut wanted = |client: usize| (-(1.0 - randoms[client].fraction()).ln() * mean) as u64;
    let mut machine =
        Machine { cores, running: 0, ready: VecDeque::new(), now: 0, used: 0, runnable: 0, samples: vec![(0, 0)] };
    // Events: when, whether the client ran, which client, and how much it has left to compute.
    let mut due: BinaryHeap<Reverse<(u64, bool, usize, u64)>> =
        (0..clients).map(|client| Reverse((0, false, client, wanted(client)))).collect();
    let mut numbers = vec![0; clients];
    let mut trace = Trace::default();
    while let Some(Reverse((now, ran, client, left))) = due.pop() {
        machine.until(now);
        machine.running -= u32::from(ran);
        if ran && left == 0 {
            // Chosen so that every device gets the same blocks.
            let block = Random::new((client * reads + numbers[client]) as u64).up_to(CAPACITY / 8192 - 1);
            let done = device.submit(now, Op::Read, block * 8192, 8192);
            trace.time.push(now);
            trace.op.push(Op::Read);
            trace.offset.push(block * 8192);
            trace.length.push(8192);
            trace.completed.push(done);
            numbers[client] += 1;
            if numbers[client] < reads {
                due.push(Reverse((done, false, client, wanted(client))));
            }
        } else {
            machine.ready.push_back((client, left));
        }
        while machine.running < machine.cores
            && let Some((client, left)) = machine.ready.pop_front()
        {
            let slice = left.min(SLICE);
            machine.running += 1;
            due.push(Reverse((now + slice, true, client, left - slice)));
        }
    }
    machine.until(trace.completed.iter().max().unwrap() + SAMPLED);
    let sampled = |at: &u64| machine.samples[(at / SAMPLED) as usize];
    trace.processors = Some(Processors {
        cores,
        used: trace.completed.iter().map(|at| sampled(at).0).collect(),
        runnable: trace.completed.iter().map(|at| sampled(at).1).collect(),
        answering: 0,
    });
    trace
}

/// Like `error`; `others` is the number of cores that other programs keep busy throughout.
fn computing_error(from: &str, to: &str, clients: usize, mean: f64, cores: u32, others: f64) -> f64 {
    let mut recorded = computing(&mut *device(from), clients, 600, mean, cores);
    let processors = recorded.processors.as_mut().unwrap();
    for (count, at) in [&mut processors.used, &mut processors.runnable]
        .into_iter()
        .flat_map(|counts| counts.iter_mut().zip(&recorded.completed))
    {
        *count += (*at as f64 * others) as u64;
    }
    let truth = computing(&mut *device(to), clients, 600, mean, cores);
    let elapsed = truth.completed.iter().max().unwrap() - truth.time[0];
    let predicted = replay(&recorded, &mut *device(to), Pace::Closed, &mut || true).unwrap();
    predicted.elapsed as f64 / elapsed as f64
}

/// Tests what docs/understand/emulation.md claims for clients that compute.
#[test]
fn clients_that_compute_are_predicted_where_the_trace_tells_what_the_processors_did() {
    let mut all = Vec::new();
    for cores in [2, 4] {
        for clients in [1, 4, 8, 16] {
            for mean in [50e3, 500e3, 3e6] {
                for (from, to) in [("disk", "flash"), ("flash", "disk"), ("disk", "disk"), ("flash", "flash")] {
                    let error = computing_error(from, to, clients, mean, cores, 0.0);
                    all.push((error, from, to, cores, clients, mean));
                }
            }
        }
    }
    let off = |error: f64| error.ln().abs();
    let worst = all.iter().max_by(|a, b| off(a.0).total_cmp(&off(b.0))).unwrap();
    assert!((0.9..1.1).contains(&worst.0), "{worst:?}");
}

#[test]
fn what_other_programs_do_meanwhile_is_hardly_taken_for_the_works() {
    for mean in [50e3, 500e3] {
        let error = computing_error("disk", "flash", 8, mean, 2, 0.1);
        assert!((0.8..1.25).contains(&error), "{mean}: {error}");
    }
}
