//! Passes requests to the model and the images, and delays their answers.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ironbench_core::{Error, Result};
use serde::Serialize;

use super::delay_queue::Clock;
use super::image::PartitionImage;
use super::io_path::Overhead;
use super::pace::{Mode, Pace, Plan};
use super::process;
use super::spec::DeviceSpec;
use super::tally::{PartitionCounts, PartitionTally};
use super::trace_writer::TraceWriter;
use super::undo::{PowerCut, UndoLog};
use crate::Op;

/// A partition of the device: a range of its offsets, with its contents and its counts.
#[derive(Debug)]
pub struct Partition {
    pub name: String,
    pub length: u64,
    /// Offset of the partition on the device.
    start: u64,
    image: PartitionImage,
    tally: PartitionTally,
}

/// The destination of an answer. Each request is answered once.
pub trait Responder {
    /// Answers a read with its bytes.
    fn send_data(self, bytes: &[u8]);
    /// Confirms a write of this many bytes.
    fn confirm_write(self, length: u32);
    /// Confirms a request whose answer contains nothing else.
    fn confirm(self);
    /// Refuses the request, with `error` as an errno(3).
    fn refuse(self, error: i32);
}

/// A request to a partition. The offset is relative to the partition.
#[derive(Debug, Clone, Copy)]
struct Request {
    partition: usize,
    op: Op,
    offset: u64,
    length: u32,
    /// Number of the last write before a flush. The flush covers all writes up to it.
    covers_until: u64,
    /// How a discard or zeroing clears its range. Such a write has no data.
    clearing: Option<Clearing>,
}

/// How a range whose bytes are no longer needed is cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// The range is cleared by a discard, a command that changes the device's map of blocks.
    Discard,
    /// The range is cleared by writing zeros.
    Zero,
}

/// A discard changes only one block of the device's map of blocks. The model therefore treats it as a write of this
/// many bytes.
const DISCARD_BYTES: u64 = 4096;
/// Discards and zeroing are logged for a power cut in pieces of this size. Pieces that are already zero are skipped.
const CLEAR_CHUNK: u64 = 1 << 20;

/// An I/O whose answer is delayed.
#[derive(Debug)]
pub struct PendingReply<A> {
    responder: A,
    request: Request,
    arrival: u64,
    plan: Plan,
    /// Bytes that were read from a file in advance. Reading them when the answer leaves could mean waiting for a disk,
    /// and would delay all other answers.
    bytes: Option<Vec<u8>>,
}

impl<A> PendingReply<A> {
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
pub struct RequestHandler {
    model: String,
    clock: Clock,
    pub pace: Pace,
    reads_per_s: AtomicU64,
    partitions: Vec<Partition>,
    undo: Option<Mutex<UndoLog>>,
    trace_writer: Option<TraceWriter>,
    power_is_off: AtomicBool,
}

/// Content of the file `counters`.
#[derive(Debug, Serialize)]
struct CountersFile<'a> {
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
    partitions: std::collections::BTreeMap<&'a str, PartitionCounts>,
}

