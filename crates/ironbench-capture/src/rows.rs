//! The statements of logs as Arrow record batches. Each row is a statement, and rows are in the order in which
//! statements ended.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use arrow::array::{
    ArrayRef, BooleanBuilder, Int64Builder, ListBuilder, RecordBatch, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
pub use arrow::ffi_stream::FFI_ArrowArrayStream;
use arrow::record_batch::RecordBatchReader;
use ironbench_core::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use crate::analysis::{Analyses, Analysis};
use crate::mask::Mask;
use crate::message::{Value, split_parameters};
use crate::reader::{Format, NEEDS_PREFIX, NextEntry, Reader};
use crate::scan::Dialect;
use crate::secrets::without_password;
use crate::sessions::{Counts, Executed, Handler, Parameters, Sessions};
use crate::statement::Obstacle;
use crate::stderr::Prefix;

/// Maximum number of rows of a batch. The next constant is the maximum number of bytes.
const ROWS: usize = 8192;
const BYTES: usize = 1 << 24;

/// Observations made while reading. The notes of the capture contain them.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub files: usize,
    pub format: &'static str,
    pub entries: u64,
    pub statements: u64,
    pub sessions: u32,
    pub transactions: u64,
    pub errors: u64,
    pub with_duration: u64,
    pub durations_alone: u64,
    pub other_messages: u64,
    pub repeated: u64,
    pub jumps: u64,
    pub unreadable: u64,
    /// Names of the files with unreadable lines.
    pub unreadable_files: Vec<String>,
    pub truncated: u64,
    /// Names of the compressed files whose compressed data are truncated.
    pub truncated_archives: Vec<String>,
    pub unknown_zones: Vec<String>,
    /// Length at which the server seems to have cut parameters, or 0 if no parameter seems to be cut.
    pub cut_at: usize,
}

/// Progress of a running capture, and its summary when it is over.
#[derive(Debug, Default)]
pub struct Progress {
    pub bytes: Arc<AtomicU64>,
    pub statements: AtomicU64,
    pub stop: AtomicBool,
    pub summary: Mutex<Summary>,
}

/// A log file.
#[derive(Debug, Clone, Deserialize)]
pub struct LogFile {
    pub path: PathBuf,
    /// Whether the user named the file itself, rather than its directory.
    pub named: bool,
}

/// The logs to read, and settings for reading them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logs {
    pub files: Vec<LogFile>,
    /// `log_line_prefix` of logs in the format `stderr`.
    pub prefix: Option<String>,
    pub mask: bool,
}

/// The statements of logs. Callers may request several streams, for example to learn the columns first. All streams
/// share one position.
#[derive(Clone)]
pub struct Statements(Arc<Mutex<Rows>>);

impl Statements {
    pub fn stream(&self) -> FFI_ArrowArrayStream {
        FFI_ArrowArrayStream::new(Box::new(self.clone()))
    }
}

/// Opens the files, and orders them by the time of their first entries. A directory may contain other files, or the
/// same log in several formats. Of several formats, only the one with the most information is read.
///
/// # Errors
/// Input: a named file has no known format, or has another format than the other files. Failure: a file cannot be read.
pub fn open(logs: &Logs, progress: Arc<Progress>) -> Result<Statements> {
    let prefix = logs.prefix.as_deref().map(Prefix::read).transpose()?;
    let mut found = Vec::new();
    let mut refused = None;
    for file in &logs.files {
        match examined(file, prefix.as_ref()) {
            Ok(one) => found.push(one),
            Err(error) if file.named || error.kind == Kind::Failure => return Err(error),
            // The last file is probably the newest.
            Err(error) => refused = Some(error),
        }
    }
    let Some(format) = found.iter().map(|one| one.format).min() else {
        let error = Error::input("logs", "no file is a log in the format csvlog or jsonlog").hint(NEEDS_PREFIX);
        return Err(refused.unwrap_or(error));
    };
    if let Some(other) = found.iter().find(|one| one.format != format && one.named) {
        let cause = format!("has another format ({}) than the rest ({})", other.format.name(), format.name());
        let hint = "the server may have written the same statements in both: name the files of one format";
        return Err(Error::input(other.path.display().to_string(), cause).hint(hint));
    }
    found.retain(|one| one.format == format);
    found.sort_by(|a, b| (a.first_us, &a.path).cmp(&(b.first_us, &b.path)));
    let key = |error: std::io::Error| Error::failure("key of the mask", error.to_string());
    let mask = if logs.mask { Some(Mask::new(Dialect::Postgres).map_err(key)?) } else { None };
    let rows = Rows {
        summary: Summary { files: found.len(), format: format.name(), ..Summary::default() },
        files: found.into_iter().map(|one| one.path).collect(),
        prefix,
        current: None,
        sessions: Sessions::default(),
        handler: Builder::new(mask, Dialect::Postgres),
        progress,
        is_over: false,
    };
    Ok(Statements(Arc::new(Mutex::new(rows))))
}

