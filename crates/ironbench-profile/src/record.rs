//! Parses the records of a ring buffer (perf_event_open(2), "The layout of the records").
//!
//! All events have the sample type IDENTIFIER, TID, TIME, CALLCHAIN. These fields therefore have constant positions,
//! counted in 8-byte words. Samples of tracepoints also have RAW, and samples whose stack is unwound here also have
//! REGS_USER and STACK_USER.

use perf_event_open_sys::bindings;

use crate::unwind::REGISTERS;

/// A sample of a stack.
#[derive(Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// ID of the event.
    pub event: u64,
    pub pid: i32,
    pub tid: i32,
    /// Time on CLOCK_MONOTONIC, in ns.
    pub time: u64,
    /// Instruction addresses from the innermost to the outermost frame. Markers separate the kernel's part from the
    /// user's part.
    pub chain: &'a [u64],
    /// The fields of the tracepoint, followed by registers and stack. Each of these parts is missing if the event does
    /// not have it.
    pub rest: &'a [u64],
}

/// The user's registers and stack when a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserState<'a> {
    /// Registers in the order of `unwind::REGISTERS`.
    pub registers: &'a [u64; REGISTERS.len()],
    /// Contents of the stack, from the stack pointer on.
    pub stack: &'a [u64],
}

impl<'a> UserState<'a> {
    /// Parses the registers and the stack, which are the last part of a sample. Returns None for a kernel thread or a
    /// 32-bit program.
    pub fn parse(words: &'a [u64]) -> Option<Self> {
        let (&abi, words) = words.split_first()?;
        if abi != u64::from(bindings::PERF_SAMPLE_REGS_ABI_64) {
            return None;
        }
        let (registers, words) = words.split_first_chunk()?;
        let (&reserved, words) = words.split_first()?;
        let (stack, copied) = words.split_at_checked(usize::try_from(reserved).ok()? / 8)?;
        let copied = usize::try_from(*copied.first()?).ok()? / 8;
        Some(Self { registers, stack: stack.get(..copied)? })
    }
}

impl<'a> Sample<'a> {
    /// Returns the fields of the tracepoint, and the words after them.
    pub fn tracepoint(&self) -> (&'a [u8], &'a [u64]) {
        let bytes = bytes(self.rest);
        let Some((size, data)) = bytes.split_first_chunk::<4>() else { return (&[], &[]) };
        let size = u32::from_ne_bytes(*size) as usize;
        (data.get(..size).unwrap_or(data), self.rest.get((4 + size).div_ceil(8)..).unwrap_or_default())
    }
}

/// A new executable mapping.
#[derive(Debug, PartialEq, Eq)]
pub struct Map<'a> {
    pub pid: i32,
    pub start: u64,
    pub length: u64,
    /// Offset of the mapping in the file.
    pub offset: u64,
    pub path: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Record<'a> {
    Sample(Sample<'a>),
    Map(Map<'a>),
    /// A thread got a name. `exec` says whether the reason is that its process started another program.
    Comm {
        pid: i32,
        tid: i32,
        name: &'a str,
        exec: bool,
    },
    /// The process `parent_pid` created a thread. If `pid` is different, the thread is the first one of the new process
    /// `pid`.
    Fork {
        pid: i32,
        tid: i32,
        parent_pid: i32,
        parent_tid: i32,
    },
    Exit {
        pid: i32,
        tid: i32,
    },
    /// A CPU switched to this thread.
    SwitchIn {
        tid: i32,
        time: u64,
    },
    /// Records were lost, because the ring buffer was full. `event` is an event that shares the ring buffer.
    Lost {
        event: u64,
        records: u64,
    },
    Other,
}

/// Records as 8-byte words. The index can be sorted by time.
#[derive(Default)]
pub struct Batch {
    pub words: Vec<u64>,
    /// Time and position of each record.
    pub index: Vec<(u64, usize)>,
}

impl Batch {
    /// Adds the records from word `from` on to the index.
    pub fn index_from(&mut self, from: usize) {
        let mut at = from;
        while let Some(&header) = self.words.get(at) {
            let length = usize::from((header >> 48) as u16) / 8;
            let Some(record) = self.words.get(at..at + length).filter(|record| record.len() > 3) else { break };
            let is_sample = header as u32 == bindings::PERF_RECORD_SAMPLE;
            self.index.push((if is_sample { record[3] } else { record[length - 2] }, at));
            at += length;
        }
    }

    pub fn record(&self, at: usize) -> Record<'_> {
        let length = usize::from((self.words[at] >> 48) as u16) / 8;
        parse(&self.words[at..at + length]).unwrap_or(Record::Other)
    }

    /// Moves all records at or after `time` to another batch, whose previous records are discarded.
    pub fn split_off(&mut self, time: u64, later: &mut Self) {
        later.clear();
        let first = self.index.partition_point(|&(at, _)| at < time);
        for &(time, at) in &self.index[first..] {
            let length = usize::from((self.words[at] >> 48) as u16) / 8;
            later.index.push((time, later.words.len()));
            later.words.extend_from_slice(&self.words[at..at + length]);
        }
        self.index.truncate(first);
    }

    /// Removes all records. The memory is used again.
    pub fn clear(&mut self) {
        self.words.clear();
        self.index.clear();
    }
}

