//! Follows the packets of a MySQL or MariaDB session, and reports its statements.
//!
//! Sources: MySQL 8.4 Source Code Documentation, "Client/Server Protocol"; MariaDB Knowledge Base, "MariaDB Protocol".

mod framing;
mod handshake;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ironbench_capture::observed::{Event, Observed, Obstacle, SessionNames};
use ironbench_core::wire::mysql::protocol::backend::{Done, Prepared as Announced, Reader, head};
use ironbench_core::wire::mysql::protocol::{binary, status};

use crate::framing::{LONGEST, beginning};
use crate::reserved::Reserved;
use crate::{Instant, Tracker, WallClock};
use framing::{Framer, Packet};
pub use handshake::{Capabilities, MysqlHandshake};

/// If this many commands are unanswered, the proxy stops reading from the client.
const MAX_PENDING: usize = 1 << 12;
/// Maximum number of bytes of a session's unanswered commands.
const MAX_PENDING_BYTES: usize = 8 << 20;
const MAX_STATEMENTS: usize = 10_000;
/// Maximum number of bytes that are kept of the name of a user or database. MySQL's names have at most 80 characters.
const LONGEST_NAME: usize = 320;
/// Status flag of a result with a cursor. The rows stay on the server until the client fetches them.
const CURSOR_EXISTS: u16 = 0x40;
/// In MariaDB's protocol, this ID stands for the statement that was prepared last.
const LAST: u32 = u32::MAX;
/// SQLSTATE of a statement whose server has closed the connection.
const CONNECTION_FAILURE: [u8; 5] = *b"08S01";

mod command {
    pub const QUIT: u8 = 0x01;
    pub const INIT_DB: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
    pub const FIELD_LIST: u8 = 0x04;
    pub const CREATE_DB: u8 = 0x05;
    pub const DROP_DB: u8 = 0x06;
    pub const REFRESH: u8 = 0x07;
    pub const STATISTICS: u8 = 0x09;
    pub const PROCESS_KILL: u8 = 0x0c;
    pub const DEBUG: u8 = 0x0d;
    pub const PING: u8 = 0x0e;
    pub const CHANGE_USER: u8 = 0x11;
    pub const PREPARE: u8 = 0x16;
    pub const EXECUTE: u8 = 0x17;
    pub const LONG_DATA: u8 = 0x18;
    pub const CLOSE: u8 = 0x19;
    pub const RESET: u8 = 0x1a;
    pub const SET_OPTION: u8 = 0x1b;
    pub const FETCH: u8 = 0x1c;
    pub const RESET_CONNECTION: u8 = 0x1f;
}

/// A prepared statement, and the types of its parameters at the last Execute.
#[derive(Debug, Default)]
struct Prepared {
    text: Arc<[u8]>,
    parameters: usize,
    types: Vec<(u8, bool)>,
    /// Whether the client has sent parameters of the next Execute in separate commands.
    has_long_data: bool,
    is_cut: bool,
    _reserved: Reserved,
}

#[derive(Debug)]
struct Running {
    at: Instant,
    name: Option<Arc<[u8]>>,
    text: Arc<[u8]>,
    values: Vec<Option<Vec<u8>>>,
    /// Types of the parameters, as codes of [`binary::Parameter`].
    types: Vec<u8>,
    obstacle: Option<Obstacle>,
    rows: u64,
    /// The AUTO_INCREMENT value that the statement generated, or 0.
    generated: u64,
    /// Approximate number of bytes in memory, without a text that a prepared statement shares.
    bytes: usize,
}

/// The packet that the server sends next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The first packet of an answer or of a further result.
    First,
    /// This many descriptions of columns.
    Columns(u64),
    /// The EOF packet after the descriptions.
    ColumnsEnd,
    Rows,
    /// This many descriptions of parameters and columns, after a Prepare.
    Descriptions(usize),
}

