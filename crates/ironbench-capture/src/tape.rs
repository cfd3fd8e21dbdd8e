//! Writes the tape of a replay from the statements of a capture.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow::array::{Array, AsArray, BooleanArray, ListArray, PrimitiveArray, RecordBatch, StringArray};
use arrow::datatypes::{ArrowPrimitiveType, Int32Type, Int64Type};
pub use arrow::ffi_stream::RecordBatchStreamReader;
use ironbench_core::drive::capture::keys::{Replaced, Returned, StatementKeys};
use ironbench_core::drive::capture::tape::{Statement, flag};
use ironbench_core::{Error, Result};
use serde::Serialize;

/// Size of the buffer of the file.
const BUFFER: usize = 1 << 20;

/// The range of the tape that contains one client's statements.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    pub start: u64,
    pub end: u64,
}

/// Writes the statements to a tape. The rows must be ordered by client. The rows of each client must be in the order in
/// which the client sends them. Returns the range of each client.
///
/// The columns are `client`, `opens`, `begins`, `ends`, `pipelined`, `failed`, `discards`, `at_us` (since the start),
/// `duration_us`, `kind`, `place`, `prepared`, `last_use`, `text`, `parameters` and `types`. The columns `key_slot`, `key_result`
/// and `key_rows` describe returned keys that later statements contain. These columns are NULL if there are none. The columns
/// `key_places`, `key_lengths` and `key_slots` describe the values that a replay replaces.
///
/// # Errors
/// Input: the columns differ from these. Failure: the file cannot be written, or a statement is too long.
pub fn write(rows: RecordBatchStreamReader, path: &Path) -> Result<Vec<Part>> {
    let failed = |error: std::io::Error| Error::failure(path.display().to_string(), error.to_string());
    let file = File::create(path).map_err(failed)?;
    let mut writer = Writer::new(BufWriter::with_capacity(BUFFER, file));
    for batch in rows {
        let batch = batch.map_err(|error| Error::failure("capture", error.to_string()))?;
        writer.add(&batch).map_err(|trouble| match trouble {
            Trouble::Column(name) => Error::input("capture", format!("column {name} is missing or has another type")),
            Trouble::File(error) => failed(error),
        })?;
    }
    writer.out.flush().map_err(failed)?;
    Ok(writer.parts)
}

enum Trouble {
    Column(&'static str),
    File(std::io::Error),
}

struct Writer<W> {
    out: W,
    written: u64,
    parts: Vec<Part>,
    /// End of the client's last statement, in µs since the start of the capture.
    ended_us: i64,
    /// Time by which consecutive statements of the client overlap. Times are recorded in ms, so some pauses seem to be
    /// negative. The next pauses are shortened by this time.
    owed_us: i64,
    values: Vec<u8>,
    keys: Vec<u8>,
}

impl<W: Write> Writer<W> {
    fn new(out: W) -> Self {
        Self { out, written: 0, parts: Vec::new(), ended_us: 0, owed_us: 0, values: Vec::new(), keys: Vec::new() }
    }

