use super::super::io_path::{IoPath, WakeupDelay};
use super::*;
use crate::model::ZeroLatency;

/// A device that takes 100 µs for everything, one I/O at a time.
struct Slow {
    free_at: u64,
}

impl Device for Slow {
    fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
        self.free_at = self.free_at.max(now) + 100_000;
        self.free_at
    }

    fn capacity(&self) -> u64 {
        1 << 30
    }
}

fn pace() -> Pace {
    Pace::new(Box::new(Slow { free_at: 0 }))
}

#[test]
fn the_way_is_taken_off_what_the_model_says() {
    let pace = pace();
    let way = IoPath { each_ns: 20_000.0, byte_ns: 0.5 };
    pace.set_overhead(Overhead { read: way, ..Overhead::default() });
    pace.set_mode(Mode::Model, 0);
    let (arrival, plan) = pace.plan(|| 1_000, Op::Read, 0, 4096);
    assert_eq!((arrival, plan.due, plan.modelled), (1_000, 101_000 - 22_048, true));
    // The device is busy until 101 000. The path overhead does not change this.
    assert_eq!(pace.plan(|| 2_000, Op::Write, 0, 4096).1.due, 201_000);
}

#[test]
fn the_models_time_stands_still_while_it_is_not_asked() {
    let pace = pace();
    pace.set_mode(Mode::Model, 0);
    assert_eq!(pace.plan(|| 0, Op::Read, 0, 512).1.due, 100_000);
    pace.set_mode(Mode::Immediate, 50_000);
    let at_once = Plan {
        due: 60_000,
        reached: 60_000,
        done: 0,
        modelled: false,
        submitted: false,
        host_cpu_ns: 0,
        path_ns: 0,
        others: 0,
    };
    assert_eq!(pace.plan(|| 60_000, Op::Read, 0, 512).1, at_once);
    pace.set_mode(Mode::Model, 1_000_000);
    // In model time, the request at 0 keeps the device busy until 100 µs.
    assert_eq!(pace.plan(|| 1_000_000, Op::Read, 0, 512).1.due, 1_199_999); // one nanosecond has passed
}

/// A device that takes 100 µs for each I/O, with any number of I/Os in parallel.
struct Wide;

impl Device for Wide {
    fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
        now + 100_000
    }

    fn capacity(&self) -> u64 {
        1 << 30
    }
}

fn wide(path_ns: f64) -> Pace {
    let pace = Pace::new(Box::new(Wide));
    let way = IoPath { each_ns: path_ns, byte_ns: 0.0 };
    pace.set_overhead(Overhead { read: way, ..Overhead::default() });
    pace.set_mode(Mode::Model, 0);
    pace
}

impl Pace {
    fn ask(&self, now: u64) -> Plan {
        self.plan(|| now, Op::Read, 0, 512).1
    }

    fn answer(&self, plan: &Plan) {
        self.record_answer(plan, 0, Op::Read, 512);
    }
}

#[test]
fn what_was_answered_is_done_when_the_next_arrives_however_early_that_is() {
    let pace = wide(20_000.0);
    let first = pace.ask(0);
    assert_eq!((first.due, first.done), (80_000, 100_000));
    pace.answer(&first);
    // The answer left at 80 000. The path took only 5 000 instead of the assumed 20 000.
    let second = pace.ask(85_000);
    assert_eq!((second.due, second.done), (180_000, 200_000));
    // In a trace, the second I/O begins when the first one ends. An I/O with a late answer ends when the answer left.
    assert_eq!((second.reached, first.trace_completion(80_000)), (100_000, 100_000));
    assert_eq!(second.trace_completion(210_000), 210_000);
}

#[test]
fn what_takes_no_time_is_done_in_a_trace_when_its_answer_leaves() {
    let pace = Pace::new(Box::new(ZeroLatency::new(1 << 30)));
    let way = IoPath { each_ns: 20_000.0, byte_ns: 0.0 };
    pace.set_overhead(Overhead { flush: way, ..Overhead::default() });
    pace.set_mode(Mode::Model, 0);
    let plan = pace.plan(|| 5_000, Op::Flush, 0, 0).1;
    // The answer to this I/O can arrive before the measured path overhead has passed, and the next request with it.
    assert_eq!((plan.reached, plan.trace_completion(6_000)), (5_000, 6_000));
    // A request does not complete before it has reached the model.
    let next = pace.plan(|| 4_000, Op::Flush, 0, 0).1;
    assert_eq!((next.reached, next.trace_completion(4_500)), (5_001, 5_001));
}

#[test]
fn requests_follow_answers_in_the_order_in_which_those_were_done() {
    let pace = wide(50_000.0);
    let [first, second, _third] = [0, 20_000, 40_000].map(|now| pace.ask(now));
    pace.answer(&second);
    pace.answer(&first);
    // Both answers have left, and two requests arrive. The first request follows the I/O that completed first, and the
    // second request follows the other one.
    assert_eq!([90_000, 91_000].map(|now| pace.ask(now).done), [200_000, 220_000]);
}

#[test]
fn with_nothing_else_under_way_a_request_follows_all_answers() {
    let pace = wide(50_000.0);
    for plan in [pace.ask(0), pace.ask(30_000)] {
        pace.answer(&plan);
    }
    assert_eq!(pace.ask(90_000).done, 230_000);
    assert_eq!(pace.ask(90_000).done, 230_001); // another piece of the request that follows the answers
}