impl RequestHandler {
    pub fn new(spec: &DeviceSpec) -> Result<Self> {
        let device = spec.device()?;
        // If these conditions hold, this process need not see the requests, so the kernel can serve them from the
        // files.
        let passes = !device.takes_time() && spec.backing.is_none() && spec.trace.is_none() && !spec.cuttable;
        let mut start = 0;
        let mut partitions = Vec::new();
        for one in &spec.partitions {
            let image = match &spec.backing {
                None if passes => PartitionImage::in_shared_memory(one.bytes)?,
                None => PartitionImage::in_memory(one.bytes)?,
                Some(folder) => PartitionImage::in_file(&folder.join(&one.name), one.bytes)?,
            };
            let tally = PartitionTally::default();
            partitions.push(Partition { name: one.name.clone(), length: one.bytes, start, image, tally });
            start += one.bytes;
        }
        let trace_writer = spec.trace.as_deref().map(TraceWriter::start);
        Ok(Self {
            model: spec.model.clone(),
            clock: Clock::start(),
            pace: Pace::new(device),
            reads_per_s: AtomicU64::new(0),
            partitions,
            trace_writer: trace_writer.transpose()?,
            undo: spec.cuttable.then(|| Mutex::new(UndoLog::default())),
            power_is_off: AtomicBool::new(false),
        })
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the file with the bytes of a partition. Returns None if the kernel must not pass requests through to it.
    pub fn passthrough_file(&self, partition: usize) -> Option<&File> {
        self.partitions[partition].image.shared()
    }

    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    pub fn pace(&self, mode: Mode) {
        self.pace.set_mode(mode, self.clock.now());
    }

    /// Returns how early an answer must be sent to arrive on time. `idle_ns` is how long the device has been idle.
    pub fn send_ahead_ns(&self, idle_ns: u64) -> u64 {
        self.pace.overhead().waking.after(idle_ns)
    }

    /// Whether answers are ever delayed.
    pub fn takes_time(&self) -> bool {
        self.pace.takes_time()
    }

    pub fn set_calibration(&self, overhead: Overhead, reads_per_s: f64) {
        self.pace.set_overhead(overhead);
        self.reads_per_s.store(reads_per_s as u64, Release);
    }

    /// Returns cumulative counters as JSON.
    pub fn counters(&self) -> Vec<u8> {
        let partitions = self.partitions().iter().map(|one| (one.name.as_str(), one.tally.counts())).collect();
        let file = CountersFile {
            model: &self.model,
            now_ns: self.clock.now(),
            cpu_ns: process::cpu_ns(),
            modelled: self.pace.mode() == Mode::Model,
            reads_per_s: self.reads_per_s.load(Acquire) as f64,
            untraced: self.trace_writer.as_ref().map_or(0, TraceWriter::dropped),
            partitions,
        };
        serde_json::to_vec(&file).expect("numbers and names are JSON")
    }

    pub fn end_trace(&self) -> Result<()> {
        self.trace_writer.as_ref().map_or(Ok(()), TraceWriter::end)
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
    pub fn cut_power(&self, how: PowerCut, seed: u64) -> Result<usize> {
        let Some(undo) = &self.undo else {
            return Err(Error::input("power cut", "this device was not mounted for power cuts"));
        };
        self.power_is_off.store(true, Release);
        let (steps, at_stake) = locked(undo).cut_power(how, seed);
        for (partition, offset, bytes) in steps {
            let image = &self.partitions[partition].image;
            image.write(offset, &bytes).map_err(|error| Error::failure("power cut", error.to_string()))?;
        }
        Ok(at_stake)
    }

    /// Restores the power.
    pub fn restore_power(&self) {
        self.power_is_off.store(false, Release);
    }

    /// Reads bytes. If the answer is not delayed, it is sent immediately. Otherwise returns the delayed answer, and the
    /// caller must pass it to `send_reply` when it is due. The methods `write`, `flush` and `clear` work the same way.
    pub fn read<A: Responder>(
        &self,
        partition: usize,
        offset: u64,
        size: u32,
        responder: A,
    ) -> Option<PendingReply<A>> {
        let length = self.clamp_length(partition, offset, size);
        let request = Request { partition, op: Op::Read, offset, length, covers_until: 0, clearing: None };
        self.submit(request, responder, || self.partitions[partition].image.read_ahead(offset, length as usize))
    }

    pub fn write<A: Responder>(
        &self,
        partition: usize,
        offset: u64,
        data: &[u8],
        responder: A,
    ) -> Option<PendingReply<A>> {
        let length = self.clamp_length(partition, offset, data.len() as u32);
        if (length as usize) < data.len() {
            responder.refuse(libc::ENOSPC);
            return None;
        }
        let request = Request { partition, op: Op::Write, offset, length, covers_until: 0, clearing: None };
        self.submit(request, responder, || self.store(partition, offset, data).map(|()| None))
    }

    pub fn flush<A: Responder>(&self, partition: usize, responder: A) -> Option<PendingReply<A>> {
        let covers_until = self.undo.as_ref().map_or(0, |undo| locked(undo).last_number());
        let request = Request { partition, op: Op::Flush, offset: 0, length: 0, covers_until, clearing: None };
        self.submit(request, responder, || Ok(None))
    }

    /// Clears a range. Zeroing takes as long as writing the bytes, and a discard as long as a small write.
    pub fn clear<A: Responder>(
        &self,
        partition: usize,
        offset: u64,
        length: u64,
        how: Clearing,
        responder: A,
    ) -> Option<PendingReply<A>> {
        let whole = self.partitions[partition].length;
        let (offset, length) = (offset.min(whole), length.min(whole.saturating_sub(offset)));
        let modelled = if how == Clearing::Discard { length.min(DISCARD_BYTES) } else { length };
        let modelled = u32::try_from(modelled).unwrap_or(u32::MAX);
        let request =
            Request { partition, op: Op::Write, offset, length: modelled, covers_until: 0, clearing: Some(how) };
        self.submit(request, responder, || self.zero(partition, offset, length).map(|()| None))
    }

    /// Submits a request to the model, and then runs `work` on the images. The time that `work` takes is a part of the
    /// model's time, not added to it. If `work` takes longer than the model's time, the answer is late.
    fn submit<A: Responder>(
        &self,
        request: Request,
        responder: A,
        work: impl FnOnce() -> io::Result<Option<Vec<u8>>>,
    ) -> Option<PendingReply<A>> {
        if self.power_is_off.load(Acquire) {
            responder.refuse(libc::EIO);
            return None;
        }
        let target = &self.partitions[request.partition];
        target.tally.start_request();
        let start = target.start + request.offset;
        let (arrival, plan) = self.pace.plan(|| self.clock.now(), request.op, start, request.length);
        let bytes = match self.with_host_cpu(plan.host_cpu_ns, work) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.pace.record_answer(&plan, arrival, request.op, request.length);
                target.tally.drop_request();
                responder.refuse(errno(&error));
                return None;
            }
        };
        let pending = PendingReply { responder, request, arrival, plan, bytes };
        if plan.due > arrival {
            return Some(pending);
        }
        self.send_reply(pending, 0);
        None
    }

