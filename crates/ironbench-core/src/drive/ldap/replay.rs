//! Replays an access log. Operations run at their recorded times, on as many connections as were open at once in the
//! log.
//!
//! A client replays several recorded connections, one after the other, and runs one operation at a time. An operation
//! that becomes due while another runs has to wait, and its response time includes the wait.

use pgbench_script::{Piece, Random, Seeds};
use serde::{Deserialize, Serialize};

use super::{counted, last_words, refused, unasked};
use crate::drive::engines::{self, Poll};
use crate::drive::jobs::Next;
use crate::drive::outcome::Outcome;
use crate::drive::plan::{Engine, Plan};
use crate::drive::transaction::{Ending, Step, Transaction};
use crate::drive::{Control, Kind, work};
use crate::measure::Tally;
use crate::measure::clock::NEVER;
use crate::wire::Connected;
use crate::wire::ldap::ber::Malformed;
use crate::wire::ldap::message::{self, op};
use crate::wire::ldap::operation::{Operation, VERBS, Verb};
use crate::wire::ldap::{Ldap, OwnBind};
use crate::wire::transport::Mailbox;
use crate::{Error, Result};

/// The `work` of a drive plan that replays an access log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessLogReplay {
    /// The distinct operations, in the syntax of `wire::ldap::operation`.
    pub operations: Vec<String>,
    /// Operations of each client, in order. Clients without an entry do nothing.
    pub clients: Vec<Vec<Recorded>>,
}

/// A recorded operation. The fields are the nanoseconds since the start of the log, the index of the operation, and
/// whether a recorded connection starts with this operation.
pub type Recorded = (u64, usize, bool);

impl AccessLogReplay {
    /// Replays the operations.
    ///
    /// # Errors
    /// Input: an operation is malformed, or the engine is not a directory. Failure: the server cannot be reached.
    pub fn drive(&self, plan: &Plan, control: &Control, poll: Poll) -> Result<Outcome> {
        let Engine::Ldap { connection, io, bind_back, .. } = &plan.engine else {
            return Err(Error::input("replay", "LDAP operations need a directory server"));
        };
        let own = if *bind_back { Some(OwnBind::of(connection)?) } else { None };
        if self.clients.len() > plan.clients {
            let cause =
                format!("{} clients cannot replay {} simultaneous connections", plan.clients, self.clients.len());
            return Err(Error::input("replay", cause));
        }
        let operations = self.compiled(&connection.base)?;
        let verbs = verbs(&operations);
        let kinds: Vec<Kind> = verbs.iter().map(|verb| kind(verb.name())).collect();
        let seeds = Seeds::new(!plan.seed, plan.clients, true);
        work(plan, control, plan.threads, &kinds, |orders| {
            let client = |client: usize, _: &Connected<Ldap>| {
                let recorded = self.clients.get(client).map_or(&[][..], Vec::as_slice);
                Replayer::new(client, recorded, &operations, &verbs, seeds.client(client)).binding_back(own.as_ref())
            };
            engines::run_server(orders, connection, *io, true, client, poll)
        })
    }

    fn compiled(&self, base: &str) -> Result<Vec<Operation>> {
        let one =
            |text: &String| compiled(text, base).map_err(|cause| Error::input(format!("operation {text}"), cause));
        let operations: Vec<Operation> = self.operations.iter().map(one).collect::<Result<_>>()?;
        match self.clients.iter().flatten().find(|(_, number, _)| *number >= operations.len()) {
            Some((_, number, _)) => Err(Error::input("replay", format!("operation {number} does not exist"))),
            None => Ok(operations),
        }
    }
}

/// Returns what is wrong with an operation that has no variables. Returns an empty string if the operation is valid.
pub fn complaint(text: &str) -> String {
    compiled(text, "").err().unwrap_or_default()
}

fn compiled(text: &str, base: &str) -> std::result::Result<Operation, String> {
    Operation::compile(&[Piece::Text(text.to_owned())], base)
}

/// Returns the types of operation that occur in `operations`. Each type becomes a kind of transaction.
fn verbs(operations: &[Operation]) -> Vec<Verb> {
    let occurs = |verb: &Verb| operations.iter().any(|operation| operation.verb == *verb);
    VERBS.iter().map(|(_, verb)| *verb).filter(occurs).collect()
}

