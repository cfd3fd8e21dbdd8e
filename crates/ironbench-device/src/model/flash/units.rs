//! What reads and programs side by side inside a flash device.
//!
//! Reads find their page where it was written; programs go to the units in turn. A read waits for the reads before it and
//! for the program that is under way, and goes before programs that have not begun. A unit that turns from one to the other
//! loses some time.

#[derive(Debug, Clone)]
pub struct Units {
    units: Vec<Unit>,
    next: usize,
    /// Bytes that may wait to be programmed, per unit.
    room: u64,
    /// What a unit loses when it turns from reading to programming or back.
    switch: u64,
}

#[derive(Debug, Clone, Default)]
struct Unit {
    /// When the reads so far are done.
    read: u64,
    /// When the programs so far are done.
    programmed: u64,
    /// How long the latest program takes, and its bytes.
    program: u64,
    bytes: u64,
    /// Whether what it was given last was a program.
    programs: bool,
}

impl Unit {
    /// What it loses on the way to this work.
    #[inline]
    fn turned(&mut self, programs: bool, switch: u64) -> u64 {
        let turns = self.programs != programs;
        self.programs = programs;
        if turns { switch } else { 0 }
    }

    /// When at most `room` bytes are left to program, if all of them take as long as the latest.
    #[inline]
    fn left_with(&self, room: u64) -> u64 {
        let takes = room as f64 / self.bytes.max(1) as f64 * self.program as f64;
        self.programmed.saturating_sub(takes as u64)
    }
}

pub struct Program {
    /// When there was room for it to wait.
    pub accepted: u64,
    pub done: u64,
}

impl Units {
    pub fn new(count: usize, room: u64, switch: u64) -> Self {
        Self { units: vec![Unit::default(); count], next: 0, room, switch }
    }

    /// When a read of the page with this number, which takes so long, is done.
    #[inline]
    pub fn read(&mut self, now: u64, page: u64, takes: u64) -> u64 {
        let index = (page % self.units.len() as u64) as usize;
        let unit = &mut self.units[index];
        let takes = takes + unit.turned(false, self.switch);
        let mut begin = now.max(unit.read);
        if unit.programmed > begin && unit.program > 0 {
            begin += (unit.programmed - begin) % unit.program;
            unit.programmed += takes;
        }
        unit.read = begin + takes;
        unit.read
    }

    /// A program of so many bytes that arrives at `now` and takes so long.
    #[inline]
    pub fn program(&mut self, now: u64, takes: u64, bytes: u64) -> Program {
        let count = self.units.len();
        let unit = &mut self.units[self.next];
        self.next = (self.next + 1) % count;
        let takes = takes + unit.turned(true, self.switch);
        // Behind reads that are under way, and behind programs.
        unit.programmed = unit.programmed.max(now).max(unit.read) + takes;
        (unit.program, unit.bytes) = (takes, bytes);
        Program { accepted: now.max(unit.left_with(self.room)), done: unit.programmed }
    }

    /// When no unit has more than `room` bytes left to program, of what it was given so far.
    pub fn written_back(&self, room: u64) -> u64 {
        self.units.iter().map(|unit| unit.left_with(room)).max().unwrap_or(0)
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