    fn add(&mut self, batch: &RecordBatch) -> std::result::Result<(), Trouble> {
        let clients = numbers::<Int32Type>(batch, "client")?;
        let flags = [
            (flags(batch, "opens")?, flag::OPENS),
            (flags(batch, "begins")?, flag::BEGINS),
            (flags(batch, "ends")?, flag::ENDS),
            (flags(batch, "pipelined")?, flag::PIPELINED),
            (flags(batch, "failed")?, flag::FAILED),
            (flags(batch, "discards")?, flag::DISCARDS),
            (flags(batch, "last_use")?, flag::LAST_USE),
        ];
        let times = numbers::<Int64Type>(batch, "at_us")?;
        let durations = numbers::<Int64Type>(batch, "duration_us")?;
        let (kinds, templates) = (numbers::<Int32Type>(batch, "kind")?, numbers::<Int32Type>(batch, "place")?);
        let (names, texts, types) = (texts(batch, "prepared")?, texts(batch, "text")?, texts(batch, "types")?);
        let parameters = column(batch, "parameters")?.as_list_opt::<i32>().ok_or(Trouble::Column("parameters"))?;
        let (slots, results) = (numbers::<Int32Type>(batch, "key_slot")?, numbers::<Int32Type>(batch, "key_result")?);
        let rows = numbers::<Int32Type>(batch, "key_rows")?;
        let replaced = ["key_places", "key_lengths", "key_slots"];
        let replaced = [lists(batch, replaced[0])?, lists(batch, replaced[1])?, lists(batch, replaced[2])?];
        for row in 0..batch.num_rows() {
            self.turn_to(clients.value(row) as usize);
            let extended = names.is_valid(row);
            let count = if extended { self.bind(parameters, row)? } else { 0 };
            let mut set = if extended { flag::EXTENDED } else { 0 };
            for (values, flag) in &flags {
                set |= if values.value(row) { *flag } else { 0 };
            }
            let typed = extended && types.is_valid(row) && types.value(row).len() == usize::from(count);
            set |= if typed { flag::TYPED } else { 0 };
            self.keys.clear();
            if slots.is_valid(row) || replaced[0].is_valid(row) {
                let returned = slots.is_valid(row).then(|| Returned {
                    slot: slots.value(row) as u32,
                    column: results.value(row) as u16,
                    rows: rows.value(row) as u32,
                });
                StatementKeys::write(&mut self.keys, returned, replaced_of(&replaced, row).into_iter());
                set |= flag::KEYS;
            }
            let at_us = times.value(row).max(0);
            let duration_us = if durations.is_valid(row) { durations.value(row).max(0) } else { 0 };
            let pause_us = self.pause_before(at_us, at_us + duration_us);
            let statement = Statement {
                flags: set,
                at_ns: at_us as u64 * 1000,
                pause_ns: pause_us as u64 * 1000,
                kind: kinds.value(row) as u32,
                template: templates.value(row) as u32,
                name: if extended { names.value(row).as_bytes() } else { b"" },
                text: texts.value(row).as_bytes(),
                parameters: count,
                types: if typed { types.value(row).as_bytes() } else { b"" },
                values: if extended { &self.values } else { b"" },
                keys: &self.keys,
            };
            statement.write(&mut self.out).map_err(Trouble::File)?;
            self.written += statement.length();
            if let Some(part) = self.parts.last_mut() {
                part.end = self.written;
            }
        }
        Ok(())
    }

    fn turn_to(&mut self, client: usize) {
        while self.parts.len() <= client {
            self.parts.push(Part { start: self.written, end: self.written });
            (self.ended_us, self.owed_us) = (0, 0);
        }
    }

    /// Returns the pause before a statement that lasted from `at_us` to `ended_us`.
    fn pause_before(&mut self, at_us: i64, ended_us: i64) -> i64 {
        let pause = at_us - self.ended_us - self.owed_us;
        self.owed_us = (-pause).max(0);
        self.ended_us = ended_us;
        pause.max(0)
    }

