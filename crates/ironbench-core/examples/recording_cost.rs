//! Measures the cost of recording one transaction. Reading the clock is not included: time stamps are generated outside
//! the loop, so that only the recorder is timed. Prints one line per run, in ns per record.
//!
//! The simulated load is an open loop with one transaction per 2 µs. An open loop records most: four histograms and the
//! timeline.

use std::time::Instant;

use ironbench_core::measure::{Live, Recorder, Window};

const RECORDS: u64 = 5_000_000;
const STEP_NS: u64 = 2_000;

fn main() {
    for _ in 0..7 {
        let (slices, taken) = std::sync::mpsc::channel();
        let live = Live::default();
        let window = Window { start: 0, end: RECORDS * STEP_NS };
        let mut recorder = Recorder::new(0, 4, window, true, slices, &live);
        recorder.pass_time(0);
        let start = Instant::now();
        let mut spread = 1u64;
        for number in 1..RECORDS {
            let now = number * STEP_NS;
            if now >= recorder.boundary() {
                recorder.pass_time(now);
            }
            // The times vary as in a real trial: half of them are between 60 and 320 µs, and one in a thousand is up to
            // 17 ms. A wider distribution touches more of the histograms' memory, and touching memory is most of the
            // cost.
            spread = spread.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let tail = if spread >> 54 == 0 { spread >> 30 & 0xff_ffff } else { 0 };
            let response = 60_000 + (spread >> 46) + tail;
            let begun = now - response.min(now) / 2;
            recorder.record_lateness(begun, begun + 40);
            recorder.complete((number & 3) as usize, now - response.min(now), begun, now);
        }
        println!("{:.2}", start.elapsed().as_nanos() as f64 / (RECORDS - 1) as f64);
        drop(recorder);
        assert!(taken.iter().count() > 0);
    }
}