#[derive(Debug)]
enum Command {
    /// A statement. The second field is the new default database if the statement changes it.
    Statement(Box<Running>, Option<Vec<u8>>),
    Prepare(Arc<[u8]>, bool, Instant),
    /// A command with an answer of one packet. The field is the new default database if the command changes it.
    Simple(Option<Vec<u8>>),
    Fields,
    /// A new log-in of the session, with this user and this database.
    ChangeUser(Vec<u8>, Vec<u8>),
}

impl Command {
    /// Returns the approximate number of bytes in memory.
    fn bytes(&self) -> usize {
        match self {
            Self::Statement(running, _) => running.bytes,
            Self::Prepare(text, ..) => text.len(),
            Self::Simple(_) | Self::Fields | Self::ChangeUser(..) => 0,
        }
    }

    /// Keeps only the beginning of the text.
    fn cut(&mut self) {
        match self {
            Self::Statement(running, _) => {
                running.text = beginning(&running.text).into();
                (running.values, running.types) = (Vec::new(), Vec::new());
                running.obstacle = Some(Obstacle::LongText);
                running.bytes = size_of::<Running>() + running.text.len();
            }
            Self::Prepare(text, is_cut, _) => (*text, *is_cut) = (beginning(text).into(), true),
            Self::Simple(_) | Self::Fields | Self::ChangeUser(..) => {}
        }
    }
}

/// The proxy's information about a session.
#[derive(Debug)]
pub struct MysqlTracker {
    session: u32,
    names: Arc<SessionNames>,
    clock: WallClock,
    capabilities: Capabilities,
    from_client: Framer,
    from_server: Framer,
    statements: HashMap<u32, Prepared>,
    last_prepared: u32,
    pending: VecDeque<Command>,
    pending_bytes: usize,
    expected: Expected,
    is_logged_in: bool,
    /// Whether the client is sending the rows of a file. An empty packet ends them.
    is_sending_file: bool,
    request: u32,
    in_block: bool,
    ended_at: Instant,
    has_gap: bool,
    is_lost: bool,
    events: Vec<Event>,
}

/// The session uses packets that the tracker does not know.
struct Unknown;

type Followed = Result<(), Unknown>;

impl<T> From<T> for Unknown
where
    T: std::error::Error,
{
    fn from(_: T) -> Self {
        Self
    }
}

impl MysqlTracker {
    pub fn new(session: u32, names: SessionNames, capabilities: Capabilities, clock: WallClock) -> Self {
        Self {
            session,
            names: Arc::new(names),
            clock,
            capabilities,
            from_client: Framer::default(),
            from_server: Framer::default(),
            statements: HashMap::new(),
            last_prepared: 0,
            pending: VecDeque::new(),
            pending_bytes: 0,
            expected: Expected::First,
            is_logged_in: false,
            is_sending_file: false,
            request: 0,
            in_block: false,
            ended_at: 0,
            has_gap: false,
            is_lost: false,
            events: Vec::new(),
        }
    }

    fn or_lose(&mut self, followed: Followed) {
        if followed.is_err() {
            self.is_lost = true;
            self.statements.clear();
            self.pending.clear();
        }
    }

    /// Appends a command to those that the server has not answered. If they take too much memory, only the beginning of
    /// the text is kept.
    fn push(&mut self, mut command: Command) {
        if self.pending_bytes + command.bytes() > MAX_PENDING_BYTES {
            command.cut();
        }
        self.pending_bytes += command.bytes();
        self.pending.push_back(command);
    }

    fn pop(&mut self) -> Option<Command> {
        let command = self.pending.pop_front();
        self.pending_bytes -= command.as_ref().map_or(0, Command::bytes);
        command
    }

