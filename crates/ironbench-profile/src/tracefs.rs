//! The scheduler's tracepoints. tracefs describes their IDs and fields.

use std::path::PathBuf;
use std::{fs, io};

/// Possible mount points of tracefs: its own directory, or a directory in debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Position of a number in a tracepoint's raw data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    pub fn read(self, raw: &[u8]) -> Option<i64> {
        let bytes = raw.get(self.offset..self.offset + self.size)?;
        Some(match self.size {
            4 => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => i64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }
}

/// Reason why a tracepoint cannot be used.
#[derive(Debug)]
pub enum Missing {
    /// tracefs is not mounted.
    Tracefs,
    /// The kernel has no such tracepoint, or describes it in an unknown format.
    Tracepoint(String),
    /// The user has no permission to read tracefs.
    Permission(io::Error),
}

/// The IDs and fields of the tracepoints from which waits are computed.
#[derive(Clone, Copy, Debug)]
pub struct Scheduler {
    pub switch: u64,
    pub previous_pid: Field,
    pub previous_state: Field,
    pub waking: u64,
    pub woken_pid: Field,
}

impl Scheduler {
    pub fn find() -> Result<Self, Missing> {
        let switch = description("sched_switch")?;
        // Unlike sched_wakeup, sched_waking is always recorded on the CPU of the waker.
        let waking = description("sched_waking")?;
        let described = || {
            Some(Self {
                switch: id(&switch)?,
                previous_pid: field(&switch, "prev_pid")?,
                previous_state: field(&switch, "prev_state")?,
                waking: id(&waking)?,
                woken_pid: field(&waking, "pid")?,
            })
        };
        described().ok_or_else(|| Missing::Tracepoint("sched:sched_switch, sched:sched_waking".to_owned()))
    }
}

/// Returns the contents of a tracepoint's `format` file.
fn description(name: &str) -> Result<String, Missing> {
    let mut missing = Missing::Tracefs;
    for place in PLACES.map(PathBuf::from) {
        match fs::read_to_string(place.join("events/sched").join(name).join("format")) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => missing = Missing::Permission(error),
            Err(_) if place.join("events").exists() => missing = Missing::Tracepoint(format!("sched:{name}")),
            Err(_) => {}
        }
    }
    Err(missing)
}

fn id(format: &str) -> Option<u64> {
    format.lines().find_map(|line| line.strip_prefix("ID: "))?.parse().ok()
}

/// Finds a field in lines such as `field:pid_t prev_pid; offset:24; size:4; signed:1;`.
fn field(format: &str, name: &str) -> Option<Field> {
    let line = format.lines().find(|line| {
        let declaration = line.trim().strip_prefix("field:").and_then(|rest| rest.split(';').next());
        declaration.is_some_and(|declaration| declaration.split(' ').next_back() == Some(name))
    })?;
    let number = |key: &str| line.split(';').find_map(|part| part.trim().strip_prefix(key))?.parse().ok();
    Some(Field { offset: number("offset:")?, size: number("size:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n";

    #[test]
    fn positions_of_fields_are_read_from_the_format() {
        assert_eq!(id(FORMAT), Some(372));
        assert_eq!(field(FORMAT, "prev_pid"), Some(Field { offset: 24, size: 4 }));
        assert_eq!(field(FORMAT, "prev_state"), Some(Field { offset: 32, size: 8 }));
        assert_eq!(field(FORMAT, "pid"), None);
    }

    #[test]
    fn a_field_is_read_from_the_raw_data_if_the_data_contain_it() {
        let raw = [0, 0, 0, 0, 5, 0, 0, 0];
        assert_eq!(Field { offset: 4, size: 4 }.read(&raw), Some(5));
        assert_eq!(Field { offset: 6, size: 4 }.read(&raw), None);
    }
}