struct Examined {
    path: PathBuf,
    named: bool,
    format: Format,
    first_us: i64,
}

/// Recognises a file's format and reads the time of its first entry. Closes the file afterwards, because there may be
/// more files than a process may keep open.
fn examined(file: &LogFile, prefix: Option<&Prefix>) -> Result<Examined> {
    let mut reader = Reader::open(&file.path, prefix, &Arc::default())?;
    let first_us = loop {
        match reader.next()? {
            NextEntry::Entry(entry, _) => break entry.at_us,
            NextEntry::Unreadable => {}
            NextEntry::End => break i64::MIN,
        }
    };
    Ok(Examined { path: file.path.clone(), named: file.named, format: reader.format(), first_us })
}

struct Rows {
    files: VecDeque<PathBuf>,
    prefix: Option<Prefix>,
    current: Option<Reader>,
    sessions: Sessions,
    handler: Builder,
    progress: Arc<Progress>,
    summary: Summary,
    is_over: bool,
}

impl Rows {
    /// Reads until a batch is full. Returns None at the end of the last file.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        while !self.handler.is_full() {
            if self.progress.stop.load(Relaxed) {
                return Err(Error::failure("capture", "was stopped"));
            }
            if self.current.is_none() {
                let Some(path) = self.files.pop_front() else { break };
                self.current = Some(Reader::open(&path, self.prefix.as_ref(), &self.progress.bytes)?);
            }
            let Some(reader) = &mut self.current else { break };
            // Many entries are read between two checks for a stop, so that the checks cost little.
            let mut ended = false;
            for _ in 0..256 {
                match reader.next()? {
                    NextEntry::Entry(entry, line) => self.sessions.entry(&entry, line, &mut self.handler),
                    NextEntry::Unreadable => {}
                    NextEntry::End => {
                        ended = true;
                        break;
                    }
                }
            }
            if ended && let Some(reader) = self.current.take() {
                self.summary.unreadable += reader.damage.unreadable;
                self.summary.truncated += reader.damage.truncated;
                let name = reader.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
                if reader.damage.unreadable > 0 {
                    self.summary.unreadable_files.push(name.clone());
                }
                if reader.is_truncated() {
                    self.summary.truncated_archives.push(name);
                }
                for zone in reader.clock.unknown {
                    if !self.summary.unknown_zones.contains(&zone) {
                        self.summary.unknown_zones.push(zone);
                    }
                }
            }
        }
        if self.current.is_none() && self.files.is_empty() && !self.is_over {
            self.is_over = true;
            self.sessions.finish(&mut self.handler);
            self.sum_up();
        }
        self.progress.statements.store(self.sessions.counts.statements, Relaxed);
        Ok(self.handler.batch())
    }

    fn sum_up(&mut self) {
        let Counts {
            entries,
            statements,
            sessions,
            transactions,
            errors,
            repeated,
            jumps,
            durations_alone,
            with_duration,
            other_messages,
        } = self.sessions.counts;
        let summary = Summary {
            entries,
            statements,
            sessions,
            transactions,
            errors,
            repeated,
            jumps,
            durations_alone,
            with_duration,
            other_messages,
            cut_at: self.handler.cut_at(),
            ..std::mem::take(&mut self.summary)
        };
        *self.progress.summary.lock().unwrap_or_else(PoisonError::into_inner) = summary;
    }
}

impl Iterator for Statements {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.batch().map_err(|error| ArrowError::ExternalError(error.to_string().into())).transpose()
    }
}

impl RecordBatchReader for Statements {
    fn schema(&self) -> SchemaRef {
        schema()
    }
}

/// Returns the columns, in the order of `Builder::batch`.
pub(crate) fn schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let element = Arc::new(Field::new_list_field(DataType::Utf8, true));
    Arc::new(Schema::new(vec![
        Field::new("number", DataType::UInt64, false),
        Field::new("session", DataType::UInt32, false),
        Field::new("transaction", DataType::UInt64, false),
        Field::new("at_us", DataType::Int64, false),
        text("template"),
        text("text"),
        text("prepared"),
        Field::new("parameters", DataType::List(element), true),
        Field::new("duration_us", DataType::Int64, true),
        text("error"),
        text("user"),
        text("database"),
        text("application"),
        text("command"),
        Field::new("writes", DataType::Boolean, false),
        text("obstacle"),
        Field::new("row_count", DataType::Int64, true),
        text("types"),
        Field::new("generated", DataType::UInt64, true),
    ]))
}

