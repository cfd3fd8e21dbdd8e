//! A blocking session, used for everything outside the measured window.
//! The statements are operations as `operation` parses them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgbench_script::Piece;

use super::{
    ber::Malformed,
    channel::Channel,
    connect::{Connected, Connector},
    fault::{Fault, number, server_at},
    ldif::Records,
    message::{self, Done, code, op},
    operation::{Operation, Verb},
};
use crate::wire::{
    address::Address,
    interrupt::{Interrupt, wish},
    pipe::Pipe,
    rows::{Pushed, Rows, too_much},
    words::{late, shortened, unanswered},
};
use crate::{Error, Result};

/// Number of add operations of a bulk load that run at the same time.
const UNDER_WAY: usize = 32;
/// Size from which on collected requests are sent.
const PIECE: usize = 32 << 10;
/// Name of the running statement in messages.
const LOADING: &str = "loading entries";
/// Separator of the values of one attribute in a row.
const SEPARATOR: u8 = b'\n';

pub struct Session {
    channel: Channel,
    address: Address,
    base: String,
    /// Whether the connection is unusable.
    lost: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session {{ {} }}", self.address)
    }
}

impl Session {
    /// Connects a session. For errors see [`Connector::connect`]. `wanted` is called while connecting and while
    /// waiting.
    pub fn open_unless(connector: &Connector, wanted: Box<dyn FnMut() -> bool + Send>) -> Result<Self> {
        let wish = wish(wanted);
        let connected = connector.connect_unless(Some(&wish))?;
        let mut session = Self::new(connected, connector);
        session.channel.interrupt = Some(Interrupt::new(wish, None));
        Ok(session)
    }