fn kind(name: &str) -> Kind {
    Kind { name: name.to_owned(), weight: 1, statements: 1, positions: Vec::new() }
}

struct Replayer<'p> {
    client: usize,
    recorded: &'p [Recorded],
    operations: &'p [Operation],
    /// The verb of each kind.
    verbs: &'p [Verb],
    /// Generates the random letters in values.
    random: Random,
    /// The start of the log on the local monotonic clock.
    origin: u64,
    /// Index in `recorded` of the next operation, or of the one in progress.
    at: usize,
    under_way: bool,
    /// Whether the open connection can be used for the next operation. False if that operation starts another recorded
    /// connection.
    connected: bool,
    id: i32,
    /// Number of entries that the search in progress has returned so far.
    entries: u64,
    /// The request that binds the client as the connection's own user again. See [`crate::drive::plan::Engine::Ldap`].
    own: Option<&'p OwnBind>,
    /// Whether the last bind as another user succeeded. The value is None if the client is bound as the connection's
    /// own user.
    bound: Option<bool>,
}

impl<'p> Replayer<'p> {
    fn new(
        client: usize,
        recorded: &'p [Recorded],
        operations: &'p [Operation],
        verbs: &'p [Verb],
        random: Random,
    ) -> Self {
        Self {
            client,
            recorded,
            operations,
            verbs,
            random,
            origin: 0,
            at: 0,
            under_way: false,
            connected: true,
            id: super::FIRST_ID,
            entries: 0,
            own: None,
            bound: None,
        }
    }

    fn binding_back(self, own: Option<&'p OwnBind>) -> Self {
        Self { own, ..self }
    }

    fn kind(&self) -> usize {
        let verb = self.operation().verb;
        self.verbs.iter().position(|one| *one == verb).expect("they are those of all operations")
    }

