//! Passes requests to the model and the images, and delays their answers.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ironbench_core::{Error, Result};
use serde::Serialize;

use super::due::Clock;
use super::image::Image;
use super::pace::{Mode, Pace, Plan};
use super::process;
use super::recording::Recording;
use super::spec::Spec;
use super::tally::{Counts, Tally};
use super::undo::{Cut, Undo};
use super::way::Overhead;
use crate::Op;

#[derive(Debug)]
pub struct Partition {
    pub name: String,
    pub length: u64,
    /// Offset of the partition on the device.
    start: u64,
    image: Image,
    tally: Tally,
}

/// The destination of an answer. Each request is answered once.
pub trait Answer {
    fn data(self, bytes: &[u8]);
    fn written(self, length: u32);
    fn done(self);
    /// Refuses the request, with `error` as an errno(3).
    fn refuse(self, error: i32);
}

/// A request to a partition. The offset is relative to the partition.
#[derive(Debug, Clone, Copy)]
struct Asked {
    partition: usize,
    op: Op,
    offset: u64,
    length: u32,
    /// Number of the last write before a flush. The flush covers all writes up to it.
    covers: u64,
    /// How a discard or zeroing clears its range. Such a write has no data.
    clears: Option<Cleared>,
}

/// How a range whose bytes are no longer needed is cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    /// The range is cleared by a discard, a command that changes the device's map of blocks.
    Discarded,
    /// The range is cleared by writing zeros.
    Zeroed,
}

/// A discard changes only one block of the device's map of blocks. The model therefore treats it as a write of this
/// many bytes.
const DISCARD: u64 = 4096;
/// Discards and zeroing are logged for a power cut in pieces of this size. Pieces that are already zero are skipped.
const PIECE: u64 = 1 << 20;

/// An I/O whose answer is delayed.
#[derive(Debug)]
pub struct Held<A> {
    answer: A,
    asked: Asked,
    arrival: u64,
    plan: Plan,
    /// Bytes that were read from a file in advance. Reading them when the answer leaves could mean waiting for a disk,
    /// and would delay all other answers.
    bytes: Option<Vec<u8>>,
}

impl<A> Held<A> {
    /// Returns the time at which the answer leaves, by the clock of the exchange.
    pub fn due(&self) -> u64 {
        self.plan.due
    }

    pub fn arrival(&self) -> u64 {
        self.arrival
    }
}

/// The state shared by all threads that receive requests and send answers.
#[derive(Debug)]
pub struct Exchange {
    model: String,
    clock: Clock,
    pub pace: Pace,
    reads_per_s: AtomicU64,
    partitions: Vec<Partition>,
    undo: Option<Mutex<Undo>>,
    recording: Option<Recording>,
    dead: AtomicBool,
}

/// Content of the file `counters`.
#[derive(Debug, Serialize)]
struct Told<'a> {
    model: &'a str,
    now_ns: u64,
    /// CPU time of this process so far.
    cpu_ns: u64,
    /// Whether the model determines the time of answers.
    modelled: bool,
    /// 4 KiB reads per second without a model, as explained at `Calibration`.
    reads_per_s: f64,
    /// Number of rows dropped from the trace.
    untraced: u64,
    partitions: std::collections::BTreeMap<&'a str, Counts>,
}

