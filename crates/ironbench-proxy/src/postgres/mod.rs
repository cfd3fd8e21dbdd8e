//! Follows the messages of a PostgreSQL session, and reports its statements.
//!
//! The module `requests` handles the client's messages, and `replies` the server's. Requests are kept until the server
//! has answered them. Source: PostgreSQL 18 documentation, 54.2 "Message Flow".

mod prepared;
mod replies;
mod requests;
mod values;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ironbench_capture::observed::{Event, Observed, Obstacle, SessionNames};
use ironbench_core::wire::postgres::protocol::backend::parameter_status;

use self::prepared::Prepared;
use self::replies::kept_server_bytes;
use self::requests::kept_client_bytes;
use crate::framing::{Framer, Invalid};
use crate::{Instant, Tracker, WallClock};

/// If this many requests are unanswered, the proxy stops reading from the client. Otherwise requests would fill the
/// memory if the server does not answer. This causes no deadlock. PostgreSQL sends its answers when they have 8 kB or
/// earlier, so it has answered some of so many requests before it needs more.
const MAX_PENDING: usize = 1 << 16;
/// SQLSTATE of a statement whose server has closed the connection (connection_failure).
const CONNECTION_FAILURE: [u8; 5] = *b"08006";

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

/// State of a session, as derived from its messages.
#[derive(Debug)]
pub struct PostgresTracker {
    session: u32,
    names: Arc<SessionNames>,
    clock: WallClock,
    from_client: Framer,
    from_server: Framer,
    statements: HashMap<Arc<[u8]>, Arc<Prepared>>,
    portals: HashMap<Box<[u8]>, Portal>,
    /// Number of bytes of the portals whose first Execute was not sent.
    portal_bytes: usize,
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

/// Error for a message that the tracker does not know. The rest of the session cannot be tracked.
struct UnknownMessage;

impl From<Invalid> for UnknownMessage {
    fn from(_: Invalid) -> Self {
        Self
    }
}

type Tracked = Result<(), UnknownMessage>;

impl PostgresTracker {
    pub fn new(session: u32, names: SessionNames, clock: WallClock) -> Self {
        Self {
            session,
            names: Arc::new(names),
            clock,
            from_client: Framer::default(),
            from_server: Framer::default(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            portal_bytes: 0,
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

    /// Stops tracking the session if a message is unknown.
    fn lose_on_error(&mut self, tracked: Tracked) {
        if tracked.is_err() {
            self.is_lost = true;
            self.statements.clear();
            self.clear_portals();
            self.pending.clear();
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
            types: Vec::new(),
            duration_us: Some(now.saturating_sub(start) / 1000),
            rows: Some(running.rows),
            generated: None,
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
        self.report_ended(now, in_block);
        self.in_block = in_block;
    }

    /// Reports the last statement, which has lasted until `now`.
    fn report_ended(&mut self, now: Instant, leaves_block: bool) {
        if let Some((start, mut ended)) = self.ended.take() {
            ended.duration_us = Some(now.saturating_sub(start) / 1000);
            ended.leaves_block = Some(leaves_block);
            self.events.push(Event::Statement(ended));
        }
        self.ended_at = now;
    }

    /// Handles a ParameterStatus, which reports a setting of the session.
    fn parameter_changed(&mut self, body: &[u8]) {
        match parameter_status(body) {
            Ok(("application_name", application)) if application.as_bytes() != self.names.application => {
                let SessionNames { user, database, .. } = &*self.names;
                let application = application.as_bytes().to_vec();
                self.names = Arc::new(SessionNames { user: user.clone(), database: database.clone(), application });
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
        let mut tracked = Ok(());
        let fed = framer.feed(bytes, kept_client_bytes, |message| {
            if tracked.is_ok() {
                tracked = self.client_message(message, now);
            }
        });
        self.from_client = framer;
        self.lose_on_error(fed.map_err(UnknownMessage::from).and(tracked));
    }

    fn server_sent(&mut self, bytes: &[u8], now: Instant) {
        if self.is_lost {
            return;
        }
        let mut framer = std::mem::take(&mut self.from_server);
        let mut tracked = Ok(());
        let fed = framer.feed(bytes, kept_server_bytes, |message| {
            if tracked.is_ok() {
                tracked = self.server_message(message, now);
            }
        });
        self.from_server = framer;
        self.lose_on_error(fed.map_err(UnknownMessage::from).and(tracked));
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
        self.report_ended(now, false);
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

#[cfg(test)]
mod tests;
