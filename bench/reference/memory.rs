//! A reference beside `igen-ram`: pointer chasing and STREAM's triad, written apart from the core, for `bench/kernels.py`.
//! Usage: memory chase|triad SECONDS. Prints ns per read, or bytes per second.

use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let seconds: f64 = words[2].parse().unwrap();
    match words[1].as_str() {
        "chase" => println!("{}", chase(256 << 20, seconds)),
        "triad" => println!("{}", triad(384 << 20, seconds)),
        other => panic!("{other}?"),
    }
}

/// A linked list through all cache lines in random order, by the method of lmbench's lat_mem_rd -t.
fn chase(bytes: usize, seconds: f64) -> f64 {
    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Line {
        next: u32,
    }
    let count = bytes / 64;
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut state = 88172645463325252_u64;
    for place in (1..count).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.swap(place, ((state >> 33) as usize) % (place + 1));
    }
    let mut lines = vec![Line { next: 0 }; count];
    for pair in order.windows(2) {
        lines[pair[0] as usize].next = pair[1];
    }
    lines[order[count - 1] as usize].next = order[0];
    let mut at = order[0];
    for _ in 0..count / 4 {
        at = lines[at as usize].next;
    }
    let (begin, mut reads) = (Instant::now(), 0_u64);
    while begin.elapsed().as_secs_f64() < seconds {
        for _ in 0..65536 {
            at = lines[at as usize].next;
        }
        reads += 65536;
    }
    std::hint::black_box(at);
    begin.elapsed().as_nanos() as f64 / reads as f64
}

/// The best pass, as STREAM reports it.
fn triad(bytes: usize, seconds: f64) -> f64 {
    let count = bytes / 24;
    let (mut a, b, c) = (vec![1.0_f64; count], vec![2.0_f64; count], vec![0.5_f64; count]);
    let (begin, mut best) = (Instant::now(), 0.0_f64);
    while begin.elapsed().as_secs_f64() < seconds || best == 0.0 {
        let pass = Instant::now();
        let scalar = std::hint::black_box(3.0);
        // Iterators, so that no bounds are checked and the loop uses vector instructions, as STREAM's does when a C
        // compiler optimises it.
        for ((sum, left), right) in a.iter_mut().zip(&b).zip(&c) {
            *sum = left + scalar * right;
        }
        std::hint::black_box(&mut a);
        best = best.max((count * 24) as f64 / pass.elapsed().as_secs_f64());
    }
    best
}