impl Exchange {
    pub fn new(spec: &Spec) -> Result<Self> {
        let device = spec.device()?;
        // If these conditions hold, this process need not see the requests, so the kernel can serve them from the
        // files.
        let passes = !device.takes_time() && spec.backing.is_none() && spec.trace.is_none() && !spec.cuttable;
        let mut start = 0;
        let mut partitions = Vec::new();
        for one in &spec.partitions {
            let image = match &spec.backing {
                None if passes => Image::in_shared_memory(one.bytes)?,
                None => Image::in_memory(one.bytes)?,
                Some(folder) => Image::in_file(&folder.join(&one.name), one.bytes)?,
            };
            let tally = Tally::default();
            partitions.push(Partition { name: one.name.clone(), length: one.bytes, start, image, tally });
            start += one.bytes;
        }
        let recording = spec.trace.as_deref().map(Recording::start);
        Ok(Self {
            model: spec.model.clone(),
            clock: Clock::start(),
            pace: Pace::new(device),
            reads_per_s: AtomicU64::new(0),
            partitions,
            recording: recording.transpose()?,
            undo: spec.cuttable.then(|| Mutex::new(Undo::default())),
            dead: AtomicBool::new(false),
        })
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the file with the bytes of a partition. Returns None if the kernel must not pass requests through to it.
    pub fn shared(&self, partition: usize) -> Option<&File> {
        self.partitions[partition].image.shared()
    }

    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    pub fn pace(&self, mode: Mode) {
        self.pace.set(mode, self.clock.now());
    }

    /// Returns how early an answer must be sent to arrive on time. `idle_ns` is how long the device has been idle.
    pub fn ahead(&self, idle_ns: u64) -> u64 {
        self.pace.overhead().waking.after(idle_ns)
    }

    /// Whether answers are ever delayed.
    pub fn takes_time(&self) -> bool {
        self.pace.takes_time()
    }

    pub fn calibrated(&self, overhead: Overhead, reads_per_s: f64) {
        self.pace.calibrated(overhead);
        self.reads_per_s.store(reads_per_s as u64, Release);
    }

    /// Returns cumulative counters as JSON.
    pub fn counters(&self) -> Vec<u8> {
        let partitions = self.partitions().iter().map(|one| (one.name.as_str(), one.tally.counts())).collect();
        let told = Told {
            model: &self.model,
            now_ns: self.clock.now(),
            cpu_ns: process::cpu_ns(),
            modelled: self.pace.mode() == Mode::Model,
            reads_per_s: self.reads_per_s.load(Acquire) as f64,
            untraced: self.recording.as_ref().map_or(0, Recording::dropped),
            partitions,
        };
        serde_json::to_vec(&told).expect("numbers and names are JSON")
    }

    pub fn end_trace(&self) -> Result<()> {
        self.recording.as_ref().map_or(Ok(()), Recording::end)
    }

    /// Returns the total lateness and the number of late answers so far.
    pub fn lateness(&self) -> (u64, u64) {
        let mut sums = (0, 0);
        for partition in self.partitions() {
            let counts = partition.tally.counts();
            for kind in [&counts.read, &counts.write, &counts.flush] {
                sums = (sums.0 + kind.late_ns, sums.1 + kind.late);
            }
        }
        sums
    }

    /// Cuts the power. All later requests fail, and `how` determines which unflushed writes survive. Returns the number
    /// of unflushed writes.
    ///
    /// # Errors
    /// Input: the device was not created for power cuts.
    pub fn cut(&self, how: Cut, seed: u64) -> Result<usize> {
        let Some(undo) = &self.undo else {
            return Err(Error::input("power cut", "this device was not mounted for power cuts"));
        };
        self.dead.store(true, Release);
        let (steps, at_stake) = locked(undo).cut(how, seed);
        for (partition, offset, bytes) in steps {
            let image = &self.partitions[partition].image;
            image.write(offset, &bytes).map_err(|error| Error::failure("power cut", error.to_string()))?;
        }
        Ok(at_stake)
    }

    /// Restores the power.
    pub fn revive(&self) {
        self.dead.store(false, Release);
    }

    /// Reads bytes. If the answer is not delayed, it is sent immediately. Otherwise returns the delayed answer, and the
    /// caller must pass it to `answer` when it is due. The methods `write`, `flush` and `clear` work the same way.
    pub fn read<A: Answer>(&self, partition: usize, offset: u64, size: u32, answer: A) -> Option<Held<A>> {
        let length = self.within(partition, offset, size);
        let asked = Asked { partition, op: Op::Read, offset, length, covers: 0, clears: None };
        self.submit(asked, answer, || self.partitions[partition].image.ahead(offset, length as usize))
    }

    pub fn write<A: Answer>(&self, partition: usize, offset: u64, data: &[u8], answer: A) -> Option<Held<A>> {
        let length = self.within(partition, offset, data.len() as u32);
        if (length as usize) < data.len() {
            answer.refuse(libc::ENOSPC);
            return None;
        }
        let asked = Asked { partition, op: Op::Write, offset, length, covers: 0, clears: None };
        self.submit(asked, answer, || self.store(partition, offset, data).map(|()| None))
    }

    pub fn flush<A: Answer>(&self, partition: usize, answer: A) -> Option<Held<A>> {
        let covers = self.undo.as_ref().map_or(0, |undo| locked(undo).last());
        let asked = Asked { partition, op: Op::Flush, offset: 0, length: 0, covers, clears: None };
        self.submit(asked, answer, || Ok(None))
    }

    /// Clears a range. Zeroing takes as long as writing the bytes, and a discard as long as a small write.
    pub fn clear<A: Answer>(
        &self,
        partition: usize,
        offset: u64,
        length: u64,
        how: Cleared,
        answer: A,
    ) -> Option<Held<A>> {
        let whole = self.partitions[partition].length;
        let (offset, length) = (offset.min(whole), length.min(whole.saturating_sub(offset)));
        let modelled = if how == Cleared::Discarded { length.min(DISCARD) } else { length };
        let modelled = u32::try_from(modelled).unwrap_or(u32::MAX);
        let asked = Asked { partition, op: Op::Write, offset, length: modelled, covers: 0, clears: Some(how) };
        self.submit(asked, answer, || self.zero(partition, offset, length).map(|()| None))
    }

    /// Submits a request to the model, and then runs `work` on the images. The time that `work` takes is a part of the
    /// model's time, not added to it. If `work` takes longer than the model's time, the answer is late.
    fn submit<A: Answer>(
        &self,
        asked: Asked,
        answer: A,
        work: impl FnOnce() -> io::Result<Option<Vec<u8>>>,
    ) -> Option<Held<A>> {
        if self.dead.load(Acquire) {
            answer.refuse(libc::EIO);
            return None;
        }
        let place = &self.partitions[asked.partition];
        place.tally.began();
        let start = place.start + asked.offset;
        let (arrival, plan) = self.pace.plan(|| self.clock.now(), asked.op, start, asked.length);
        let bytes = match self.worked(plan.host_cpu_ns, work) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.pace.answered(&plan, arrival, asked.op, asked.length);
                place.tally.uncounted();
                answer.refuse(errno(&error));
                return None;
            }
        };
        let held = Held { answer, asked, arrival, plan, bytes };
        if plan.due > arrival {
            return Some(held);
        }
        self.answer(held, 0);
        None
    }

    /// Runs `work`, and then spins until the host CPU time of the modelled driver has passed. This time is a part of
    /// the model's time. The CPU time is not spent when the answer leaves, because that would block the only thread
    /// that sends answers.
    fn worked<T>(&self, host_cpu_ns: u64, work: impl FnOnce() -> T) -> T {
        if host_cpu_ns == 0 {
            return work();
        }
        let until = self.clock.now() + host_cpu_ns;
        let done = work();
        self.clock.watch(|| until);
        done
    }

    /// Sends a delayed answer. `ahead` is how many nanoseconds before its due time it is sent.
    pub fn answer<A: Answer>(&self, held: Held<A>, ahead: u64) {
        let Held { answer, asked, arrival, plan, bytes } = held;
        let Asked { partition, op, offset, length, covers, clears } = asked;
        let tally = &self.partitions[partition].tally;
        // The clock is read first. A later request could otherwise seem to arrive before this answer left.
        let leaves = self.clock.now();
        self.pace.answered(&plan, arrival, op, length);
        if self.dead.load(Acquire) {
            tally.uncounted();
            return answer.refuse(libc::EIO);
        }
        if op == Op::Flush && !self.settled(covers) {
            tally.uncounted();
            return answer.refuse(libc::EIO);
        }
        let usually_late_ns = self.pace.overhead().late_ns;
        let now = leaves + ahead;
        let late_ns = if plan.modelled { now.saturating_sub(plan.due + usually_late_ns) } else { 0 };
        let beside = plan.way_ns.saturating_sub(usually_late_ns);
        if clears == Some(Cleared::Discarded) {
            tally.uncounted(); // the kernel does not count a discard as a write either
        } else {
            tally.ended(op, length, now - arrival + beside, late_ns);
        }
        if let (Some(recording), true) = (&self.recording, plan.asked) {
            let place = self.partitions[partition].start + offset;
            recording.note(plan.reached, op, place, length, plan.over(leaves));
        }
        self.reply(answer, &asked, bytes);
    }

    /// Whether the writes that a flush covers are durable now. The result is false if the power was cut before the
    /// flush completed.
    fn settled(&self, covers: u64) -> bool {
        let Some(undo) = &self.undo else { return true };
        let mut undo = locked(undo);
        // A power cut takes the same lock while it reverts writes. Therefore a cut either comes after this flush and
        // keeps its writes, or comes before it and makes it fail.
        let powered = !self.dead.load(Acquire);
        if powered {
            undo.flushed(covers);
        }
        powered
    }

    fn reply<A: Answer>(&self, answer: A, asked: &Asked, bytes: Option<Vec<u8>>) {
        let Asked { partition, op, offset, length, .. } = *asked;
        match (op, bytes) {
            (Op::Write, _) if asked.clears.is_some() => answer.done(),
            (Op::Write, _) => answer.written(length),
            (Op::Flush, _) => answer.done(),
            (Op::Read, Some(bytes)) => answer.data(&bytes),
            (Op::Read, None) => {
                let mut answer = Some(answer);
                let tell = |bytes: &[u8]| {
                    if let Some(answer) = answer.take() {
                        answer.data(bytes);
                    }
                };
                let outcome = self.partitions[partition].image.read(offset, length as usize, tell);
                if let (Err(error), Some(answer)) = (outcome, answer) {
                    answer.refuse(errno(&error));
                }
            }
        }
    }

    fn store(&self, partition: usize, offset: u64, data: &[u8]) -> io::Result<()> {
        let image = &self.partitions[partition].image;
        let Some(undo) = &self.undo else { return image.write(offset, data) };
        // The write and its entry in the log are under one lock. The log therefore contains the writes to a range in
        // the order in which they were done.
        let mut undo = locked(undo);
        if self.dead.load(Acquire) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let before = image.read(offset, data.len(), <[u8]>::to_vec)?;
        image.write(offset, data)?;
        undo.note(partition, [(offset, before, data.to_vec())]);
        Ok(())
    }

    fn zero(&self, partition: usize, offset: u64, length: u64) -> io::Result<()> {
        let image = &self.partitions[partition].image;
        let Some(undo) = &self.undo else { return image.discard(offset, length) };
        let mut undo = locked(undo);
        if self.dead.load(Acquire) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let (mut pieces, end) = (Vec::new(), offset + length);
        for at in (offset..end).step_by(PIECE as usize) {
            let size = PIECE.min(end - at) as usize;
            let kept = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0).then(|| bytes.to_vec());
            if let Some(before) = image.read(at, size, kept)? {
                pieces.push((at, before, vec![0; size]));
            }
        }
        image.discard(offset, length)?;
        undo.note(partition, pieces);
        Ok(())
    }

    fn within(&self, partition: usize, offset: u64, length: u32) -> u32 {
        let left = self.partitions[partition].length.saturating_sub(offset);
        u32::try_from(left).unwrap_or(u32::MAX).min(length)
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn locked(undo: &Mutex<Undo>) -> MutexGuard<'_, Undo> {
    undo.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