    /// Runs `work`, and then spins until the host CPU time of the modelled driver has passed. This time is a part of
    /// the model's time. The CPU time is not spent when the answer leaves, because that would block the only thread
    /// that sends answers.
    fn with_host_cpu<T>(&self, host_cpu_ns: u64, work: impl FnOnce() -> T) -> T {
        if host_cpu_ns == 0 {
            return work();
        }
        let until = self.clock.now() + host_cpu_ns;
        let done = work();
        self.clock.spin_until(|| until);
        done
    }

    /// Sends a delayed answer. `ahead` is how many nanoseconds before its due time it is sent.
    pub fn send_reply<A: Responder>(&self, pending: PendingReply<A>, ahead: u64) {
        let PendingReply { responder, request, arrival, plan, bytes } = pending;
        let Request { partition, op, offset, length, covers_until, clearing } = request;
        let tally = &self.partitions[partition].tally;
        // The clock is read first. A later request could otherwise seem to arrive before this answer left.
        let leaves = self.clock.now();
        self.pace.record_answer(&plan, arrival, op, length);
        if self.power_is_off.load(Acquire) {
            tally.drop_request();
            return responder.refuse(libc::EIO);
        }
        if op == Op::Flush && !self.make_durable(covers_until) {
            tally.drop_request();
            return responder.refuse(libc::EIO);
        }
        let usually_late_ns = self.pace.overhead().late_ns;
        let now = leaves + ahead;
        let late_ns = if plan.modelled { now.saturating_sub(plan.due + usually_late_ns) } else { 0 };
        let beside = plan.path_ns.saturating_sub(usually_late_ns);
        if clearing == Some(Clearing::Discard) {
            tally.drop_request(); // the kernel does not count a discard as a write either
        } else {
            tally.end_request(op, length, now - arrival + beside, late_ns);
        }
        if let (Some(trace_writer), true) = (&self.trace_writer, plan.submitted) {
            let target = self.partitions[partition].start + offset;
            trace_writer.add(plan.reached, op, target, length, plan.trace_completion(leaves));
        }
        self.reply(responder, &request, bytes);
    }