    /// Encodes the parameters as a Bind message contains them. Returns their number.
    fn bind(&mut self, lists: &ListArray, row: usize) -> std::result::Result<u16, Trouble> {
        self.values.clear();
        if lists.is_null(row) {
            return Ok(0);
        }
        let list = lists.value(row);
        let list = list.as_string_opt::<i32>().ok_or(Trouble::Column("parameters"))?;
        for value in list {
            let length = value.map_or(-1, |value| value.len() as i32);
            self.values.extend_from_slice(&length.to_be_bytes());
            self.values.extend_from_slice(value.unwrap_or_default().as_bytes());
        }
        u16::try_from(list.len())
            .map_err(|_| Trouble::File(std::io::Error::other("a statement has too many parameters")))
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &'static str) -> std::result::Result<&'a dyn Array, Trouble> {
    batch.column_by_name(name).map(|column| &**column).ok_or(Trouble::Column(name))
}

fn numbers<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> std::result::Result<&'a PrimitiveArray<T>, Trouble> {
    column(batch, name)?.as_primitive_opt::<T>().ok_or(Trouble::Column(name))
}

fn flags<'a>(batch: &'a RecordBatch, name: &'static str) -> std::result::Result<&'a BooleanArray, Trouble> {
    column(batch, name)?.as_boolean_opt().ok_or(Trouble::Column(name))
}

fn lists<'a>(batch: &'a RecordBatch, name: &'static str) -> std::result::Result<&'a ListArray, Trouble> {
    column(batch, name)?.as_list_opt::<i32>().ok_or(Trouble::Column(name))
}

/// Returns the values that a replay replaces in a statement. `lists` contains the offsets, lengths and slots of these
/// values.
fn replaced_of(lists: &[&ListArray; 3], row: usize) -> Vec<Replaced> {
    let of = |list: &ListArray| -> Vec<u32> {
        let values = list.is_valid(row).then(|| list.value(row));
        let values = values.as_ref().and_then(|values| values.as_primitive_opt::<Int32Type>());
        values.map_or_else(Vec::new, |values| values.values().iter().map(|value| *value as u32).collect())
    };
    let [positions, lengths, slots] = lists.map(of);
    let each = positions.into_iter().zip(lengths).zip(slots);
    each.map(|((position, length), slot)| Replaced { position, length, slot }).collect()
}

fn texts<'a>(batch: &'a RecordBatch, name: &'static str) -> std::result::Result<&'a StringArray, Trouble> {
    column(batch, name)?.as_string_opt::<i32>().ok_or(Trouble::Column(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int32Builder, ListBuilder, StringBuilder};
    use std::sync::Arc;

    #[test]
    fn each_client_has_a_part_of_the_tape_and_pauses_add_up() {
        let mut parameters = ListBuilder::new(StringBuilder::new());
        parameters.append_null();
        parameters.append_value([Some("x"), None]);
        parameters.append_value([] as [Option<&str>; 0]);
        let lists = |value: i32| {
            let mut list = ListBuilder::new(Int32Builder::new());
            list.append_null();
            list.append_value([Some(value), Some(value + 1)]);
            list.append_null();
            Arc::new(list.finish()) as ArrayRef
        };
        let integers =
            |values: [Option<i32>; 3]| Arc::new(PrimitiveArray::<Int32Type>::from(values.to_vec())) as ArrayRef;
        let all = |value: bool| Arc::new(BooleanArray::from(vec![value; 3])) as ArrayRef;
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("client", Arc::new(PrimitiveArray::<Int32Type>::from(vec![0, 0, 2]))),
            ("opens", all(false)),
            ("begins", all(true)),
            ("ends", all(true)),
            ("pipelined", all(false)),
            ("failed", all(false)),
            ("discards", all(false)),
            ("last_use", all(false)),
            ("at_us", Arc::new(PrimitiveArray::<Int64Type>::from(vec![1000, 1500, 700]))),
            ("duration_us", Arc::new(PrimitiveArray::<Int64Type>::from(vec![Some(600), Some(1), None]))),
            ("kind", Arc::new(PrimitiveArray::<Int32Type>::from(vec![0, 1, 0]))),
            ("place", Arc::new(PrimitiveArray::<Int32Type>::from(vec![0, 2, 0]))),
            ("prepared", Arc::new(StringArray::from(vec![None, Some("s"), Some("")]))),
            ("text", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
            ("parameters", Arc::new(parameters.finish())),
            ("types", Arc::new(StringArray::from(vec![None, Some("is"), Some("s")]))),
            ("key_slot", integers([Some(5), None, None])),
            ("key_result", integers([Some(1), None, None])),
            ("key_rows", integers([Some(2), None, None])),
            ("key_places", lists(1)),
            ("key_lengths", lists(10)),
            ("key_slots", lists(100)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = Writer::new(Vec::new());
        assert!(writer.add(&batch).is_ok());
        let (parts, tape) = (writer.parts, writer.out);
        assert_eq!(parts.len(), 3);
        assert_eq!((parts[0].start, parts[1].start, parts[2].end), (0, parts[1].end, tape.len() as u64));
        let mut rest = &tape[..];
        let read: Vec<Statement> = std::iter::from_fn(|| Statement::read(&mut rest)).collect();
        let pauses: Vec<u64> = read.iter().map(|statement| statement.pause_ns).collect();
        assert_eq!(pauses, [1_000_000, 0, 700_000], "the second overlaps with the first by 100 µs");
        assert_eq!((read[0].has(flag::EXTENDED), read[0].values), (false, &b""[..]));
        assert_eq!((read[1].parameters, read[1].values), (2, &b"\0\0\0\x01x\xff\xff\xff\xff"[..]));
        assert_eq!([read[0].types, read[1].types, read[2].types], [&b""[..], b"is", b""], "a wrong number is ignored");
        assert_eq!((read[2].name, read[2].parameters, read[1].template), (&b""[..], 0, 2));
        let keys: Vec<_> = read.iter().map(|one| (one.has(flag::KEYS), StatementKeys::read(one.keys))).collect();
        assert_eq!(keys[0].1.unwrap().returned, Some(Returned { slot: 5, column: 1, rows: 2 }));
        let replaced = |position, length, slot| Replaced { position, length, slot };
        let of_second: Vec<_> = keys[1].1.unwrap().replaced().collect();
        assert_eq!(of_second, [replaced(1, 10, 100), replaced(2, 11, 101)]);
        assert_eq!(keys[2], (false, None));
        let missing = RecordBatch::try_from_iter([("client", batch.column(0).clone())]).unwrap();
        assert!(matches!(Writer::new(Vec::new()).add(&missing), Err(Trouble::Column("opens"))));
    }

    #[test]
    fn a_negative_pause_shortens_the_next_one() {
        let mut writer = Writer::new(Vec::new());
        let pauses = [(0, 900), (800, 1700), (2000, 2100)].map(|(at, ended)| writer.pause_before(at, ended));
        assert_eq!(pauses, [0, 0, 200]);
    }
}
