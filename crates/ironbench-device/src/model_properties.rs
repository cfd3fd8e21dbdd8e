//! Tests of properties that every device has, for any parameters and any sequence of I/Os.

use proptest::prelude::*;

use crate::device::{Device, Op};
use crate::replay::{LoadResult, SyntheticLoad, run_synthetic};
use crate::testing::models;
use crate::{build, parse};

const CAPACITY: u64 = 8 << 30;

const EVERY: [&str; 17] = [
    "free",
    "memory",
    "disk",
    "disk(cache=on)",
    "disk(stroke=10%)",
    "flat",
    "flash",
    "flash(cache=off, fill=95%)",
    "flash(compressible=60%)",
    "volume",
    "raid0(3, disk)",
    "raid1(2, disk(cache=on))",
    "raid10(4, flash)",
    "raid5(4, disk)",
    "spread(2 x flash, disk)",
    "behind(card, raid5(3, flash))",
    "behind(card(cache=off), raid0(2, memory))",
];

fn made(text: &str, seed: u64) -> Box<dyn Device> {
    build(&parse(text).unwrap(), &models(), Some(CAPACITY), seed).unwrap()
}

/// A sequence of I/Os. Each has the time in nanoseconds since the previous I/O, an operation, the first block, and the
/// number of 4 KiB blocks.
type IoSequence = Vec<(u64, Op, u64, u32)>;

fn asked() -> impl Strategy<Value = IoSequence> {
    let op = prop_oneof![4 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Flush)];
    let gap = prop_oneof![Just(0u64), 0u64..100_000, 0u64..50_000_000];
    let blocks = prop_oneof![Just(1u32), 1u32..64, 1u32..300];
    prop::collection::vec((gap, op, 0u64..(CAPACITY >> 12) - 300, blocks), 1..200)
}

fn run(device: &mut dyn Device, asked: &IoSequence) -> Vec<(u64, u64)> {
    let mut now = 0;
    let submit = |(gap, op, block, blocks): &(u64, Op, u64, u32)| {
        now += gap;
        (now, device.submit(now, *op, block << 12, blocks << 12))
    };
    asked.iter().map(submit).collect()
}

fn measured(text: &str, load: SyntheticLoad) -> LoadResult {
    run_synthetic(&mut *made(text, 1), &SyntheticLoad { count: 3000, warm_up: 1000, ..load })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_device_answers_before_it_is_asked(asked in asked(), which in 0..EVERY.len(), seed: u64) {
        for (now, done) in run(&mut *made(EVERY[which], seed), &asked) {
            prop_assert!(done >= now, "{} {} {}", EVERY[which], now, done);
        }
    }

    #[test]
    fn the_same_seed_and_arrivals_give_the_same_completions(asked in asked(), which in 0..EVERY.len(), seed: u64) {
        let once = run(&mut *made(EVERY[which], seed), &asked);
        prop_assert_eq!(once, run(&mut *made(EVERY[which], seed), &asked));
    }

    #[test]
    fn nothing_is_faster_than_the_interface(asked in asked(), which in 0..5usize) {
        let (text, rate) = [
            ("memory", 10e9), ("disk(cache=on)", 300e6), ("flash", 550e6), ("volume", 131_072_000.0),
            ("behind(card, raid0(2, memory))", 1e9),
        ][which];
        let answers = run(&mut *made(text, 1), &asked);
        let transfers = asked.iter().zip(&answers).filter(|((_, op, _, _), _)| *op != Op::Flush);
        // Up to the last completion, the device has not transferred more bytes than its rate allows since the first
        // arrival.
        let (mut bytes, mut first, mut last) = (0u64, None, 0);
        for ((_, _, _, blocks), (now, done)) in transfers {
            first.get_or_insert(*now);
            bytes += u64::from(*blocks) << 12;
            last = last.max(*done);
        }
        // A token bucket lets the accumulated bytes pass immediately.
        let saved = if text == "volume" { 0.1 * rate } else { 0.0 };
        let least = (bytes as f64 - saved).max(0.0) / rate * 1e9;
        prop_assert!((last - first.unwrap_or(last)) as f64 >= least * 0.999_999 - 1.0, "{}", text);
    }

    #[test]
    fn no_disk_is_faster_than_its_media(asked in asked(), cached: bool) {
        let mut device = made(if cached { "disk(cache=on)" } else { "disk" }, 1);
        let writes: IoSequence = asked.into_iter().filter(|(_, op, _, _)| *op == Op::Write).collect();
        let bytes: u64 = writes.iter().map(|(_, _, _, blocks)| u64::from(*blocks) << 12).sum();
        let last = run(&mut *device, &writes).last().map_or(0, |(now, _)| *now);
        let stored = device.submit(last, Op::Flush, 0, 0);
        prop_assert!(stored as f64 >= bytes as f64 / 150e6 * 1e9 * 0.999);
    }

    #[test]
    fn more_work_before_never_helps_a_device_that_serves_in_turn(asked in asked(), more in asked(), which in 0..3usize) {
        let text = ["memory", "behind(card(cache=off), raid0(2, memory))", "volume"][which];
        // Both runs have the same arrival times, so that only the additional load differs. The offsets are far apart,
        // because volumes merge adjacent I/Os.
        let extra = more.iter().take(20);
        let mut device = made(text, 1);
        for (_, op, block, blocks) in extra {
            device.submit(0, *op, block << 12, blocks << 12);
        }
        let (burdened, alone) = (run(&mut *device, &asked), run(&mut *made(text, 1), &asked));
        for (burdened, alone) in burdened.iter().zip(&alone).skip(1) {
            prop_assert!(burdened.1 >= alone.1 || text == "volume" && burdened.1 + 340_000 >= alone.1);
        }
    }
}

