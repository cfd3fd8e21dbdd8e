//! Follows the messages of a PostgreSQL session, and reports its statements.
//!
//! Requests are kept until the server has answered them. Source: PostgreSQL 18 documentation, 54.2 "Message Flow".

mod values;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use ironbench_capture::observed::{Event, Names, Observed, Obstacle};
use ironbench_core::wire::postgres::protocol::backend::{affected_rows, parameter_status, sqlstate};

use crate::framing::{Framer, LONGEST, Message, Nonsense, beginning};
use crate::{Instant, Tracker, WallClock};

/// Maximum number of bytes of a session's unanswered requests.
const MOST_PENDING_BYTES: usize = 8 << 20;
/// If this many requests are unanswered, the proxy stops reading from the client. Otherwise requests would fill the
/// memory if the server does not answer. This causes no deadlock. PostgreSQL sends its answers when they have 8 kB or
/// earlier, so it has answered some of so many requests before it needs more.
const MOST_PENDING: usize = 1 << 16;
const MOST_STATEMENTS: usize = 10_000;
const MOST_PORTALS: usize = 1000;
/// Maximum number of bytes of the texts of all sessions' prepared statements.
const MOST_PREPARED_BYTES: usize = 256 << 20;
/// SQLSTATE of a statement whose server has closed the connection (connection_failure).
const CONNECTION_FAILURE: [u8; 5] = *b"08006";

static PREPARED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A prepared statement, and the types of its parameters.
#[derive(Debug)]
struct Prepared {
    text: Arc<[u8]>,
    /// Types that the client declared. With 0, the server determines the type. If the client has asked the server for
    /// the types, the next field contains all of them.
    declared: Box<[u32]>,
    described: OnceLock<Box<[u32]>>,
    is_cut: bool,
    charged: usize,
}

impl Prepared {
    fn new(text: &[u8], declared: Box<[u32]>, is_cut: bool) -> Self {
        let is_cut = is_cut || PREPARED_BYTES.load(Relaxed) + text.len() > MOST_PREPARED_BYTES;
        let text: Arc<[u8]> = if is_cut { beginning(text) } else { text }.into();
        PREPARED_BYTES.fetch_add(text.len(), Relaxed);
        Self { declared, described: OnceLock::new(), is_cut, charged: text.len(), text }
    }

    fn kind(&self, place: usize) -> u32 {
        let known = self.described.get().and_then(|types| types.get(place));
        known.or_else(|| self.declared.get(place)).copied().unwrap_or(0)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        PREPARED_BYTES.fetch_sub(self.charged, Relaxed);
    }
}

/// A statement that is running, or has been sent and will run.
#[derive(Debug)]
struct Running {
    at: Instant,
    /// Name of the prepared statement, or None for the simple protocol.
    name: Option<Arc<[u8]>>,
    text: Arc<[u8]>,
    values: Vec<Option<Vec<u8>>>,
    obstacle: Option<Obstacle>,
    request: u32,
    rows: u64,
    /// Number of rows received from the server.
    received: u64,
    error: Option<[u8; 5]>,
    bytes: usize,
}

/// A portal. The first Execute takes its statement and parameters.
#[derive(Debug)]
enum Portal {
    Bound(Box<Running>),
    /// The first Execute was sent. Contains the name and text of its statement.
    Fetched(Option<Arc<[u8]>>, Arc<[u8]>),
}

/// A request that the server has not answered.
#[derive(Debug)]
enum Request {
    Query(Box<Running>),
    /// A Parse. Contains the name, the statement that had this name before, and the new statement.
    Parse(Arc<[u8]>, Option<Arc<Prepared>>, Arc<Prepared>),
    Bind,
    Describe(Option<Arc<Prepared>>),
    Execute(Box<Running>),
    /// A Close. If it closes a statement that is known, contains the name and the statement.
    Close(Option<(Arc<[u8]>, Arc<Prepared>)>),
    Function(Box<Running>),
    Sync,
    /// The end of the rows that the client sends for a COPY. This message has no separate answer.
    CopyEnd,
}

