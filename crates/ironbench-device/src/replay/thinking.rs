//! What a program does between two I/Os: it computes, it waits for a core, it waits for something else.
//!
//! The machine's counts are divided among those that think at a moment: of `n` that think while `used` cores compute and
//! `runnable` threads run or want to, each computes for `used / n` of the time, waits for a core for
//! `(runnable − used) / n`, and for something else in the rest. Only computing and the rest are kept: how long to wait
//! for a core is decided where it is replayed.
//!
//! CPU that more than those that think must have used is partly the work's: where another I/O is completed while one is
//! thought about, the later of the two is taken for its cause, and the time before is missing. With exponential times and
//! `k` threads that take turns, `(1 + runnable) / k` of what is seen is thought in all (the first of two such times that
//! compete, the think time and the time to the next completion). Up to there it takes cores and holds up nobody directly.
//! What is beyond is other programs', which goes with time and not with the work: on a slow device there can be more of
//! it than of the work's, and it is left out.

use super::causes::Causes;
use super::{Processors, Trace};

/// Counts are sampled every 10 ms; a piece of some samples.
const PIECE: u64 = 100_000_000;
/// Longer pieces rather than more.
const MOST_PIECES: u64 = 1 << 20;

/// Of one I/O, before it comes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Thought {
    pub computes: u64,
    /// What is computed meanwhile, not on its way.
    pub beside: u64,
    pub waits: u64,
}

/// The machine's counts in pieces of time.
#[derive(Debug)]
pub(super) struct Counts {
    start: u64,
    piece: u64,
    /// By piece, nanoseconds.
    used: Vec<f64>,
    runnable: Vec<f64>,
}

impl Counts {
    pub fn of(trace: &Trace, processors: &Processors) -> Self {
        let start = trace.time.first().copied().unwrap_or(0);
        let end = trace.completed.iter().copied().max().unwrap_or(start);
        let piece = PIECE.max((end - start).div_ceil(MOST_PIECES));
        let pieces = (end - start) / piece + 1;
        let along = |values: &[u64]| -> Vec<f64> {
            // Lines between pieces need no more than the outermost points of each.
            let mut outermost: Vec<Option<[(u64, u64); 2]>> = vec![None; pieces as usize];
            for (time, value) in trace.completed.iter().copied().zip(values.iter().copied()) {
                let [first, last] = outermost[((time - start) / piece) as usize].get_or_insert([(time, value); 2]);
                *first = (*first).min((time, value));
                *last = (*last).max((time, value));
            }
            let mut curve = Curve::new(outermost.into_iter().flatten().flatten());
            let edges: Vec<f64> = (0..=pieces).map(|number| curve.at(start + number * piece)).collect();
            edges.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).collect()
        };
        Self { start, piece, used: along(&processors.used), runnable: along(&processors.runnable) }
    }

    /// CPU that was used in all, nanoseconds.
    pub fn used(&self) -> u64 {
        self.used.iter().sum::<f64>() as u64
    }

    /// Threads that ran or wanted to, on average over the piece that the moment lies in.
    pub fn at_work(&self, now: u64) -> usize {
        (self.runnable[self.place(now)] / self.piece as f64).round() as usize
    }

    /// What each I/O was preceded by, given what it came after.
    pub fn thoughts(&self, trace: &Trace, causes: &Causes) -> Vec<Thought> {
        let thinking = self.thinking(trace, causes);
        let shares = |share: &dyn Fn(f64, f64, f64) -> f64| {
            let each = thinking.iter().enumerate().map(|(number, thinking)| {
                let (used, runnable) = (self.used[number], self.runnable[number].max(self.used[number]));
                let threads = runnable / self.piece as f64;
                let most = (1.0 + threads) / threads.round().max(1.0);
                if *thinking > 0.0 { share(used / thinking, runnable / thinking, most) } else { 0.0 }
            });
            Integral::of(each, self.start, self.piece)
        };
        let computes = shares(&|used, _, _| used.min(1.0));
        let beside = shares(&|used, _, most| (used.min(most) - 1.0).max(0.0));
        let waits = shares(&|_, runnable, _| (1.0 - runnable).max(0.0));
        let over = |of: &Integral, row: usize| (of.at(trace.time[row]) - of.at(causes.since[row])) as u64;
        let thought =
            |row| Thought { computes: over(&computes, row), beside: over(&beside, row), waits: over(&waits, row) };
        (0..trace.len()).map(thought).collect()
    }

    /// By piece: nanoseconds that I/Os which were to come were thought about, all of them together.
    fn thinking(&self, trace: &Trace, causes: &Causes) -> Vec<f64> {
        let mut within = vec![0.0; self.used.len()];
        // How many more think in a whole piece than in the one before.
        let mut begun = vec![0i64; self.used.len() + 1];
        for row in 0..trace.len() {
            let (since, now) = (causes.since[row], trace.time[row]);
            let (first, last) = (self.place(since), self.place(now));
            if first == last {
                within[first] += (now - since) as f64;
            } else {
                within[first] += (self.start + (first as u64 + 1) * self.piece - since) as f64;
                within[last] += (now - self.start - last as u64 * self.piece) as f64;
                begun[first + 1] += 1;
                begun[last] -= 1;
            }
        }
        let mut whole = 0;
        for (one, more) in within.iter_mut().zip(&begun) {
            whole += more;
            *one += (whole as u64 * self.piece) as f64;
        }
        within
    }

    fn place(&self, now: u64) -> usize {
        ((now.saturating_sub(self.start) / self.piece) as usize).min(self.used.len() - 1)
    }
}

/// Straight lines through points in the order of their times, asked in that order, too.
struct Curve<I: Iterator<Item = (u64, u64)>> {
    points: std::iter::Peekable<I>,
    before: Option<(u64, u64)>,
}

impl<I: Iterator<Item = (u64, u64)>> Curve<I> {
    fn new(points: I) -> Self {
        Self { points: points.peekable(), before: None }
    }

    fn at(&mut self, now: u64) -> f64 {
        while let Some(point) = self.points.next_if(|(time, _)| *time <= now) {
            // Answers that overtake each other bring counts in a slightly different order.
            let most = self.before.map_or(0, |(_, value)| value);
            self.before = Some((point.0, point.1.max(most)));
        }
        match (self.before, self.points.peek()) {
            (Some((t0, v0)), Some(&(t1, v1))) => {
                v0 as f64 + (v1.max(v0) - v0) as f64 * (now - t0) as f64 / (t1 - t0) as f64
            }
            (Some((_, value)), None) => value as f64,
            (None, next) => next.map_or(0.0, |(_, value)| *value as f64),
        }
    }
}

/// Of a share that is the same throughout a piece.
struct Integral {
    start: u64,
    piece: u64,
    shares: Vec<f64>,
    /// Up to the start of each piece.
    sums: Vec<f64>,
}

impl Integral {
    fn of(shares: impl Iterator<Item = f64>, start: u64, piece: u64) -> Self {
        let shares: Vec<f64> = shares.collect();
        let mut sum = 0.0;
        let up_to = |share: &f64| {
            let before = sum;
            sum += share * piece as f64;
            before
        };
        let sums = shares.iter().map(up_to).collect();
        Self { start, piece, shares, sums }
    }

    fn at(&self, now: u64) -> f64 {
        let passed = now - self.start;
        let place = ((passed / self.piece) as usize).min(self.shares.len() - 1);
        self.sums[place] + self.shares[place] * (passed - place as u64 * self.piece) as f64
    }
}