    fn requested(&mut self, packet: Packet, now: Instant) -> Followed {
        if self.is_sending_file {
            self.is_sending_file = packet.length > 0;
            return Ok(());
        }
        // Only a packet with number 0 starts a command. Other packets contain the proof of a password or rows of a
        // file.
        if packet.sequence != 0 || packet.is_continued {
            return Ok(());
        }
        let (&code, body) = packet.body.split_first().ok_or(Unknown)?;
        match code {
            command::QUERY => {
                let running = self.running(now, None, body.into(), packet.is_cut);
                self.push(Command::Statement(running, used_database(body)));
            }
            command::EXECUTE => {
                let running = self.execute(body, packet.is_cut, now)?;
                self.push(Command::Statement(running, None));
            }
            command::FETCH => {
                let id = Reader(body).u32()?;
                let text = self.statements.get(&id).map(|one| one.text.clone()).unwrap_or_default();
                let mut running = self.running(now, Some(named(id)), text, false);
                running.obstacle = Some(Obstacle::Fetch);
                self.push(Command::Statement(running, None));
                if self.pending.len() == 1 {
                    self.expected = Expected::Rows;
                }
            }
            command::PREPARE => self.push(Command::Prepare(body.into(), packet.is_cut, now)),
            command::INIT_DB => self.push(Command::Simple(Some(kept_name(body)))),
            command::CHANGE_USER => {
                let mut rest = Reader(body);
                let user = kept_name(rest.text()?);
                if self.capabilities.secure {
                    let length = rest.byte()?;
                    rest.bytes(length.into())?;
                } else {
                    rest.text()?;
                }
                let database = kept_name(rest.text()?);
                self.statements.clear();
                self.push(Command::ChangeUser(user, database));
            }
            command::RESET_CONNECTION => {
                self.statements.clear();
                self.push(Command::Simple(None));
            }
            command::LONG_DATA => {
                if let Some(one) = self.statements.get_mut(&Reader(body).u32()?) {
                    one.has_long_data = true;
                }
            }
            command::CLOSE => drop(self.statements.remove(&Reader(body).u32()?)),
            command::FIELD_LIST => self.push(Command::Fields),
            command::PING
            | command::STATISTICS
            | command::DEBUG
            | command::RESET
            | command::SET_OPTION
            | command::PROCESS_KILL
            | command::REFRESH
            | command::CREATE_DB
            | command::DROP_DB => self.push(Command::Simple(None)),
            command::QUIT => {}
            _ => return Err(Unknown),
        }
        Ok(())
    }

    fn running(&self, at: Instant, name: Option<Arc<[u8]>>, text: Arc<[u8]>, is_cut: bool) -> Box<Running> {
        let text: Arc<[u8]> = if is_cut { beginning(&text).into() } else { text };
        let obstacle = is_cut.then_some(Obstacle::LongText);
        let bytes = size_of::<Running>() + text.len();
        let (values, types) = (Vec::new(), Vec::new());
        Box::new(Running { at, name, text, values, types, obstacle, rows: 0, generated: 0, bytes })
    }

    /// Parses a COM_STMT_EXECUTE.
    fn execute(&mut self, body: &[u8], is_cut: bool, now: Instant) -> Result<Box<Running>, Unknown> {
        let mut rest = Reader(body);
        let id = match rest.u32()? {
            LAST => self.last_prepared,
            id => id,
        };
        rest.bytes(5)?; // skip flags and iteration count
        // MariaDB's clients may execute a statement before the server has answered its Prepare.
        if let (Some(Command::Prepare(text, ..)), true) = (self.pending.back(), body.starts_with(&LAST.to_le_bytes())) {
            let mut running = self.running(now, Some(named(LAST)), text.clone(), is_cut);
            running.obstacle = Some(Obstacle::BinaryParameters);
            return Ok(running);
        }
        let Some(known) = self.statements.get_mut(&id) else {
            let mut running = self.running(now, Some(named(id)), Arc::default(), false);
            running.obstacle = Some(Obstacle::NoParameters);
            return Ok(running);
        };
        let (text, was_cut) = (known.text.clone(), known.is_cut || is_cut);
        let has_long_data = std::mem::take(&mut known.has_long_data);
        let values = if was_cut || has_long_data { None } else { values(known, &mut rest) };
        let types = known.types.iter().map(|&(kind, unsigned)| binary::Parameter::code(kind, unsigned)).collect();
        let mut running = self.running(now, Some(named(id)), text, false);
        running.obstacle = match &values {
            Some(_) => None,
            None if was_cut || has_long_data => Some(Obstacle::LongText),
            None => Some(Obstacle::BinaryParameters),
        };
        (running.values, running.types) = (values.unwrap_or_default(), types);
        let of_values = running.values.iter().flatten().map(Vec::len).sum::<usize>();
        running.bytes = size_of::<Running>() + of_values + size_of_val(&*running.values) + running.types.len();
        Ok(running)
    }