    fn operation(&self) -> &'p Operation {
        &self.operations[self.recorded[self.at].1]
    }

    fn due(&self, at: usize) -> u64 {
        self.recorded.get(at).map_or(NEVER, |(after, ..)| self.origin.saturating_add(*after))
    }

    fn next_id(&mut self) {
        self.id = self.id.checked_add(1).unwrap_or(super::FIRST_ID);
    }

    /// Returns the next step after messages were read. `done` is the result of `read`.
    fn over(&mut self, done: std::result::Result<Option<bool>, String>, tally: &mut Tally) -> Step {
        match done {
            Ok(None) => Step::Receive,
            Ok(Some(well)) => self.ended(well, tally),
            Err(cause) => Step::Broken(cause),
        }
    }

    fn ended(&mut self, well: bool, tally: &mut Tally) -> Step {
        let kind = self.kind();
        tally.kinds[kind].failed += u64::from(!well);
        self.at += 1;
        self.under_way = false;
        self.connected = !self.recorded.get(self.at).is_some_and(|(_, _, first)| *first);
        Step::Ended(Ending { kind, well, retries: 0 })
    }

    /// Handles all complete messages received. Returns None while the operation is incomplete. When the operation has
    /// ended, returns whether it succeeded.
    fn read(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> std::result::Result<Option<bool>, String> {
        let received = mailbox.inbox.bytes();
        let (mut input, mut over) = (received, None);
        let verb = self.operation().verb;
        while let Some(message) = message::next(&mut input).map_err(told)? {
            if message.id != self.id || over.is_some() {
                return Err(unasked(message));
            }
            match message.tag {
                op::ENTRY => self.entries += 1,
                op::INTERMEDIATE | op::REFERENCE => {}
                tag if tag == verb.answer() => {
                    let code = message::code_of(message.body).map_err(told)?;
                    let well = self.operation().succeeded(code);
                    tally.commits += u64::from(well && verb.writes());
                    tally.refused_changes += u64::from(!well && verb.writes());
                    counted(self.operation(), code, self.entries, &mut tally.directory);
                    self.entries = 0;
                    if !well {
                        self.failed(message.body, tally).map_err(told)?;
                    }
                    over = Some(well);
                }
                _ => return Err(told(Malformed::Invalid)),
            }
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        Ok(over)
    }

    #[cold]
    fn failed(&self, body: &[u8], tally: &mut Tally) -> std::result::Result<(), Malformed> {
        let refused = refused(self.at, body)?;
        let verb = self.operation().verb;
        let words =
            || format!("operation {} of client {}, a {}: {}", self.at + 1, self.client + 1, verb.name(), refused.cause);
        tally.failure(self.kind(), &refused.class, refused.retryable, words);
        Ok(())
    }
}

/// Handles messages from the server while no operation is in progress.
#[cold]
fn meanwhile(mailbox: &Mailbox) -> Step {
    match message::next(&mut mailbox.inbox.bytes()) {
        Ok(Some(message)) => Step::Broken(unasked(message)),
        Ok(None) => Step::Receive,
        Err(malformed) => Step::Broken(told(malformed)),
    }
}

/// Returns whether the bind as the connection's own user has been answered. Returns an error if the bind failed,
/// because the client cannot continue then.
fn bound_back(id: i32, own: &OwnBind, mailbox: &mut Mailbox) -> std::result::Result<bool, String> {
    let received = mailbox.inbox.bytes();
    let mut input = received;
    let Some(message) = message::next(&mut input).map_err(told)? else { return Ok(false) };
    if message.id != id || message.tag != op::BOUND {
        return Err(unasked(message));
    }
    own.answered(&message::done(message.body).map_err(told)?)?;
    let read = received.len() - input.len();
    mailbox.inbox.consume(read);
    Ok(true)
}

fn told(malformed: Malformed) -> String {
    malformed.to_string()
}

impl Transaction for Replayer<'_> {
    fn start(&mut self, origin: u64) {
        self.origin = origin;
    }

    fn begin(&mut self, mailbox: &mut Mailbox, _: &mut Tally) -> Step {
        mailbox.outbox.clear();
        self.next_id();
        self.under_way = true;
        let operation = self.operation();
        match operation.drawn(self.id, &mut self.random, &mut mailbox.outbox) {
            Ok(()) => Step::Send,
            Err(_) => Step::Broken("an operation of a log has a variable".to_owned()),
        }
    }

    fn resume(&mut self, _: &mut Mailbox, _: &mut Tally) -> Step {
        Step::Receive
    }

    fn reply(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if !self.under_way {
            return meanwhile(mailbox);
        }
        if let (Some(well), Some(own)) = (self.bound, self.own) {
            return match bound_back(self.id, own, mailbox) {
                Ok(false) => Step::Receive,
                Ok(true) => {
                    self.bound = None;
                    self.ended(well, tally)
                }
                Err(cause) => Step::Broken(cause),
            };
        }
        match (self.read(mailbox, tally), self.own) {
            (Ok(Some(well)), Some(own)) if self.operation().verb == Verb::Bind => {
                self.next_id();
                mailbox.outbox.clear();
                own.request(self.id, &mut mailbox.outbox);
                self.bound = Some(well);
                Step::Send
            }
            (done, _) => self.over(done, tally),
        }
    }

    /// Each client has its own queue, because only this client can continue its recorded connections.
    fn job_queue(&self) -> Option<usize> {
        Some(self.client)
    }

    fn claim(&mut self, now: u64) -> Next {
        match self.due(self.at) {
            due if due <= now => Next::Job { script: self.kind(), due },
            due => Next::NotBefore(due),
        }
    }

    fn not_started(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new((self.at + usize::from(self.under_way)..self.recorded.len()).map(|at| self.due(at)))
    }

    fn wants_reconnect(&self) -> bool {
        !self.connected
    }

    /// The server may close an idle connection. Between two recorded connections that makes no difference.
    fn lost_waiting(&mut self) -> bool {
        match self.recorded.get(self.at) {
            Some((_, _, first)) if *first || self.at == 0 => {
                self.connected = false;
                true
            }
            next => next.is_none(),
        }
    }

    fn reconnected(&mut self) {
        self.connected = true;
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        message::unbind(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        last_words(mailbox)
    }
}

#[cfg(test)]
mod tests;