#[test]
fn throughput_grows_and_answers_take_longer_with_depth() {
    for text in EVERY.iter().filter(|text| !text.starts_with("free")) {
        for (reads, random) in [(1.0, true), (0.0, true), (0.7, true), (1.0, false)] {
            let of = |depth| measured(text, SyntheticLoad { reads, random, depth, ..SyntheticLoad::default() });
            let points: Vec<LoadResult> = [1, 2, 4, 8, 16, 32, 64].into_iter().map(of).collect();
            for (less, more) in points.iter().zip(&points[1..]) {
                assert!(more.iops() >= less.iops() * 0.95, "{text} {reads} {random}: {} {}", less.iops(), more.iops());
                let (less, more) = (less.latency.mean_s(), more.latency.mean_s());
                // In a mixed load on a drive with a cache, a deeper queue gives the drive more writes to choose from.
                // Writes then take less time, so reads wait less for them.
                let mixed = reads > 0.0 && reads < 1.0;
                assert!(mixed || more >= less * 0.95, "{text} {reads} {random}: {less} {more}");
            }
        }
    }
}

#[test]
fn seek_and_rotation_have_the_averages_of_the_book() {
    // The sum is 8 ms of seek, half a revolution of 8.33 ms, and 4 KiB at 100 MB/s.
    let mean = measured("flat", SyntheticLoad::default()).latency.mean_s();
    let book = 8e-3 + 60.0 / 7200.0 / 2.0 + 4096.0 / 100e6;
    assert!((mean - book).abs() < book * 0.02, "{mean} {book}");
}

#[test]
fn a_shorter_stroke_shortens_seeks() {
    let strokes = ["flat", "flat(stroke=50%)", "flat(stroke=20%)", "flat(stroke=5%)"];
    let means: Vec<f64> =
        strokes.iter().map(|text| measured(text, SyntheticLoad::default()).latency.mean_s()).collect();
    assert!(means.windows(2).all(|pair| pair[1] < pair[0]), "{means:?}");
    // Even with the shortest stroke, a read takes at least the minimum seek time plus half a revolution on average.
    assert!(means[3] > 60.0 / 7200.0 / 2.0 + 0.0005);
}

#[test]
fn a_smaller_disk_of_the_same_mechanics_seeks_as_long() {
    let of = |capacity| {
        let device = build(&parse("flat").unwrap(), &models(), Some(capacity), 1);
        run_synthetic(&mut *device.unwrap(), &SyntheticLoad::default()).latency.mean_s()
    };
    let (small, large) = (of(10 << 30), of(900 << 30));
    assert!((small - large).abs() < large * 0.02, "{small} {large}");
}

