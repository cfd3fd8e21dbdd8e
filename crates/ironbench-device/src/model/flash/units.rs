//! The parallel units of a flash device, which read and program.
//!
//! A read uses the unit in which its page was written. Programs use the units in rotation. A read waits for the reads
//! before it and for a program in progress, and precedes programs that have not started. Switching between reading and
//! programming costs a unit some time.

/// The units of a device.
#[derive(Debug, Clone)]
pub struct Units {
    units: Vec<Unit>,
    next: usize,
    /// Maximum number of bytes per unit that wait to be programmed.
    room: u64,
    /// Time that a unit needs to switch between reading and programming.
    switch: u64,
}

/// The state of one unit.
#[derive(Debug, Clone, Default)]
struct Unit {
    /// Time at which all reads so far will be complete.
    read: u64,
    /// Time at which all programs so far will be complete.
    programmed: u64,
    /// Duration of the latest program.
    program: u64,
    bytes: u64,
    /// Whether the unit's last operation programmed a page.
    is_programming: bool,
}

impl Unit {
    /// Switches the unit to reading or programming. Returns the time that this takes.
    #[inline]
    fn switch_mode(&mut self, is_programming: bool, switch: u64) -> u64 {
        let turns = self.is_programming != is_programming;
        self.is_programming = is_programming;
        if turns { switch } else { 0 }
    }

    /// Returns when at most `room` bytes remain to be programmed. The speed is assumed to be that of the latest
    /// program.
    #[inline]
    fn drained_to(&self, room: u64) -> u64 {
        let takes = room as f64 / self.bytes.max(1) as f64 * self.program as f64;
        self.programmed.saturating_sub(takes as u64)
    }
}

/// The times at which data are accepted and programmed.
pub struct Program {
    /// Time at which the buffer has room for the data.
    pub accepted: u64,
    pub done: u64,
}

impl Units {
    pub fn new(count: usize, room: u64, switch: u64) -> Self {
        Self { units: vec![Unit::default(); count], next: 0, room, switch }
    }

    /// Returns when a read of this page completes, if the read itself takes `takes`.
    #[inline]
    pub fn read(&mut self, now: u64, page: u64, takes: u64) -> u64 {
        let index = (page % self.units.len() as u64) as usize;
        let unit = &mut self.units[index];
        let takes = takes + unit.switch_mode(false, self.switch);
        let mut begin = now.max(unit.read);
        if unit.programmed > begin && unit.program > 0 {
            begin += (unit.programmed - begin) % unit.program;
            unit.programmed += takes;
        }
        unit.read = begin + takes;
        unit.read
    }

    /// Programs `bytes` that arrive at `now`. Programming takes `takes`.
    #[inline]
    pub fn program(&mut self, now: u64, takes: u64, bytes: u64) -> Program {
        let count = self.units.len();
        let unit = &mut self.units[self.next];
        self.next = (self.next + 1) % count;
        let takes = takes + unit.switch_mode(true, self.switch);
        // The program starts after all reads so far and all earlier programs.
        unit.programmed = unit.programmed.max(now).max(unit.read) + takes;
        (unit.program, unit.bytes) = (takes, bytes);
        Program { accepted: now.max(unit.drained_to(self.room)), done: unit.programmed }
    }

    /// Returns when no unit has more than `room` bytes left to program.
    pub fn written_back(&self, room: u64) -> u64 {
        self.units.iter().map(|unit| unit.drained_to(room)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_loses_time_when_it_turns_and_only_then() {
        let mut units = Units::new(1, 0, 5);
        assert_eq!(units.read(0, 0, 10), 10);
        assert_eq!(units.read(10, 0, 10), 20);
        assert_eq!(units.program(20, 100, 4096).done, 125);
        assert_eq!(units.program(125, 100, 4096).done, 225);
        assert_eq!(units.read(225, 0, 10), 240);
    }

    #[test]
    fn a_read_waits_for_the_program_under_way_and_goes_before_the_next() {
        let mut units = Units::new(1, 1 << 20, 0);
        for _ in 0..4 {
            units.program(0, 10, 4096);
        }
        assert_eq!(units.read(5, 0, 1), 11);
    }
}