    fn answered(&mut self, packet: Packet, now: Instant) -> Followed {
        if packet.is_continued {
            return Ok(());
        }
        let body = packet.body;
        let first = body.first().copied();
        if !self.is_logged_in {
            self.is_logged_in = first == Some(head::OK);
            return Ok(());
        }
        let is_error = first == Some(head::ERROR);
        match self.pending.front_mut() {
            // The server ends the session.
            None if is_error => {}
            None => return Err(Unknown),
            Some(Command::Simple(database)) => {
                let database = database.take().filter(|_| !is_error);
                self.pop();
                self.use_database(database);
                if first == Some(head::OK) {
                    self.in_block = Done::read(body)?.is_in_transaction();
                }
                self.begin_next();
            }
            Some(Command::Fields) => {
                if is_error || first == Some(head::END) {
                    self.pop();
                    self.begin_next();
                }
            }
            Some(Command::ChangeUser(user, database)) => {
                if first == Some(head::OK) {
                    let (user, database) = (std::mem::take(user), std::mem::take(database));
                    let application = self.names.application.clone();
                    self.names = Arc::new(SessionNames { user, database, application });
                }
                if is_error || first == Some(head::OK) {
                    self.in_block = false;
                    self.pop();
                    self.begin_next();
                }
            }
            Some(Command::Prepare(..)) => self.prepared(body, is_error, now)?,
            Some(Command::Statement(..)) => self.result(packet, now)?,
        }
        Ok(())
    }

    fn prepared(&mut self, body: &[u8], is_error: bool, now: Instant) -> Followed {
        let Some(Command::Prepare(text, is_cut, at)) = self.pending.front() else { return Err(Unknown) };
        if let Expected::Descriptions(left) = self.expected {
            self.expected = Expected::Descriptions(left - 1);
        } else if is_error {
            // A statement that cannot be prepared is reported with its error.
            let running = self.running(*at, Some(Arc::default()), text.clone(), *is_cut);
            self.pop();
            self.finish(*running, Some(error_code(body)), now);
            return Ok(());
        } else {
            let Announced { statement, columns, parameters } = Announced::read(body)?;
            let ends = if self.capabilities.deprecate_eof {
                0
            } else {
                usize::from(columns > 0) + usize::from(parameters > 0)
            };
            self.expected = Expected::Descriptions(usize::from(columns) + usize::from(parameters) + ends);
            let whole = if *is_cut {
                None
            } else {
                Reserved::new(text.len() + size_of::<(u8, bool)>() * usize::from(parameters))
            };
            let is_cut = whole.is_none();
            let text: Arc<[u8]> = if is_cut { beginning(text).into() } else { text.clone() };
            let _reserved = whole.unwrap_or_else(|| Reserved::beyond_limit(text.len()));
            let one = Prepared { text, parameters: parameters.into(), is_cut, _reserved, ..Prepared::default() };
            if self.statements.len() < MAX_STATEMENTS {
                self.statements.insert(statement, one);
            }
            self.last_prepared = statement;
        }
        if self.expected == Expected::Descriptions(0) {
            self.pop();
            self.begin_next();
        }
        Ok(())
    }