/// The proxy's information about a session.
#[derive(Debug)]
pub struct PostgresTracker {
    session: u32,
    names: Arc<Names>,
    clock: WallClock,
    from_client: Framer,
    from_server: Framer,
    statements: HashMap<Arc<[u8]>, Arc<Prepared>>,
    portals: HashMap<Box<[u8]>, Portal>,
    pending: VecDeque<Request>,
    pending_bytes: usize,
    /// Time of the first Parse or Bind since the last Execute.
    bound_at: Option<Instant>,
    request: u32,
    in_block: bool,
    /// Whether the first ReadyForQuery has arrived.
    is_established: bool,
    /// Whether the server ignores requests until the next Sync, because a request has failed.
    is_skipping: bool,
    /// Whether the client is sending the rows of a COPY. The server ignores Sync during this time.
    in_copy: bool,
    is_utf8: bool,
    has_gap: bool,
    is_lost: bool,
    /// The last statement that has ended, with its start. The statement is reported when the next statement ends, or
    /// when the server reports the state of the transaction.
    ended: Option<(Instant, Box<Observed>)>,
    ended_at: Instant,
    events: Vec<Event>,
}

/// The session uses messages that the tracker does not know.
struct Unknown;

impl From<Nonsense> for Unknown {
    fn from(_: Nonsense) -> Self {
        Self
    }
}

type Followed = Result<(), Unknown>;