    /// Makes statements also fail if the server is silent for `silence` and then does not answer a new connection. Such
    /// a server hangs, or its machine is gone without closing the connection.
    pub fn give_up_when_frozen(&mut self, silence: Duration, connector: &Connector) {
        let connector = connector.clone();
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.watch(silence, Arc::new(move || connector.answers()));
        }
    }

    pub fn new(connected: Connected, connector: &Connector) -> Self {
        let Connected { stream, unread } = connected;
        let mut channel = Channel::new(Pipe::resume(stream, unread));
        // Skip the message IDs that the bind used.
        for _ in 0..16 {
            channel.next_id();
        }
        Self { channel, address: connector.address().clone(), base: connector.base().to_owned(), lost: false }
    }

    /// Sets the deadline of statements, or removes it. A statement that exceeds the deadline loses the connection.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.channel.deadline = deadline;
    }

    pub fn is_tls(&self) -> bool {
        self.channel.tls.is_some()
    }

    /// Runs one operation. Returns the entries of a search: the DN and then the attributes requested by name.
    /// Also returns how many entries the operation found or changed.
    ///
    /// # Errors
    /// Input: the operation is malformed.
    /// Failure: the server rejected it (with its result code as the number), or the connection was lost.
    pub fn run(&mut self, line: &str) -> Result<(Rows, u64)> {
        let operation = self.send(line)?;
        let mut columns = vec!["dn".to_owned()];
        columns.extend(operation.attributes.iter().cloned());
        self.collect(line, &operation, Rows::new(columns))
    }

    /// Runs an operation as `run` does, but only counts the entries.
    pub fn count(&mut self, line: &str) -> Result<u64> {
        let operation = self.send(line)?;
        Ok(self.collect(line, &operation, Rows::counted(1))?.0.len() as u64)
    }

    fn send(&mut self, line: &str) -> Result<Operation> {
        if self.lost {
            return Err(Error::failure(server_at(&self.address), "the connection is closed"));
        }
        let wrong = |cause: String| Error::input(subject(line), cause);
        let operation = Operation::compile(&[Piece::Text(line.to_owned())], &self.base).map_err(wrong)?;
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.rearm();
        }
        let id = self.channel.next_id();
        operation.plain(id, &mut self.channel.output).map_err(wrong)?;
        self.channel.flush().map_err(|error| self.lose(error.into(), line))?;
        Ok(operation)
    }

    fn collect(&mut self, line: &str, operation: &Operation, mut rows: Rows) -> Result<(Rows, u64)> {
        loop {
            match self.answer(operation, &mut rows) {
                Ok(None) => {}
                Ok(Some(done)) if operation.succeeded(done.code) => {
                    let changed = if operation.verb.writes() { 1 } else { rows.len() as u64 };
                    // A comparison returns its result as one row.
                    if operation.verb == Verb::Compare {
                        let mut found = Rows::new(vec!["found".to_owned()]);
                        let word: &[u8] = if done.code == code::COMPARE_TRUE { b"true" } else { b"false" };
                        let _ = found.push::<Malformed>(std::iter::once(Ok(Some(word))));
                        return Ok((found, 0));
                    }
                    return Ok((rows, changed));
                }
                Ok(Some(done)) => return Err(refused(&done, line)),
                Err(fault) => return Err(self.lose(fault, line)),
            }
        }
    }

    /// Handles one message. Returns the result when the operation has ended.
    fn answer(&mut self, operation: &Operation, rows: &mut Rows) -> std::result::Result<Option<Done>, Fault> {
        let message = self.channel.next()?;
        if message.id != self.channel.id() {
            return Err(Malformed::Nonsense.into());
        }
        match message.tag {
            op::ENTRY => {
                let mut found: Vec<Option<Vec<u8>>> = vec![None; operation.attributes.len()];
                let dn = message::entry(&message.body, |name, value| {
                    let asked = |wanted: &String| wanted.as_bytes().eq_ignore_ascii_case(name);
                    if let Some(place) = operation.attributes.iter().position(asked) {
                        let values = found[place].get_or_insert_default();
                        if !values.is_empty() {
                            values.push(SEPARATOR);
                        }
                        values.extend_from_slice(value);
                    }
                })?;
                let values = std::iter::once(Some(dn)).chain(found.iter().map(Option::as_deref));
                // A row that is only counted may have any number of values.
                match rows.push::<Malformed>(values.map(Ok))? {
                    Pushed::Taken | Pushed::Misfit => Ok(None),
                    Pushed::TooMuch => Err(too_much().into()),
                }
            }
            op::REFERENCE | op::INTERMEDIATE => Ok(None),
            tag if tag == operation.verb.answer() => Ok(Some(message::done(&message.body)?)),
            _ => Err(Malformed::Nonsense.into()),
        }
    }

    /// Executes the records of an LDIF, several adds at a time. Returns how many it executed.
    ///
    /// # Errors
    /// Input: the data are not LDIF. Failure: the server rejected a record; earlier records have taken effect.
    pub fn copy_in(&mut self, data: &[u8]) -> Result<u64> {
        let text = std::str::from_utf8(data).map_err(|_| Error::input("LDIF", "is not UTF-8"))?;
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.rearm();
        }
        let mut under_way = VecDeque::new();
        let mut done = 0;
        let mut wrong = None;
        for record in Records::new(text) {
            let record = match record {
                Ok(record) => record,
                Err(cause) => {
                    wrong = Some(Error::input("LDIF", cause));
                    break;
                }
            };
            let dn = String::from_utf8_lossy(&record.dn).into_owned();
            let (name, verb) = (plain(&dn), record.verb());
            // A server may process several operations of a connection concurrently (RFC 4511, 3.1). Therefore the
            // addition of an entry waits for those of its ancestors, and a change waits for everything before it.
            let waits = |one: &Pending| verb != Verb::Add || one.verb != Verb::Add || is_below(&name, &one.name);
            while wrong.is_none() && under_way.iter().any(waits) {
                self.channel.flush().map_err(|error| self.lose(error.into(), LOADING))?;
                wrong = self.answered(&mut under_way)?;
                done += u64::from(wrong.is_none());
            }
            if wrong.is_some() {
                break;
            }
            let id = self.channel.next_id();
            record.request(id, &mut self.channel.output);
            under_way.push_back(Pending { id, verb, dn, name });
            if self.channel.output.len() >= PIECE || under_way.len() >= UNDER_WAY {
                self.channel.flush().map_err(|error| self.lose(error.into(), LOADING))?;
            }
            while under_way.len() >= UNDER_WAY && wrong.is_none() {
                wrong = self.answered(&mut under_way)?;
                done += u64::from(wrong.is_none());
            }
            if wrong.is_some() {
                break;
            }
        }
        self.channel.flush().map_err(|error| self.lose(error.into(), LOADING))?;
        while !under_way.is_empty() {
            let next = self.answered(&mut under_way)?;
            done += u64::from(next.is_none());
            wrong = wrong.or(next);
        }
        wrong.map_or(Ok(done), Err)
    }

    /// Waits until one of the requests ends. Returns why it was rejected, or None if it succeeded.
    fn answered(&mut self, under_way: &mut VecDeque<Pending>) -> Result<Option<Error>> {
        let lost = |session: &mut Self, fault| session.lose(fault, LOADING);
        let message = self.channel.next().map_err(|fault| lost(self, fault))?;
        let place = under_way.iter().position(|one| one.id == message.id && message.tag == one.verb.answer());
        let Some(place) = place else {
            return Err(lost(self, Malformed::Nonsense.into()));
        };
        let Pending { verb, dn, .. } = under_way.remove(place).expect("found just now");
        let done = message::done(&message.body).map_err(|malformed| lost(self, malformed.into()))?;
        let subject = || format!("{} {dn}", verb.name());
        Ok((done.code != code::SUCCESS).then(|| Error { subject: subject(), ..refused(&done, "") }))
    }

    /// Words the error of a lost connection, and marks the session as unusable.
    fn lose(&mut self, fault: Fault, line: &str) -> Error {
        self.lost = true;
        let statement = shown(line);
        let cause = match fault {
            fault if fault.is_interrupt() => format!("interrupted during: {statement}"),
            Fault::Server(done) => format!("the server ended the connection: {done}; operation: {statement}"),
            Fault::Io(error) if error.kind() == std::io::ErrorKind::TimedOut && self.channel.is_late() => {
                late(&statement)
            }
            Fault::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => unanswered(&statement),
            Fault::Io(_) => format!("the server closed the connection during: {statement}"),
            fault => format!("{} during: {statement}", fault.into_io()),
        };
        Error::failure(server_at(&self.address), cause)
            .hint("see the server's log: the server may have crashed or been stopped")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.lost {
            message::unbind(&mut self.channel.output);
            self.channel.interrupt = None;
            self.channel.deadline = Some(std::time::Instant::now() + std::time::Duration::from_millis(100));
            let _ = self.channel.flush();
        }
    }
}