    /// Follows the answer to a statement, which may have several results.
    fn result(&mut self, Packet { body, length, .. }: Packet, now: Instant) -> Followed {
        let Some(Command::Statement(running, _)) = self.pending.front_mut() else { return Err(Unknown) };
        let first = body.first().copied();
        if first == Some(head::ERROR) && !matches!(self.expected, Expected::Columns(_)) {
            return self.end_statement(Some(error_code(body)), None, now);
        }
        let deprecate_eof = self.capabilities.deprecate_eof;
        match self.expected {
            Expected::First => match first.ok_or(Unknown)? {
                head::OK => {
                    let done = Done::read(body)?;
                    running.rows += done.affected;
                    running.generated = done.generated;
                    if !done.has_more() {
                        return self.end_statement(None, Some(done.is_in_transaction()), now);
                    }
                }
                // The client sends a file, and the server then answers again.
                head::LOCAL_INFILE => self.is_sending_file = true,
                _ => self.expected = Expected::Columns(Reader(body).integer()?),
            },
            Expected::Columns(left) => {
                self.expected = match left {
                    0 => return Err(Unknown),
                    1 if deprecate_eof => Expected::Rows,
                    1 => Expected::ColumnsEnd,
                    left => Expected::Columns(left - 1),
                };
            }
            Expected::ColumnsEnd => {
                let status = eof_status(body)?;
                if status & CURSOR_EXISTS != 0 {
                    return self.end_statement(None, Some(status & status::IN_TRANSACTION != 0), now);
                }
                self.expected = Expected::Rows;
            }
            // A row can also start with this byte. The row's first value then has at least 16 MiB, so its first part
            // has the maximum length, unlike this packet.
            Expected::Rows if first == Some(head::END) && length < 0xff_ffff => {
                let status = if deprecate_eof { Done::read(body)?.status } else { eof_status(body)? };
                if status & status::MORE_RESULTS == 0 {
                    return self.end_statement(None, Some(status & status::IN_TRANSACTION != 0), now);
                }
                self.expected = Expected::First;
            }
            Expected::Rows => running.rows += 1,
            Expected::Descriptions(_) => return Err(Unknown),
        }
        Ok(())
    }

    fn end_statement(&mut self, error: Option<[u8; 5]>, in_block: Option<bool>, now: Instant) -> Followed {
        let Some(Command::Statement(running, database)) = self.pop() else { return Err(Unknown) };
        if error.is_none() {
            self.use_database(database);
        }
        self.end_with(*running, error, in_block, now);
        Ok(())
    }

    fn finish(&mut self, running: Running, error: Option<[u8; 5]>, now: Instant) {
        self.end_with(running, error, None, now);
    }

    /// Reports a statement. `in_block` says whether a transaction is open after the statement, and is None if the
    /// server did not report this.
    fn end_with(&mut self, running: Running, error: Option<[u8; 5]>, in_block: Option<bool>, now: Instant) {
        self.begin_next();
        let start = running.at.max(self.ended_at);
        self.ended_at = now;
        self.request = self.request.wrapping_add(1);
        let before = self.in_block;
        self.in_block = in_block.unwrap_or(before);
        self.events.push(Event::Statement(Box::new(Observed {
            session: self.session,
            at_us: self.clock.us(start),
            text: running.text,
            prepared: running.name,
            values: running.values,
            types: running.types,
            duration_us: Some(now.saturating_sub(start) / 1000),
            rows: Some(running.rows),
            generated: (running.generated > 0).then_some(running.generated),
            error,
            obstacle: running.obstacle,
            request: self.request,
            in_block: before,
            leaves_block: Some(self.in_block),
            after_gap: std::mem::take(&mut self.has_gap),
            names: Arc::clone(&self.names),
        })));
    }

    /// Prepares for the answer to the next command.
    fn begin_next(&mut self) {
        let is_fetch = |command: &Command| matches!(command, Command::Statement(running, _) if running.obstacle == Some(Obstacle::Fetch));
        self.expected = if self.pending.front().is_some_and(is_fetch) { Expected::Rows } else { Expected::First };
    }

    fn use_database(&mut self, database: Option<Vec<u8>>) {
        if let Some(database) = database.filter(|database| *database != self.names.database) {
            let SessionNames { user, application, .. } = &*self.names;
            self.names = Arc::new(SessionNames { user: user.clone(), database, application: application.clone() });
        }
    }
}

