//! Runs the kernels in a bare loop, for comparison with a trial of ironbench. There are no threads, and no clocks and
//! counters around each unit. Usage: bare_loop scalar|vector|lottery SECONDS. Prints units per second.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ironbench_core::SplitMix64;
use ironbench_kernels::lottery;
use ironbench_kernels::mandelbrot::{self, Variant, View};
use ironbench_kernels::region::{Huge, Region};

const LOTTERY_BYTES: usize = 64 << 20;
const DRAWS: u64 = 100_000;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let time = Duration::from_secs_f64(words[2].parse().expect("seconds"));
    let view = View { width: 480, height: 320, limit: 256 };
    let mut steps = vec![0; view.width * view.height];
    let mut random = SplitMix64::new(1);
    let rate = match words[1].as_str() {
        "scalar" => looped(time, || mandelbrot::draw(black_box(view), Variant::Scalar, &mut steps)),
        "vector" => looped(time, || mandelbrot::draw(black_box(view), Variant::Vector, &mut steps)),
        "lottery" => looped(time, || {
            let mut region = Region::new(LOTTERY_BYTES, Huge::Default).expect("memory");
            lottery::fill(region.words_mut(), 0);
            black_box(lottery::search(region.words(), &mut random, DRAWS));
        }),
        other => panic!("{other}: scalar, vector or lottery"),
    };
    println!("{rate}");
}

fn looped(time: Duration, mut unit: impl FnMut()) -> f64 {
    unit();
    let (began, mut units) = (Instant::now(), 0_u64);
    while began.elapsed() < time {
        unit();
        units += 1;
    }
    units as f64 / began.elapsed().as_secs_f64()
}
