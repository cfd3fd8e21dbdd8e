//! How well a replay predicts what programs would have done on the other device, where that is known exactly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ironbench_core::script::Random;

use crate::device::{Device, Op};
use crate::replay::{Pace, Trace, replay};
use crate::testing::models;
use crate::{build, parse};

const CAPACITY: u64 = 16 << 30;

fn device(text: &str) -> Box<dyn Device> {
    build(&parse(text).unwrap(), &models(), Some(CAPACITY), 1).unwrap()
}

/// Clients that think for a while, read a block, think again; a fixed number of reads each. Times in nanoseconds.
fn clients(device: &mut dyn Device, clients: usize, reads: usize, mean_think: f64) -> Trace {
    let mut randoms: Vec<Random> = (0..clients).map(|client| Random::new(client as u64)).collect();
    let mut think = |client: usize| (-(1.0 - randoms[client].fraction()).ln() * mean_think) as u64;
    let mut due: BinaryHeap<Reverse<(u64, usize, usize)>> =
        (0..clients).map(|client| Reverse((think(client), client, 0))).collect();
    let mut trace = Trace::default();
    while let Some(Reverse((now, client, number))) = due.pop() {
        // The same blocks on every device.
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

/// Predicted over true time of the work recorded on `from`, on `to`.
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

/// What docs/concepts/devices.md says of many clients that think for long, and `devices/replay.py` warns of.
#[test]
fn several_clients_that_think_for_long_are_predicted_as_if_they_waited_for_each_other() {
    let faster = error("disk", "flash", 8, 10e6);
    assert!((0.3..0.9).contains(&faster), "{faster}");
    let slower = error("flash", "disk", 8, 10e6);
    assert!((1.1..2.2).contains(&slower), "{slower}");
}