/// Collects statements into the columns of a batch.
pub(crate) struct Builder {
    mask: Option<Mask>,
    analyses: Analyses,
    values: Vec<Value>,
    rows: usize,
    bytes: usize,
    number: u64,
    numbers: UInt64Builder,
    sessions: UInt32Builder,
    transactions: UInt64Builder,
    times: Int64Builder,
    templates: StringBuilder,
    texts: StringBuilder,
    prepared: StringBuilder,
    parameters: ListBuilder<StringBuilder>,
    durations: Int64Builder,
    errors: StringBuilder,
    users: StringBuilder,
    databases: StringBuilder,
    applications: StringBuilder,
    verbs: StringBuilder,
    writes: BooleanBuilder,
    obstacles: StringBuilder,
    row_counts: Int64Builder,
    types: StringBuilder,
    generated: UInt64Builder,
    /// Length of the longest parameter that does not end with "...". The field `dotted` is about the parameters that
    /// end with "...". The field contains the length of the shortest and of the longest of them, without the dots.
    longest: usize,
    dotted: Option<(usize, usize)>,
}

impl Builder {
    pub(crate) fn new(mask: Option<Mask>, dialect: Dialect) -> Self {
        Self {
            mask,
            analyses: Analyses::new(dialect),
            values: Vec::new(),
            rows: 0,
            bytes: 0,
            number: 0,
            numbers: UInt64Builder::new(),
            sessions: UInt32Builder::new(),
            transactions: UInt64Builder::new(),
            times: Int64Builder::new(),
            templates: StringBuilder::new(),
            texts: StringBuilder::new(),
            prepared: StringBuilder::new(),
            parameters: ListBuilder::new(StringBuilder::new()),
            durations: Int64Builder::new(),
            errors: StringBuilder::new(),
            users: StringBuilder::new(),
            databases: StringBuilder::new(),
            applications: StringBuilder::new(),
            verbs: StringBuilder::new(),
            writes: BooleanBuilder::new(),
            obstacles: StringBuilder::new(),
            row_counts: Int64Builder::new(),
            types: StringBuilder::new(),
            generated: UInt64Builder::new(),
            longest: 0,
            dotted: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows >= ROWS || self.bytes >= BYTES
    }

    pub(crate) fn batch(&mut self) -> Option<RecordBatch> {
        if self.rows == 0 {
            return None;
        }
        (self.rows, self.bytes) = (0, 0);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.numbers.finish()),
            Arc::new(self.sessions.finish()),
            Arc::new(self.transactions.finish()),
            Arc::new(self.times.finish()),
            Arc::new(self.templates.finish()),
            Arc::new(self.texts.finish()),
            Arc::new(self.prepared.finish()),
            Arc::new(self.parameters.finish()),
            Arc::new(self.durations.finish()),
            Arc::new(self.errors.finish()),
            Arc::new(self.users.finish()),
            Arc::new(self.databases.finish()),
            Arc::new(self.applications.finish()),
            Arc::new(self.verbs.finish()),
            Arc::new(self.writes.finish()),
            Arc::new(self.obstacles.finish()),
            Arc::new(self.row_counts.finish()),
            Arc::new(self.types.finish()),
            Arc::new(self.generated.finish()),
        ];
        Some(RecordBatch::try_new(schema(), columns).expect("every column has each row"))
    }

    /// Appends the parameters of a statement. Returns whether there is a value for every parameter in the statement's
    /// text.
    fn parameters(&mut self, executed: &Executed) -> std::result::Result<bool, Obstacle> {
        if executed.prepared.is_none() {
            self.parameters.append_null();
            return Ok(true);
        }
        let mut obstacle = None;
        let (count, is_whole) = match &executed.parameters {
            Parameters::Sent(values) => {
                for (place, value) in values.iter().enumerate() {
                    obstacle = self.parameter(place, value.as_deref(), &executed.analysis).or(obstacle);
                }
                (values.len(), true)
            }
            Parameters::Logged(list) => {
                let mut values = std::mem::take(&mut self.values);
                let is_whole = split_parameters(list, &mut values) || list.is_empty();
                for (place, value) in values.iter().enumerate() {
                    let value = value.as_ref().map(|(at, doubled)| {
                        let raw = &list[at.clone()];
                        if *doubled { replace_doubled(raw).into() } else { Cow::Borrowed(raw) }
                    });
                    if let Some(value) = &value {
                        self.note_length(value);
                    }
                    obstacle = self.parameter(place, value.as_deref(), &executed.analysis).or(obstacle);
                }
                let count = values.len();
                self.values = values;
                (count, is_whole)
            }
        };
        self.parameters.append(true);
        obstacle.map_or(Ok(is_whole && count >= executed.analysis.parameters), Err)
    }

    /// Appends one parameter. Returns the reason why a replay cannot send it, if there is one.
    fn parameter(&mut self, place: usize, value: Option<&[u8]>, analysis: &Analysis) -> Option<Obstacle> {
        let Some(raw) = value else {
            self.parameters.values().append_null();
            return None;
        };
        let hidden = without_password(raw);
        let text = String::from_utf8_lossy(hidden.as_deref().unwrap_or(raw));
        self.bytes += text.len();
        match &self.mask {
            Some(mask) if !analysis.unmasked.contains(&(place + 1)) => {
                self.parameters.values().append_value(mask.value(&text));
            }
            _ => self.parameters.values().append_value(&text),
        }
        if text.contains(char::REPLACEMENT_CHARACTER) {
            return Some(Obstacle::Encoding);
        }
        hidden.map(|_| Obstacle::Password)
    }

    /// Notes the length of a value. With `log_parameter_max_length`, the server cuts longer values and appends three
    /// dots. A value that ends with three dots may also be complete.
    fn note_length(&mut self, value: &[u8]) {
        if let Some(cut) = value.strip_suffix(b"...") {
            let (low, high) = self.dotted.unwrap_or((cut.len(), cut.len()));
            self.dotted = Some((low.min(cut.len()), high.max(cut.len())));
        } else {
            self.longest = self.longest.max(value.len());
        }
    }

    /// Returns the length at which the server seems to have cut values. This is the length of the longest value with
    /// three dots, if no other value is longer. Otherwise returns 0.
    fn cut_at(&self) -> usize {
        self.dotted.filter(|(_, high)| *high >= self.longest).map_or(0, |(_, high)| high)
    }
}

