//! Flash behind a controller. The device has units that read and program in parallel, an interface, and a buffer.

mod rating;
mod units;

pub use rating::checked;

use self::rating::{BLOCK, amplification, read_times};
use self::units::{Program, Units};
use super::fifo_server::{FifoServer, PerByte, nanoseconds};
use crate::device::{Device, Op};
use crate::parameters::FlashParameters;

/// Number of concurrent sequential write streams that are recognised, enough for a database's writers and its log.
const STREAMS: usize = 8;

/// A flash device.
#[derive(Debug, Clone)]
pub struct Flash {
    capacity: u64,
    page: u64,
    units: Units,
    /// Number of bytes per unit that may wait in fast (SLC) flash. These bytes survive a power cut.
    slc_room: u64,
    read_link: FifoServer,
    write_link: FifoServer,
    duplex: bool,
    read_byte: PerByte,
    write_byte: PerByte,
    /// The controller, which serves one command at a time. This field is used for devices on which the controller is
    /// the bottleneck.
    commands: FifoServer,
    read_command: u64,
    write_command: u64,
    /// The part of a read's latency that is not spent in the controller or in flash.
    read_rest: u64,
    write_rest: u64,
    flush: FifoServer,
    flush_latency: u64,
    host_cpu: u64,
    cached: bool,
    protected: bool,
    /// Time in nanoseconds that a unit takes for a random read of a 4 KiB block. `byte_read` is the time for each byte
    /// of a larger read.
    block_read: f64,
    byte_read: f64,
    /// Time in nanoseconds that a unit takes to program a byte of a sequential write. For random writes, it is
    /// multiplied by `amplified`.
    byte_program: f64,
    amplified: f64,
    streams: [u64; STREAMS],
    oldest: usize,
    latest: u64,
}

/// Properties of the device's use on which its speed depends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    pub fill: f64,
    /// Fraction of the data's size that compression could save, 0 to 1.
    pub compressible: f64,
}

impl Flash {
    /// Creates a device with `capacity`. The fast (SLC) flash is scaled with the capacity.
    pub fn new(parameters: &FlashParameters, capacity: u64, usage: Usage) -> Self {
        let count = f64::from(parameters.units);
        let shrunk = if parameters.compresses { 1.0 - usage.compressible } else { 1.0 };
        let times = read_times(parameters);
        let write_rate = write_rate_for(parameters, shrunk);
        // The controller is the bottleneck of writes only if writes one after the other do not exceed the rated number
        // per second. Otherwise flash is the bottleneck.
        let command =
            if 1.0 / parameters.write_iops <= parameters.write_latency { 1.0 / parameters.write_iops } else { 0.0 };
        let rated = (parameters.sustained_write_rate / (parameters.sustained_write_iops * BLOCK)).max(1.0);
        let aged = amplification(usage.fill, parameters.spare) / amplification(parameters.rated_fill, parameters.spare);
        // The time is above 0, because even perfectly compressible data cannot be stored without writing anything.
        let byte_program = (count / parameters.sustained_write_rate * shrunk).max(1e-12);
        let page = (parameters.page as u64).max(512);
        let room = parameters.buffer + parameters.quick_flash * (capacity as f64 / parameters.capacity).min(1.0);
        Self {
            capacity,
            page,
            units: Units::new(parameters.units as usize, (room / count) as u64, nanoseconds(parameters.switch)),
            slc_room: ((room - parameters.buffer) / count) as u64,
            read_link: FifoServer::default(),
            write_link: FifoServer::default(),
            duplex: parameters.duplex,
            read_byte: PerByte::from_rate(parameters.read_rate),
            write_byte: PerByte::from_rate(write_rate),
            commands: FifoServer::default(),
            read_command: nanoseconds(times.command),
            write_command: nanoseconds(command),
            read_rest: nanoseconds(parameters.read_latency - times.occupancy - times.command),
            write_rest: nanoseconds(parameters.write_latency - command.max(BLOCK / write_rate)),
            flush: FifoServer::default(),
            flush_latency: nanoseconds(parameters.flush_latency),
            host_cpu: nanoseconds(parameters.host_cpu),
            cached: parameters.write_cache,
            protected: parameters.protected,
            block_read: times.occupancy * 1e9,
            byte_read: count / parameters.read_rate * 1e9 * shrunk,
            byte_program: byte_program * 1e9,
            amplified: (rated * aged).max(1.0),
            streams: [u64::MAX; STREAMS],
            oldest: 0,
            latest: 0,
        }
    }