#[test]
fn a_client_that_left_does_not_let_another_go_ahead() {
    let pace = wide(20_000.0);
    let [leaving, mut staying, _long] = [0, 30_000, 40_000].map(|now| pace.ask(now));
    pace.answer(&leaving);
    for turn in 1..4 {
        pace.answer(&staying);
        staying = pace.ask(staying.done - 15_000); // the request that it follows came 15 000 too early
        let early = staying.done.abs_diff(130_000 + turn * 100_000);
        assert!(early <= 15_000, "{early} in turn {turn}");
    }
}

#[test]
fn a_device_that_was_left_to_itself_is_done_with_everything() {
    let pace = wide(0.0);
    let plans = [pace.ask(0), pace.ask(30_000)];
    pace.set_mode(Mode::Immediate, 40_000);
    plans.iter().for_each(|plan| pace.answer(plan));
    pace.set_mode(Mode::Model, 1_000_000);
    pace.ask(1_000_000);
    assert_eq!(pace.ask(1_000_001).due, 1_100_001);
    assert_eq!(pace.locked().next, 130_002);
}

#[test]
fn a_way_is_longer_while_others_are_under_way_and_not_after_that() {
    let (way, beyond) = (IoPath { each_ns: 8_000.0, byte_ns: 0.0 }, Some(WakeupDelay::default()));
    let pace = Pace::new(Box::new(Wide));
    pace.set_overhead(Overhead { read: way, beyond, ..Overhead::default() });
    pace.set_mode(Mode::Model, 0);
    (0..20).for_each(|_| {
        pace.adjust_overhead(Op::Read, MeanIo { delay_ns: 50_000.0, took_ns: 74_000.0, others: 31.0, bytes: 512.0 })
    });
    let plans: Vec<_> = (0..18).map(|_| pace.ask(0)).collect();
    let ways: Vec<_> = plans.iter().map(|plan| plan.path_ns.next_multiple_of(1_000)).collect();
    assert_eq!([ways[0], ways[1], ways[4], ways[16], ways[17]], [16_000, 17_000, 20_000, 24_000, 24_000]);
    plans.iter().for_each(|plan| pace.answer(plan));
    assert_eq!(pace.ask(200_000).path_ns, 16_000);
    assert_eq!(pace.totals(Op::Read).others, 17 * 18 / 2);
}

#[test]
fn the_way_becomes_what_it_was_lately_within_limits() {
    let pace = pace();
    let way = IoPath { each_ns: 20_000.0, byte_ns: 0.0 };
    let after_ns = [60_000, 200_000, 1_000_000, 2_000_000, 3_000_000];
    let waking = WakeupDelay { after_ns, more_ns: [0.0, 0.0, 50_000.0, 50_000.0, 50_000.0] };
    let beyond = Some(WakeupDelay { after_ns, more_ns: [4_000.0; WakeupDelay::POINTS] });
    pace.set_overhead(Overhead { read: way, write: way, waking, beyond, ..Overhead::default() });
    let seen = |op, path_ns| {
        pace.adjust_overhead(
            op,
            MeanIo { delay_ns: 80_000.0, took_ns: 76_000.0 + path_ns, others: 24.0, bytes: 4096.0 },
        )
    };
    let lone = |op| pace.path_overhead_ns(op, 4096, 100_000, 0);
    seen(Op::Read, 30_000.0);
    assert_eq!((lone(Op::Read), lone(Op::Write)), (25_000, 20_000));
    (0..20).for_each(|_| seen(Op::Read, 30_000.0));
    assert!(lone(Op::Read).abs_diff(30_000) <= 1);
    seen(Op::Read, 1e9);
    seen(Op::Write, -1e9);
    assert_eq!((lone(Op::Read), lone(Op::Write)), (40_000, 0));
    assert_eq!(pace.path_overhead_ns(Op::Read, 4096, 2_000_000, 0), 90_000); // the processor may have gone to sleep
    assert_eq!(pace.path_overhead_ns(Op::Read, 4096, 100_000, 16), 80_000); // the other I/Os are served first
    pace.reset_overhead();
    assert_eq!((lone(Op::Read), lone(Op::Write)), (20_000, 20_000));
}

#[test]
fn copying_large_ios_does_not_make_the_way_of_small_ones_longer() {
    let pace = pace();
    let way = IoPath { each_ns: 20_000.0, byte_ns: 0.25 };
    let beyond = Some(WakeupDelay::default());
    pace.set_overhead(Overhead { read: way, beyond, ..Overhead::default() });
    let seen =
        |took_ns, bytes| pace.adjust_overhead(Op::Read, MeanIo { delay_ns: 80_000.0, took_ns, others: 0.0, bytes });
    (0..20).for_each(|_| seen(108_000.0, 32_000.0));
    let ways = [0, 32_000].map(|length| pace.path_overhead_ns(Op::Read, length, 100_000, 0));
    assert_eq!(ways, [20_000, 28_000]);
}

#[test]
fn what_was_answered_counts_with_the_time_that_it_was_to_be_held() {
    let pace = pace();
    pace.set_mode(Mode::Model, 0);
    for (now, length) in [(0, 512), (50_000, 1024)] {
        let (arrival, plan) = pace.plan(|| now, Op::Write, 0, length);
        pace.record_answer(&plan, arrival, Op::Write, length);
    }
    assert_eq!(pace.totals(Op::Write), AnsweredTotals { count: 2, bytes: 1536, delay_ns: 250_000, others: 0 });
    assert_eq!(pace.totals(Op::Read), AnsweredTotals::default());
}