    /// Whether the writes that a flush covers are durable now. The result is false if the power was cut before the
    /// flush completed.
    fn make_durable(&self, covers_until: u64) -> bool {
        let Some(undo) = &self.undo else { return true };
        let mut undo = locked(undo);
        // A power cut takes the same lock while it reverts writes. Therefore a cut either comes after this flush and
        // keeps its writes, or comes before it and makes it fail.
        let powered = !self.power_is_off.load(Acquire);
        if powered {
            undo.drop_flushed(covers_until);
        }
        powered
    }

    fn reply<A: Responder>(&self, responder: A, request: &Request, bytes: Option<Vec<u8>>) {
        let Request { partition, op, offset, length, .. } = *request;
        match (op, bytes) {
            (Op::Write, _) if request.clearing.is_some() => responder.confirm(),
            (Op::Write, _) => responder.confirm_write(length),
            (Op::Flush, _) => responder.confirm(),
            (Op::Read, Some(bytes)) => responder.send_data(&bytes),
            (Op::Read, None) => {
                let mut responder = Some(responder);
                let tell = |bytes: &[u8]| {
                    if let Some(responder) = responder.take() {
                        responder.send_data(bytes);
                    }
                };
                let outcome = self.partitions[partition].image.read(offset, length as usize, tell);
                if let (Err(error), Some(responder)) = (outcome, responder) {
                    responder.refuse(errno(&error));
                }
            }
        }
    }

    /// Writes to the image. If a power cut must be possible, also logs the old and the new bytes.
    fn store(&self, partition: usize, offset: u64, data: &[u8]) -> io::Result<()> {
        let image = &self.partitions[partition].image;
        let Some(undo) = &self.undo else { return image.write(offset, data) };
        // The write and its entry in the log are under one lock. The log therefore contains the writes to a range in
        // the order in which they were done.
        let mut undo = locked(undo);
        if self.power_is_off.load(Acquire) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let before = image.read(offset, data.len(), <[u8]>::to_vec)?;
        image.write(offset, data)?;
        undo.add(partition, [(offset, before, data.to_vec())]);
        Ok(())
    }

    /// Zeroes a range of the image. If a power cut must be possible, also logs the bytes that were not zero.
    fn zero(&self, partition: usize, offset: u64, length: u64) -> io::Result<()> {
        let image = &self.partitions[partition].image;
        let Some(undo) = &self.undo else { return image.discard(offset, length) };
        let mut undo = locked(undo);
        if self.power_is_off.load(Acquire) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let (mut pieces, end) = (Vec::new(), offset + length);
        for at in (offset..end).step_by(CLEAR_CHUNK as usize) {
            let size = CLEAR_CHUNK.min(end - at) as usize;
            let kept = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0).then(|| bytes.to_vec());
            if let Some(before) = image.read(at, size, kept)? {
                pieces.push((at, before, vec![0; size]));
            }
        }
        image.discard(offset, length)?;
        undo.add(partition, pieces);
        Ok(())
    }

    /// Limits the length of a request to the end of the partition.
    fn clamp_length(&self, partition: usize, offset: u64, length: u32) -> u32 {
        let left = self.partitions[partition].length.saturating_sub(offset);
        u32::try_from(left).unwrap_or(u32::MAX).min(length)
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn locked(undo: &Mutex<UndoLog>) -> MutexGuard<'_, UndoLog> {
    undo.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