fn parse(words: &[u64]) -> Option<Record<'_>> {
    let header = *words.first()?;
    let misc = u32::from((header >> 32) as u16);
    let body = words.get(1..)?;
    // Records that are not samples end with the fields TID, TIME and IDENTIFIER.
    let fields = || body.get(..body.len().checked_sub(3)?);
    Some(match header as u32 {
        bindings::PERF_RECORD_SAMPLE => {
            let &[event, thread, time, count, ref rest @ ..] = body else { return None };
            let (chain, rest) = rest.split_at_checked(usize::try_from(count).ok()?)?;
            let (pid, tid) = halves(thread);
            Record::Sample(Sample { event, pid, tid, time, chain, rest })
        }
        bindings::PERF_RECORD_MMAP2 => {
            let &[thread, start, length, offset, _, _, _, _, ref path @ ..] = fields()? else { return None };
            Record::Map(Map { pid: halves(thread).0, start, length, offset, path: text(path) })
        }
        bindings::PERF_RECORD_COMM => {
            let &[thread, ref name @ ..] = fields()? else { return None };
            let (pid, tid) = halves(thread);
            Record::Comm { pid, tid, name: text(name), exec: misc & bindings::PERF_RECORD_MISC_COMM_EXEC != 0 }
        }
        kind @ (bindings::PERF_RECORD_FORK | bindings::PERF_RECORD_EXIT) => {
            let &[pids, tids, ..] = fields()? else { return None };
            let ((pid, parent_pid), (tid, parent_tid)) = (halves(pids), halves(tids));
            if kind == bindings::PERF_RECORD_EXIT {
                Record::Exit { pid, tid }
            } else {
                Record::Fork { pid, tid, parent_pid, parent_tid }
            }
        }
        bindings::PERF_RECORD_SWITCH_CPU_WIDE if misc & bindings::PERF_RECORD_MISC_SWITCH_OUT == 0 => {
            let &[.., thread, time, _] = body else { return None };
            Record::SwitchIn { tid: halves(thread).1, time }
        }
        bindings::PERF_RECORD_LOST => {
            let &[event, records, ..] = fields()? else { return None };
            Record::Lost { event, records }
        }
        _ => Record::Other,
    })
}

fn halves(word: u64) -> (i32, i32) {
    (word as u32 as i32, (word >> 32) as u32 as i32)
}

fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the result covers the same memory as `words`, and any bytes are valid.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Parses a text that ends with a zero byte. If the text is not UTF-8, it is cut at the first invalid byte.
fn text(words: &[u64]) -> &str {
    let bytes = bytes(words);
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
