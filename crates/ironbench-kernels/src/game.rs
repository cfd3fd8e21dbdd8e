//! The work of one `igen-ram` thread. The thread fills its memory with tickets, makes draws, frees the memory, and
//! repeats.

use std::time::{Duration, Instant};

use ironbench_core::{Result, SplitMix64};
use serde_json::{Value, json};

use crate::lottery;
use crate::probes::{self, Bandwidth};
use crate::region::{Huge, Region};
use crate::threads::{CompletedUnit, StopCheck, Work};

/// Number of tickets that are filled between two checks whether the work is over. The next constant is the number of
/// draws between two checks.
const FILLED: usize = 1 << 19;
const DRAWN: u64 = 1 << 13;

pub struct Game {
    bytes: usize,
    huge: Huge,
    draws: u64,
    probe: Duration,
    seed: u64,
    random: SplitMix64,
    /// For each game, the state of the generator before its draws, and the number of winners that the search in memory
    /// found.
    held: Vec<(SplitMix64, u64)>,
    bandwidth: Bandwidth,
    latency_s: f64,
    huge_bytes: Option<u64>,
    nodes: Option<String>,
}

impl Game {
    pub fn new(bytes: usize, huge: Huge, draws: u64, probe: Duration, seed: u64) -> Self {
        Self {
            bytes,
            huge,
            draws,
            probe,
            seed,
            random: SplitMix64::new(seed),
            held: Vec::new(),
            bandwidth: Bandwidth::default(),
            latency_s: 0.0,
            huge_bytes: None,
            nodes: None,
        }
    }

    fn tickets(&self) -> u64 {
        (self.bytes / 8) as u64
    }

    fn bought(&self, over: StopCheck<'_>) -> Result<Option<Region>> {
        let mut region = Region::new(self.bytes, self.huge)?;
        let mut first = 0;
        for part in region.words_mut().chunks_mut(FILLED) {
            if over() {
                return Ok(None);
            }
            lottery::fill(part, first);
            first += part.len() as u64;
        }
        Ok(Some(region))
    }

    fn searched(&mut self, region: &Region, over: StopCheck<'_>) -> Option<u64> {
        let (mut winners, mut rest) = (0, self.draws);
        while rest > 0 {
            if over() {
                return None;
            }
            let draws = rest.min(DRAWN);
            winners += lottery::search(region.words(), &mut self.random, draws);
            rest -= draws;
        }
        Some(winners)
    }

    /// Counts the games in which the search in memory and the closed form find different numbers of winners for the
    /// same draws.
    fn wrong(&self) -> u64 {
        let expected =
            |&(mut random, _): &(SplitMix64, u64)| lottery::expected(self.tickets(), &mut random, self.draws);
        self.held.iter().filter(|game| expected(game) != game.1).count() as u64
    }
}

impl Work for Game {
    fn prepare(&mut self, over: StopCheck<'_>) -> Result<()> {
        if !self.probe.is_zero() && !over() {
            self.bandwidth = probes::bandwidth(self.bytes.min(probes::BANDWIDTH_BYTES), self.huge, self.probe)?;
            self.latency_s = probes::latency(self.bytes.min(probes::LATENCY_BYTES), self.huge, self.seed, self.probe)?;
        }
        if let Some(region) = self.bought(over)? {
            (self.huge_bytes, self.nodes) = (region.huge_bytes(), region.nodes());
        }
        Ok(())
    }

    fn unit(&mut self, over: StopCheck<'_>) -> Result<Option<CompletedUnit>> {
        let began = Instant::now();
        let Some(region) = self.bought(over)? else { return Ok(None) };
        let allocated = began.elapsed();
        let before = self.random;
        let Some(winners) = self.searched(&region, over) else { return Ok(None) };
        let took = began.elapsed();
        self.held.push((before, winners));
        let (allocate_ns, all_ns) = (allocated.as_nanos() as u64, took.as_nanos() as u64);
        Ok(Some(CompletedUnit {
            took_ns: Some(all_ns),
            parts: vec![("allocate", allocate_ns), ("search", all_ns - allocate_ns)],
        }))
    }

    fn report(&mut self) -> Value {
        json!({
            "wrong": self.wrong(),
            "winners": self.held.iter().map(|(_, winners)| winners).sum::<u64>(),
            "tickets": self.tickets(),
            "copy": self.bandwidth.copy,
            "triad": self.bandwidth.triad,
            "latency_s": self.latency_s,
            "huge_bytes": self.huge_bytes,
            "nodes": self.nodes,
        })
    }
}
