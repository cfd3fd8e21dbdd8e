//! Divides a program's time between two I/Os into computing, waiting for a core, and waiting for something else.
//!
//! The machine's counts are divided among the clients that think at a moment.
//! If `n` clients think while `used` cores compute and `runnable` threads run or want to,
//! a client computes for `used / n` of the time.
//! A client waits for a core for `(runnable − used) / n` of the time, and for something else for the rest.
//! Only computing and the rest are kept: the replay itself determines the wait for a core.
//!
//! If the machine used more CPU than the thinking clients can have used, the excess is partly the work's own.
//! If another I/O completes while one is thought about, the later completion is taken for the cause.
//! The think time before that completion is missing.
//! With exponential times and `k` threads that take turns,
//! the total think time is `(1 + runnable) / k` of the observed one.
//! The observed time is the minimum of two exponential times: the think time and the time to the next completion.
//! Up to that amount, the excess takes cores and directly delays no client.
//! CPU use beyond it belongs to other programs and grows with time rather than with the work.
//! On a slow device there can be more of this than of the work's own, so it is left out.

use super::causes::Causes;
use super::{Processors, Trace};

/// Length of a piece in nanoseconds: a few of the samples, which are taken every 10 ms.
const PIECE: u64 = 100_000_000;
/// Maximum number of pieces; a longer trace has longer pieces.
const MOST_PIECES: u64 = 1 << 20;

/// The time before an I/O, divided.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Thought {
    pub computes: u64,
    /// Computing at the same time that does not delay the I/O.
    pub beside: u64,
    pub waits: u64,
}

/// CPU time used on the whole machine and number of runnable threads, for each piece of time of equal length.
#[derive(Debug)]
pub(super) struct Counts {
    start: u64,
    piece: u64,
    /// CPU time in nanoseconds by piece.
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
            // For linear interpolation between pieces, the outermost points of each piece are enough.
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

    /// Total CPU time used, in nanoseconds.
    pub fn used(&self) -> u64 {
        self.used.iter().sum::<f64>() as u64
    }

    /// Returns the mean number of threads that ran or wanted to, in the piece that contains the moment.
    pub fn at_work(&self, now: u64) -> usize {
        (self.runnable[self.place(now)] / self.piece as f64).round() as usize
    }

    /// Returns the divided think time before each I/O, given its cause.
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

    /// By piece: total think time in nanoseconds of the I/Os issued later.
    fn thinking(&self, trace: &Trace, causes: &Causes) -> Vec<f64> {
        let mut within = vec![0.0; self.used.len()];
        // Difference between the number of clients that think throughout a piece and throughout the previous one.
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

/// Interpolates linearly between points in order of time; queries must be in that order as well.
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
            // Completions that overtake each other return counts in a slightly different order.
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

/// The integral of a fraction that is constant within each piece.
struct Integral {
    start: u64,
    piece: u64,
    shares: Vec<f64>,
    /// The integral up to the start of each piece.
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