impl Handler for Builder {
    fn analyse(&mut self, text: &[u8]) -> Arc<Analysis> {
        self.analyses.of(text, self.mask.as_ref())
    }

    fn take(&mut self, executed: Executed) {
        self.number += 1;
        self.rows += 1;
        let has_parameters = self.parameters(&executed);
        let analysis = &executed.analysis;
        let obstacle = match has_parameters {
            _ if executed.obstacle.is_some() => executed.obstacle,
            _ if executed.begun_before => Some(Obstacle::Begun),
            _ if executed.fetches => Some(Obstacle::Fetch),
            Err(obstacle) => Some(obstacle),
            Ok(false) if analysis.obstacle.is_none() => Some(Obstacle::NoParameters),
            Ok(_) => analysis.obstacle,
        };
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.bytes += analysis.text.len() + analysis.template.len() + 200;
        self.numbers.append_value(self.number);
        self.sessions.append_value(executed.session);
        self.transactions.append_value(executed.transaction);
        self.times.append_value(executed.at_us);
        self.templates.append_value(&analysis.template);
        self.texts.append_value(&analysis.text);
        self.prepared.append_option(executed.prepared.as_deref().map(name));
        self.durations.append_option(executed.duration_us.map(|micros| micros as i64));
        self.errors.append_option((!executed.error.is_empty()).then(|| name(&executed.error)));
        self.users.append_value(name(&executed.names.user));
        self.databases.append_value(name(&executed.names.database));
        self.applications.append_value(name(&executed.names.application));
        self.verbs.append_value(&analysis.verb);
        self.writes.append_value(analysis.writes);
        self.obstacles.append_option(obstacle.map(Obstacle::code));
        self.row_counts.append_option(executed.rows.map(|rows| rows as i64));
        self.types.append_option((!executed.types.is_empty()).then(|| name(&executed.types)));
        let masked = |key: u64| self.mask.as_ref().map_or(key, |mask| mask.key(key));
        self.generated.append_option(executed.generated.map(masked));
    }
}

fn replace_doubled(text: &[u8]) -> Vec<u8> {
    let (mut single, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = memchr::memchr(b'\'', rest) {
        single.extend_from_slice(&rest[..=at]);
        rest = &rest[(at + 2).min(rest.len())..];
    }
    single.extend_from_slice(rest);
    single
}

#[cfg(test)]
mod tests;