/// A record's request that has not been answered.
struct Pending {
    id: i32,
    verb: Verb,
    dn: String,
    /// The DN, normalised by the function `plain`.
    name: String,
}

/// Normalises a DN for comparisons: lower case, without blanks after its commas.
fn plain(dn: &str) -> String {
    dn.to_lowercase().split(',').map(str::trim_start).collect::<Vec<_>>().join(",")
}

/// Whether the entry of the first normalised DN is a descendant of the second's.
fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|rest| rest.ends_with(','))
}

/// Returns the subject of an error about an operation.
fn subject(line: &str) -> String {
    format!("operation {}", shown(line))
}

/// Shortens an operation to one line, without the password in a bind or an entry.
pub fn shown(line: &str) -> String {
    let line = line.trim_start();
    let is_bind = line.get(..4).is_some_and(|verb| verb.eq_ignore_ascii_case("bind"));
    match line.split_once('?') {
        Some((before, _)) if is_bind => format!("{}?…", shortened(before)),
        _ => shortened(line),
    }
}

fn refused(done: &Done, line: &str) -> Error {
    let hint = match done.code {
        code::CONFIDENTIALITY_REQUIRED => "use TLS (tls=require, or ldaps://)",
        code::REFERRAL => "use the server that has the entries: ironbench does not follow referrals",
        50 => "bind as a user with this permission",
        53 => "use a base DN of this server: this one may not exist there",
        80 => "see the server's log; its map may be full (maxsize)",
        _ => "",
    };
    Error { number: number(done), ..Error::failure(subject(line), done.to_string()).hint(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_waits_for_those_above_it_however_they_are_written() {
        let above = plain("ou=Directory, dc=example,DC=com");
        assert!(is_below(&plain("cn=a,ou=work,OU=directory,dc=example, dc=com"), &above));
        assert!(!is_below(&plain("ou=directory,dc=example,dc=com"), &above), "it is the entry itself");
        assert!(!is_below(&plain("ou=other,dc=example,dc=com"), &above));
        assert!(!is_below(&plain("ou=my-ou=directory,dc=example,dc=com"), &above));
    }

    #[test]
    fn an_operation_in_a_message_shows_no_password() {
        assert_eq!(shown(" Bind cn=a?secret"), "Bind cn=a?…");
        assert_eq!(shown("add cn=a?userPassword=secret"), "add cn=a?userPassword…");
        assert_eq!(shown("delete cn=a"), "delete cn=a");
    }
}