impl PostgresTracker {
    pub fn new(session: u32, names: Names, clock: WallClock) -> Self {
        Self {
            session,
            names: Arc::new(names),
            clock,
            from_client: Framer::default(),
            from_server: Framer::default(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            pending: VecDeque::new(),
            pending_bytes: 0,
            bound_at: None,
            request: 0,
            in_block: false,
            is_established: false,
            is_skipping: false,
            in_copy: false,
            is_utf8: true,
            has_gap: false,
            is_lost: false,
            ended: None,
            ended_at: 0,
            events: Vec::new(),
        }
    }

    fn or_lose(&mut self, followed: Followed) {
        if followed.is_err() {
            self.is_lost = true;
            self.statements.clear();
            self.portals.clear();
            self.pending.clear();
        }
    }

    fn requested(&mut self, Message { tag, body, is_cut }: Message, now: Instant) -> Followed {
        if self.is_skipping && !matches!(tag, b'S' | b'X') {
            return Ok(());
        }
        match tag {
            b'Q' => {
                self.request += 1;
                let text = body.strip_suffix(b"\0").unwrap_or(body);
                let running = self.running(now, None, text.into(), is_cut);
                self.push(Request::Query(running));
                (self.request, self.bound_at) = (self.request + 1, None);
            }
            b'P' => {
                self.bound_at.get_or_insert(now);
                self.parse(body, is_cut)?;
            }
            b'B' => {
                self.bound_at.get_or_insert(now);
                self.bind(body, is_cut, now)?;
            }
            b'E' => {
                let portal = c_string(&mut &*body).ok_or(Unknown)?;
                let at = self.bound_at.take().unwrap_or(now);
                let mut running = match self.portals.get_mut(portal) {
                    Some(Portal::Fetched(name, text)) => {
                        let (name, text) = (name.clone(), text.clone());
                        let mut running = self.running(at, name, text, false);
                        running.obstacle = Some(Obstacle::Fetch);
                        running
                    }
                    Some(bound) => {
                        let Portal::Bound(running) = bound else { return Err(Unknown) };
                        let fetched = Portal::Fetched(running.name.clone(), running.text.clone());
                        let Portal::Bound(running) = std::mem::replace(bound, fetched) else { return Err(Unknown) };
                        running
                    }
                    None => self.running(at, Some(Arc::default()), Arc::default(), true),
                };
                (running.at, running.request) = (at, self.request);
                self.push(Request::Execute(running));
            }
            b'D' => {
                let (kind, mut name) = body.split_first().ok_or(Unknown)?;
                let name = c_string(&mut name).ok_or(Unknown)?;
                let described = if *kind == b'S' { self.statements.get(name).cloned() } else { None };
                self.push(Request::Describe(described));
            }
            b'C' => {
                let (kind, mut name) = body.split_first().ok_or(Unknown)?;
                let name = c_string(&mut name).ok_or(Unknown)?;
                let closed = if *kind == b'S' { self.statements.remove_entry(name) } else { None };
                if *kind == b'P' {
                    self.portals.remove(name);
                }
                self.push(Request::Close(closed));
            }
            b'S' => {
                self.is_skipping = false;
                (self.request, self.bound_at) = (self.request + 1, None);
                if !self.in_copy {
                    self.push(Request::Sync);
                }
            }
            b'F' => {
                let oid = body.first_chunk().map_or(0, |oid| u32::from_be_bytes(*oid));
                let text = format!("function call of pg_proc {oid}");
                let mut running = self.running(now, None, text.as_bytes().into(), false);
                running.obstacle = Some(Obstacle::FunctionCall);
                self.push(Request::Function(running));
                self.request += 1;
            }
            b'c' | b'f' if self.in_copy => self.in_copy = false,
            b'c' | b'f' if !self.pending.is_empty() => self.push(Request::CopyEnd),
            // The bodies of these messages are not kept (`most_of_client`). These bodies are rows of a COPY, passwords
            // and SASL messages.
            b'c' | b'f' | b'd' | b'H' | b'X' | b'p' => {}
            _ => return Err(Unknown),
        }
        Ok(())
    }

    fn running(&self, at: Instant, name: Option<Arc<[u8]>>, text: Arc<[u8]>, is_cut: bool) -> Box<Running> {
        let text = if is_cut { beginning(&text).into() } else { text };
        let obstacle = match () {
            () if is_cut => Some(Obstacle::LongText),
            () if !self.is_utf8 && !text.is_ascii() => Some(Obstacle::Encoding),
            () => None,
        };
        let (request, bytes) = (self.request, size_of::<Running>() + text.len());
        Box::new(Running {
            at,
            name,
            text,
            values: Vec::new(),
            obstacle,
            request,
            rows: 0,
            received: 0,
            error: None,
            bytes,
        })
    }

    fn push(&mut self, mut request: Request) {
        if let Request::Query(running) | Request::Execute(running) | Request::Function(running) = &mut request {
            if self.pending_bytes + running.bytes > MOST_PENDING_BYTES {
                running.text = beginning(&running.text).into();
                running.values = Vec::new();
                running.obstacle = Some(Obstacle::LongText);
                running.bytes = size_of::<Running>() + running.text.len();
            }
            self.pending_bytes += running.bytes;
        }
        self.pending.push_back(request);
    }

    fn parse(&mut self, body: &[u8], is_cut: bool) -> Followed {
        let mut rest = body;
        let name: Arc<[u8]> = c_string(&mut rest).ok_or(Unknown)?.into();
        let (text, types) = match c_string(&mut rest) {
            Some(text) => (text, types(rest)),
            None if is_cut => (rest, Box::default()),
            None => return Err(Unknown),
        };
        let prepared = Arc::new(Prepared::new(text, types, is_cut));
        let has_room = self.statements.len() < MOST_STATEMENTS || self.statements.contains_key(&name);
        let before = if has_room { self.statements.insert(Arc::clone(&name), Arc::clone(&prepared)) } else { None };
        self.push(Request::Parse(name, before, prepared));
        Ok(())
    }

    fn bind(&mut self, body: &[u8], is_cut: bool, now: Instant) -> Followed {
        let mut rest = body;
        let portal = c_string(&mut rest).ok_or(Unknown)?;
        let name = c_string(&mut rest).ok_or(Unknown)?;
        let known = self.statements.get_key_value(name).map(|(name, prepared)| (name.clone(), prepared.clone()));
        let mut running = match &known {
            Some((name, prepared)) => self.running(now, Some(name.clone()), prepared.text.clone(), false),
            None => self.running(now, Some(name.into()), Arc::default(), true),
        };
        let is_whole = known.as_ref().is_some_and(|(_, prepared)| !prepared.is_cut) && !is_cut;
        match known.filter(|_| is_whole) {
            None => running.obstacle = Some(Obstacle::LongText),
            Some((_, prepared)) => {
                let (values, obstacle) = bound(&prepared, rest).ok_or(Unknown)?;
                let has_other_text = !self.is_utf8 && values.iter().flatten().any(|value| !value.is_ascii());
                running.obstacle = running.obstacle.or(obstacle);
                if has_other_text {
                    running.obstacle = Some(Obstacle::Encoding);
                }
                // The text is shared with the prepared statement.
                running.bytes =
                    size_of::<Running>() + values.iter().flatten().map(|value| value.len() + 24).sum::<usize>();
                running.values = values;
            }
        }
        if self.portals.len() >= MOST_PORTALS {
            self.portals.clear();
        }
        self.portals.insert(portal.into(), Portal::Bound(running));
        self.push(Request::Bind);
        Ok(())
    }

    fn answered(&mut self, Message { tag, body, .. }: Message, now: Instant) -> Followed {
        match tag {
            // The server sends these messages during authentication or without a request.
            b'N' | b'A' | b'K' | b'R' | b'v' => return Ok(()),
            b'S' => {
                self.setting(body);
                return Ok(());
            }
            _ => self.skip_copy_ends(),
        }
        match (tag, self.pending.front_mut()) {
            (b'Z', Some(Request::Query(_) | Request::Function(_))) => {
                let Some(Request::Query(running) | Request::Function(running)) = self.pop() else {
                    return Err(Unknown);
                };
                self.finish(*running, now);
                self.ready(body, now);
            }
            (b'Z', Some(Request::Sync)) => {
                self.pop();
                self.ready(body, now);
            }
            (b'Z', None) if !self.is_established => {
                self.is_established = true;
                self.ready(body, now);
            }
            (b'1', Some(Request::Parse(..)))
            | (b'2', Some(Request::Bind))
            | (b'3', Some(Request::Close(_)))
            | (b'T' | b'n', Some(Request::Describe(_))) => drop(self.pop()),
            (b't', Some(Request::Describe(prepared))) => {
                if let Some(prepared) = prepared {
                    let _ = prepared.described.set(types(body));
                }
            }
            (b'D', Some(Request::Query(running) | Request::Execute(running))) => running.received += 1,
            (b'C', Some(Request::Query(running))) => running.rows += affected_rows(body),
            (b'C' | b'I' | b's', Some(Request::Execute(running))) => {
                running.rows = if tag == b'C' { affected_rows(body) } else { running.received };
                if let Some(Request::Execute(running)) = self.pop() {
                    self.finish(*running, now);
                }
            }
            (b'E', _) => self.failed(error_code(body), now),
            (b'G', Some(_)) => self.begin_copy(),
            (b'H' | b'c' | b'd', Some(Request::Query(_) | Request::Execute(_)))
            | (b'T' | b'I', Some(Request::Query(_)))
            | (b'V', Some(Request::Function(_))) => {}
            _ => return Err(Unknown),
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<Request> {
        let request = self.pending.pop_front();
        if let Some(Request::Query(running) | Request::Execute(running) | Request::Function(running)) = &request {
            self.pending_bytes -= running.bytes;
        }
        request
    }

    fn skip_copy_ends(&mut self) {
        while matches!(self.pending.front(), Some(Request::CopyEnd)) {
            self.pending.pop_front();
        }
    }

    /// Handles the start of a COPY from the client. Any Sync that the client has already sent arrives before the end of
    /// the rows, so the server does not answer it.
    fn begin_copy(&mut self) {
        let mut has_ended = false;
        let mut place = 0;
        self.pending.retain(|request| {
            place += 1;
            if place == 1 || has_ended {
                return true;
            }
            has_ended = matches!(request, Request::CopyEnd);
            !matches!(request, Request::CopyEnd | Request::Sync)
        });
        self.in_copy = !has_ended;
    }

    /// Handles an error of the server. In the extended protocol, the server then ignores requests until the next Sync.
    fn failed(&mut self, code: [u8; 5], now: Instant) {
        // The error also ends a COPY from the client.
        self.in_copy = false;
        match self.pending.front_mut() {
            // The session ends, for example because the server is shut down.
            None => return,
            Some(Request::Query(running) | Request::Function(running)) => {
                running.error.get_or_insert(code);
                return;
            }
            // The commit of an implicit transaction has failed.
            Some(Request::Sync) => {
                if let Some((_, ended)) = &mut self.ended {
                    ended.error.get_or_insert(code);
                }
                return;
            }
            Some(_) => {}
        }
        let mut failed: Option<Running> = None;
        let mut undone = Vec::new();
        while let Some(request) = self.pending.front() {
            if matches!(request, Request::Sync) {
                break;
            }
            match self.pop() {
                Some(Request::Execute(running)) if failed.as_ref().is_none_or(|one| one.at == 0) => {
                    failed = Some(*running);
                }
                Some(Request::Parse(name, before, prepared)) => {
                    if failed.is_none() && undone.is_empty() {
                        // This is used if the client sent no Execute after this Parse.
                        let mut running = self.running(0, Some(name.clone()), prepared.text.clone(), false);
                        running.request = self.request;
                        failed = Some(*running);
                    }
                    undone.push((name, before));
                }
                Some(Request::Close(Some((name, before)))) => undone.push((name, Some(before))),
                _ => {}
            }
        }
        self.is_skipping = self.pending.is_empty();
        for (name, before) in undone.into_iter().rev() {
            match before {
                Some(before) => drop(self.statements.insert(name, before)),
                None => drop(self.statements.remove(&name)),
            }
        }
        if let Some(mut running) = failed {
            if running.at == 0 {
                running.at = self.bound_at.unwrap_or(now);
            }
            running.error = Some(code);
            running.rows = 0;
            self.finish(running, now);
        }
    }

    /// Ends a statement.
    fn finish(&mut self, running: Running, now: Instant) {
        if let Some((_, before)) = self.ended.take() {
            self.events.push(Event::Statement(before));
        }
        // A statement of a pipeline starts when the one before it has ended.
        let start = running.at.max(self.ended_at);
        self.ended_at = now;
        let observed = Observed {
            session: self.session,
            at_us: self.clock.us(start),
            text: running.text,
            prepared: running.name,
            values: running.values,
            duration_us: now.saturating_sub(start) / 1000,
            rows: running.rows,
            error: running.error,
            obstacle: running.obstacle,
            request: running.request,
            in_block: self.in_block,
            leaves_block: None,
            after_gap: std::mem::take(&mut self.has_gap),
            names: Arc::clone(&self.names),
        };
        self.ended = Some((start, Box::new(observed)));
    }

    /// Handles a ReadyForQuery.
    fn ready(&mut self, body: &[u8], now: Instant) {
        let in_block = body != b"I";
        self.report(now, in_block);
        self.in_block = in_block;
    }

    /// Reports the last statement, which has lasted until `now`.
    fn report(&mut self, now: Instant, leaves_block: bool) {
        if let Some((start, mut ended)) = self.ended.take() {
            ended.duration_us = now.saturating_sub(start) / 1000;
            ended.leaves_block = Some(leaves_block);
            self.events.push(Event::Statement(ended));
        }
        self.ended_at = now;
    }

    /// Handles a ParameterStatus, which reports a setting of the session.
    fn setting(&mut self, body: &[u8]) {
        match parameter_status(body) {
            Ok(("application_name", application)) if application.as_bytes() != self.names.application => {
                let Names { user, database, .. } = &*self.names;
                let application = application.as_bytes().to_vec();
                self.names = Arc::new(Names { user: user.clone(), database: database.clone(), application });
            }
            Ok(("client_encoding", encoding)) => self.is_utf8 = matches!(encoding, "UTF8" | "SQL_ASCII"),
            _ => {}
        }
    }
}

impl Tracker for PostgresTracker {
    fn client_sent(&mut self, bytes: &[u8], now: Instant) {
        if self.is_lost {
            return;
        }
        let mut framer = std::mem::take(&mut self.from_client);
        let mut followed = Ok(());
        let fed = framer.feed(bytes, most_of_client, |message| {
            if followed.is_ok() {
                followed = self.requested(message, now);
            }
        });
        self.from_client = framer;
        self.or_lose(fed.map_err(Unknown::from).and(followed));
    }

    fn server_sent(&mut self, bytes: &[u8], now: Instant) {
        if self.is_lost {
            return;
        }
        let mut framer = std::mem::take(&mut self.from_server);
        let mut followed = Ok(());
        let fed = framer.feed(bytes, most_of_server, |message| {
            if followed.is_ok() {
                followed = self.answered(message, now);
            }
        });
        self.from_server = framer;
        self.or_lose(fed.map_err(Unknown::from).and(followed));
    }

    fn close(&mut self, by_server: bool, now: Instant) {
        if !self.is_lost {
            self.skip_copy_ends();
            if let Some(Request::Query(running) | Request::Execute(running)) = self.pop()
                && let Some(error) = running.error.or(by_server.then_some(CONNECTION_FAILURE))
            {
                self.finish(Running { error: Some(error), ..*running }, now);
            }
        }
        self.report(now, false);
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
        self.pending.len() >= MOST_PENDING
    }
}

/// Returns how many bytes of a client's message are kept. Passwords and rows are not kept.
fn most_of_client(tag: u8) -> usize {
    match tag {
        b'Q' | b'P' | b'B' => LONGEST,
        b'E' | b'D' | b'C' => 4096,
        b'F' => 4,
        _ => 0,
    }
}

fn most_of_server(tag: u8) -> usize {
    match tag {
        b'C' => 128,
        b'E' | b'S' => 8192,
        b't' => 2 + 4 * 65_535,
        b'Z' => 1,
        _ => 0,
    }
}

fn c_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = memchr::memchr(0, rest)?;
    let text = &rest[..end];
    *rest = &rest[end + 1..];
    Some(text)
}

/// Parses a list of types, which begins with their number.
fn types(body: &[u8]) -> Box<[u32]> {
    let rest = body.get(2..).unwrap_or_default();
    rest.as_chunks::<4>().0.iter().map(|oid| u32::from_be_bytes(*oid)).collect()
}

fn error_code(body: &[u8]) -> [u8; 5] {
    sqlstate(body).as_bytes().try_into().unwrap_or(*b"XX000")
}

type Bound = (Vec<Option<Vec<u8>>>, Option<Obstacle>);

/// Parses the formats and values of a Bind. Returns None if they are damaged.
fn bound(prepared: &Prepared, rest: &[u8]) -> Option<Bound> {
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let (formats, rest) = rest.split_at_checked(2 * usize::from(u16::from_be_bytes(*count)))?;
    let formats = formats.as_chunks::<2>().0;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    let (mut values, mut obstacle) = (Vec::new(), None);
    for place in 0..usize::from(u16::from_be_bytes(*count)) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let length = i32::from_be_bytes(*length);
        if length < 0 {
            values.push(None);
            continue;
        }
        let (value, after) = rest.split_at_checked(length as usize)?;
        rest = after;
        let format = if formats.len() == 1 { formats.first() } else { formats.get(place) };
        let is_text = format.is_none_or(|format| *format == [0, 0]);
        let text =
            if is_text { Some(value.to_vec()) } else { values::text(prepared.kind(place), value).map(Vec::from) };
        if text.is_none() {
            obstacle = Some(Obstacle::BinaryParameters);
        }
        values.push(Some(text.unwrap_or_default()));
    }
    Some((values, obstacle))
}

#[cfg(test)]
mod tests;