    fn read(&mut self, now: u64, offset: u64, length: u32) -> u64 {
        let link = if self.duplex { &mut self.read_link } else { &mut self.write_link };
        // A read reserves its slot on the interface on arrival, so that the rate is limited. The data are transferred
        // when the units deliver them.
        let carrying = self.read_byte.time_for(length);
        let carried = link.serve(now, carrying);
        let commanded = if self.read_command == 0 { now } else { self.commands.serve(now, self.read_command) };
        let begin = commanded.max(carried - carrying);
        let (mut at, end) = (offset, offset + u64::from(length));
        let mut read = begin;
        while at < end {
            let next = end.min((at / self.page + 1) * self.page);
            let takes = self.unit_read((next - at) as f64);
            read = read.max(self.units.read(begin, at / self.page, takes));
            at = next;
        }
        carried.max(read) + self.read_rest
    }

    /// Returns the time of a read in a unit, interpolated linearly between a random 4 KiB read and a whole page at the
    /// sequential rate.
    fn unit_read(&self, bytes: f64) -> u64 {
        let page = self.page as f64;
        let whole = (self.byte_read * page).max(self.block_read);
        if bytes <= BLOCK || page <= BLOCK {
            return self.block_read.min(whole) as u64;
        }
        (self.block_read + (whole - self.block_read) * (bytes - BLOCK) / (page - BLOCK)) as u64
    }

    fn write(&mut self, now: u64, offset: u64, length: u32) -> u64 {
        let commanded = if self.write_command == 0 { now } else { self.commands.serve(now, self.write_command) };
        let carried = self.write_link.serve(now, self.write_byte.time_for(length)).max(commanded);
        let amplified = if self.is_sequential(offset, length) { 1.0 } else { self.amplified };
        let byte = self.byte_program * amplified;
        let mut left = u64::from(length).max(512);
        // A small random write is programmed as a whole block, and a small sequential write as whole sectors.
        left = left.next_multiple_of(512).max(if amplified > 1.0 { BLOCK as u64 } else { 512 });
        let (mut room, mut programmed) = (carried, carried);
        while left > 0 {
            let bytes = left.min(self.page);
            let takes = (byte * bytes as f64).ceil() as u64;
            let Program { accepted, done } = self.units.program(carried, takes, bytes);
            room = room.max(accepted);
            programmed = programmed.max(done);
            left -= bytes;
        }
        let done = if self.cached { room } else { programmed } + self.write_rest;
        self.latest = self.latest.max(done);
        done
    }

    /// Whether a write continues where an earlier one ended.
    fn is_sequential(&mut self, offset: u64, length: u32) -> bool {
        let end = offset + u64::from(length);
        if let Some(stream) = self.streams.iter_mut().find(|stream| **stream == offset) {
            *stream = end;
            return true;
        }
        self.streams[self.oldest] = end;
        self.oldest = (self.oldest + 1) % STREAMS;
        false
    }
}

/// Returns the write rate. Compressible data are written faster, up to the rate of the interface.
fn write_rate_for(parameters: &FlashParameters, shrunk: f64) -> f64 {
    (parameters.write_rate / shrunk.max(1e-3)).min(parameters.interface_rate)
}

impl Device for Flash {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        match op {
            Op::Read => self.read(now, offset, length),
            Op::Write => self.write(now, offset, length),
            Op::Flush if self.protected || !self.cached => now.max(self.latest) + self.flush_latency,
            // `flush_latency` was measured on an idle device. This latency includes the time to program one small
            // write. With more data in the buffer, a flush takes longer.
            Op::Flush => {
                let written_back = self.units.written_back(self.slc_room);
                self.flush.serve(now.max(self.latest), self.flush_latency).max(written_back)
            }
        }
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn host_cpu(&self, _op: Op, _length: u32) -> u64 {
        self.host_cpu
    }
}
