//! What reads and programs side by side inside a flash device.
//!
//! Reads find their page where it was written; programs go to the units in turn. A read waits for the reads before it and
//! for the program that is under way, and goes before programs that have not begun.

#[derive(Debug, Clone)]
pub struct Units {
    units: Vec<Unit>,
    next: usize,
    /// Bytes that may wait to be programmed, per unit.
    room: u64,
}

#[derive(Debug, Clone, Default)]
struct Unit {
    /// When the reads so far are done.
    read: u64,
    /// When the programs so far are done.
    programmed: u64,
    /// How long the latest program takes.
    program: u64,
}

pub struct Program {
    /// When there was room for it to wait.
    pub accepted: u64,
    pub done: u64,
}

impl Units {
    pub fn new(count: usize, room: u64) -> Self {
        Self { units: vec![Unit::default(); count], next: 0, room }
    }

    /// When a read of the page with this number, which takes so long, is done.
    #[inline]
    pub fn read(&mut self, now: u64, page: u64, takes: u64) -> u64 {
        let index = (page % self.units.len() as u64) as usize;
        let unit = &mut self.units[index];
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
        // Behind reads that are under way, and behind programs.
        unit.programmed = unit.programmed.max(now).max(unit.read) + takes;
        unit.program = takes;
        let may_wait = (self.room as f64 / bytes as f64 * takes as f64) as u64;
        Program { accepted: now.max(unit.programmed.saturating_sub(may_wait)), done: unit.programmed }
    }
}