#[test]
fn a_log_on_a_disk_commits_once_per_turn() {
    let load = SyntheticLoad { reads: 0.0, random: false, length: 8192, flush: true, ..SyntheticLoad::default() };
    for text in ["disk", "disk(cache=on)"] {
        let commits = measured(text, load.clone()).iops();
        assert!((commits - 120.0).abs() < 3.0, "{text} {commits}");
    }
}

#[test]
fn ios_out_of_order_are_refused_in_debug_builds() {
    let submit = |text: &str| {
        let mut device = made(text, 1);
        device.submit(1000, Op::Read, 0, 4096);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| device.submit(999, Op::Read, 0, 4096)))
    };
    assert!(EVERY.iter().all(|text| submit(text).is_err()));
}

#[test]
fn a_flush_of_flash_without_power_loss_protection_waits_for_its_buffer() {
    let device = |more: &str| {
        let mut parameters = crate::testing::models().get("flash").cloned();
        if let Some(crate::parameters::ModelParameters::Flash(flash)) = &mut parameters {
            match more {
                "protected" => flash.protected = true,
                "quick" => flash.quick_flash = 1e11,
                _ => {}
            }
        }
        let Some(crate::parameters::ModelParameters::Flash(flash)) = parameters else { panic!("flash is flash") };
        crate::model::Flash::new(&flash, CAPACITY, crate::model::Usage { fill: 1.0, compressible: 0.0 })
    };
    let flushed_s = |more, writes: u64| {
        let mut device = device(more);
        let far = |number: u64| (number * 7_919 * 4096 * 997) % (CAPACITY - 4096) / 4096 * 4096;
        let written = (0..writes).map(|number| device.submit(0, Op::Write, far(number), 4096)).max().unwrap();
        (device.submit(written, Op::Flush, 0, 0) - written) as f64 / 1e9
    };
    // The flush writes 32 MiB, at 10,000 random 4 KiB writes per second. Some of these writes started before the flush.
    let full = f64::from(32 << 20) / 4096.0 / 10_000.0;
    assert!((flushed_s("", 40_000) - full).abs() < full * 0.02, "{}", flushed_s("", 40_000));
    assert!((flushed_s("", 1) - 0.001).abs() < 0.0001, "a small write is a part of the time of a flush");
    assert!((flushed_s("protected", 40_000) - 0.001).abs() < 0.0001);
    assert!((flushed_s("quick", 40_000) - 0.001).abs() < 0.0001, "flash that is written quickly keeps it");
}

#[test]
fn sequential_reads_come_at_the_rate_of_the_media() {
    let load = SyntheticLoad { random: false, length: 1 << 20, span: 1 << 30, ..SyntheticLoad::default() };
    let outer = measured("raid0(1, disk(capacity=100G))", load).rate();
    assert!((outer - 150e6).abs() < 150e6 * 0.02, "{outer}");
}

#[test]
fn flash_does_what_its_data_sheet_says() {
    let iops = |text, reads, depth| {
        let load = SyntheticLoad { reads, depth, count: 60_000, warm_up: 60_000, ..SyntheticLoad::default() };
        run_synthetic(&mut *made(text, 1), &load).iops()
    };
    assert!((iops("flash", 1.0, 1) - 10_000.0).abs() < 200.0);
    assert!((iops("flash", 1.0, 32) - 40_000.0).abs() < 2_000.0);
    assert!((iops("flash(fill=100%)", 0.0, 32) - 10_000.0).abs() < 500.0);
    let rate = |text, reads| {
        measured(text, SyntheticLoad { reads, random: false, length: 1 << 20, depth: 8, ..SyntheticLoad::default() })
            .rate()
            / 1e6
    };
    assert!((rate("flash", 1.0) - 400.0).abs() < 8.0);
    assert!((rate("flash", 0.0) - 200.0).abs() < 8.0);
    assert!(rate("flash(compressible=50%)", 0.0) > 390.0);
}

#[test]
fn a_fuller_flash_device_writes_more_slowly() {
    let iops = |fill| {
        let load = SyntheticLoad { reads: 0.0, depth: 32, count: 60_000, warm_up: 60_000, ..SyntheticLoad::default() };
        run_synthetic(&mut *made(&format!("flash(fill={fill}%)"), 1), &load).iops()
    };
    let found: Vec<f64> = [88, 92, 96, 100].into_iter().map(iops).collect();
    assert!(found.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
}