impl Tracker for MysqlTracker {
    fn client_sent(&mut self, bytes: &[u8], now: Instant) {
        if self.is_lost {
            return;
        }
        let mut framer = std::mem::take(&mut self.from_client);
        let mut followed = Ok(());
        framer.feed(
            bytes,
            |sequence| if sequence == 0 { LONGEST } else { 0 },
            |packet| {
                if followed.is_ok() {
                    followed = self.requested(packet, now);
                }
            },
        );
        self.from_client = framer;
        self.or_lose(followed);
    }

    fn server_sent(&mut self, bytes: &[u8], now: Instant) {
        if self.is_lost {
            return;
        }
        let mut framer = std::mem::take(&mut self.from_server);
        let mut followed = Ok(());
        framer.feed(
            bytes,
            |_| 64,
            |packet| {
                if followed.is_ok() {
                    followed = self.answered(packet, now);
                }
            },
        );
        self.from_server = framer;
        self.or_lose(followed);
    }

    fn close(&mut self, by_server: bool, now: Instant) {
        if !self.is_lost
            && by_server
            && let Some(Command::Statement(running, _)) = self.pop()
        {
            self.finish(*running, Some(CONNECTION_FAILURE), now);
        }
        self.events.push(Event::Ended(self.session));
    }

    fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    fn lose_statements(&mut self) {
        self.has_gap = true;
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn is_congested(&self) -> bool {
        self.pending.len() >= MAX_PENDING
    }
}

/// Returns the beginning of a name.
fn kept_name(name: &[u8]) -> Vec<u8> {
    name[..name.len().min(LONGEST_NAME)].to_vec()
}

fn named(id: u32) -> Arc<[u8]> {
    id.to_string().into_bytes().into()
}

/// Parses the parameters of a COM_STMT_EXECUTE. Returns None if they are damaged or of unknown types.
fn values(known: &mut Prepared, rest: &mut Reader) -> Option<Vec<Option<Vec<u8>>>> {
    if known.parameters == 0 {
        return Some(Vec::new());
    }
    let nulls = rest.bytes(known.parameters.div_ceil(8)).ok()?;
    if rest.byte().ok()? == 1 {
        known.types.clear();
        for _ in 0..known.parameters {
            let [kind, flags] = rest.array().ok()?;
            known.types.push((kind, flags & 0x80 != 0));
        }
    }
    let mut values = Vec::with_capacity(known.types.len());
    if known.types.len() != known.parameters {
        return None;
    }
    for (place, (kind, unsigned)) in known.types.iter().enumerate() {
        if nulls[place / 8] >> (place % 8) & 1 == 1 || *kind == binary::kind::NULL {
            values.push(None);
            continue;
        }
        let mut text = Vec::new();
        binary::value(rest, *kind, *unsigned).ok()?.write_text(&mut text);
        values.push(Some(text));
    }
    Some(values)
}

/// Returns the database if the statement is like `use shop`. Returns None for other statements.
fn used_database(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    let (word, name) = text.split_at_checked(4)?;
    let name = name.trim_ascii().trim_ascii_end();
    let name = name.strip_suffix(b";").unwrap_or(name).trim_ascii();
    let name = name.strip_prefix(b"`").and_then(|name| name.strip_suffix(b"`")).unwrap_or(name);
    (word[..3].eq_ignore_ascii_case(b"use") && word[3].is_ascii_whitespace() && !name.is_empty())
        .then(|| kept_name(name))
}

/// Parses the status in an EOF packet.
fn eof_status(body: &[u8]) -> Result<u16, Unknown> {
    let mut rest = Reader(body);
    if rest.byte()? != head::END {
        return Err(Unknown);
    }
    rest.u16()?; // skip the number of warnings
    Ok(rest.u16()?)
}

/// Returns the SQLSTATE of an ERR packet.
fn error_code(body: &[u8]) -> [u8; 5] {
    match body.get(3..9) {
        Some([b'#', state @ ..]) => state.try_into().unwrap_or(*b"HY000"),
        _ => *b"HY000",
    }
}

#[cfg(test)]
mod tests;
