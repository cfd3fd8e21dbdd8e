//! Operations of a blocking session, as `operation` parses them.

use std::collections::VecDeque;

use pgbench_script::Piece;

use super::{
    ber::Malformed,
    connect::{Fault, Ldap},
    ldif::Records,
    message::{self, Done, code, op},
    operation::{Operation, Verb},
};
use crate::wire::{
    display::shortened,
    protocol::{ErrorCodes, ServerProtocol},
    rows::{Pushed, Rows, too_much},
    session::{Outcome, Session, SessionProtocol},
};
use crate::{Error, Result};

/// Number of add operations that a bulk load keeps in flight.
const UNDER_WAY: usize = 32;
/// Number of collected bytes at which requests are sent.
const PIECE: usize = 32 << 10;
/// Name of the running statement in messages.
const LOADING: &str = "loading entries";
/// Separator of the values of one attribute in a row.
const SEPARATOR: u8 = b'\n';

impl SessionProtocol for Ldap {
    const NAME: &'static str = "directory server";
    const REQUEST: &'static str = "operation";

    type Request = Operation;

    fn request(session: &mut Session<Self>, line: &str) -> Result<Operation> {
        let wrong = |cause: String| Error::input(subject(line), cause);
        let base = &session.connector.settings.base;
        let operation = Operation::compile(&[Piece::Text(line.to_owned())], base).map_err(wrong)?;
        let id = session.channel.next_id();
        operation.plain(id, &mut session.channel.output).map_err(wrong)?;
        Ok(operation)
    }

    /// Reads the reply to an operation. The rows are the entries of a search. A row contains the DN and the attributes
    /// requested by name. Also returns how many entries the operation found or changed.
    fn collect(
        session: &mut Session<Self>,
        line: &str,
        operation: &Operation,
        mut outcome: Outcome,
    ) -> Result<Outcome> {
        let mut columns = vec!["dn".to_owned()];
        columns.extend(operation.attributes.iter().cloned());
        outcome.rows = outcome.rows.following(columns);
        let done = loop {
            match session.answer(operation, &mut outcome.rows) {
                Ok(None) => {}
                Ok(Some(done)) => break done,
                Err(fault) => return Err(session.lose(fault, line)),
            }
        };
        if !operation.succeeded(done.code) {
            return Err(refused(&done, line));
        }
        // A comparison returns `true` or `false` as one row.
        if operation.verb == Verb::Compare {
            outcome.rows = Rows::new(vec!["found".to_owned()]);
            let word: &[u8] = if done.code == code::COMPARE_TRUE { b"true" } else { b"false" };
            let _ = outcome.rows.push::<Malformed>(std::iter::once(Ok(Some(word))));
            return Ok(outcome);
        }
        outcome.affected = if operation.verb.writes() { 1 } else { outcome.rows.len() as u64 };
        Ok(outcome)
    }

    /// Executes the records of an LDIF text. Several adds are in flight at a time. Returns how many records were
    /// executed.
    ///
    /// # Errors
    /// Input: the data are not LDIF. Failure: the server rejected a record. Earlier records have taken effect.
    fn copy_in(session: &mut Session<Self>, _: &str, data: &[u8]) -> Result<u64> {
        let text = std::str::from_utf8(data).map_err(|_| Error::input("LDIF", "is not UTF-8"))?;
        if let Some(interrupt) = session.channel.interrupt.as_mut() {
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
            // A server may process several operations of a connection concurrently (RFC 4511, 3.1). An add therefore
            // waits for earlier changes, and for the adds of its ancestors. A change waits for all earlier operations.
            let waits = |one: &Pending| verb != Verb::Add || one.verb != Verb::Add || is_below(&name, &one.name);
            while wrong.is_none() && under_way.iter().any(waits) {
                session.channel.flush().map_err(|error| session.lose(error.into(), LOADING))?;
                wrong = session.answered(&mut under_way)?;
                done += u64::from(wrong.is_none());
            }
            if wrong.is_some() {
                break;
            }
            let id = session.channel.next_id();
            record.request(id, &mut session.channel.output);
            under_way.push_back(Pending { id, verb, dn, name });
            if session.channel.output.len() >= PIECE || under_way.len() >= UNDER_WAY {
                session.channel.flush().map_err(|error| session.lose(error.into(), LOADING))?;
            }
            while under_way.len() >= UNDER_WAY && wrong.is_none() {
                wrong = session.answered(&mut under_way)?;
                done += u64::from(wrong.is_none());
            }
            if wrong.is_some() {
                break;
            }
        }
        session.channel.flush().map_err(|error| session.lose(error.into(), LOADING))?;
        while !under_way.is_empty() {
            let next = session.answered(&mut under_way)?;
            done += u64::from(next.is_none());
            wrong = wrong.or(next);
        }
        wrong.map_or(Ok(done), Err)
    }

    /// Returns no codes. An error with a number would mean that the session stays usable.
    fn codes_when_ended(_: &Done) -> ErrorCodes<'_> {
        ErrorCodes { sqlstate: "", number: 0 }
    }

    fn terminate(output: &mut Vec<u8>) {
        message::unbind(output);
    }

    fn shown(line: &str) -> String {
        shown(line)
    }
}

impl Session<Ldap> {
    /// Handles one message. Returns the result when the operation has ended.
    fn answer(&mut self, operation: &Operation, rows: &mut Rows) -> std::result::Result<Option<Done>, Fault> {
        let id = self.channel.counter;
        let message = self.channel.next()?;
        if message.id != id {
            return Err(Malformed::Invalid.into());
        }
        match message.tag {
            op::ENTRY => {
                let mut found: Vec<Option<Vec<u8>>> = vec![None; operation.attributes.len()];
                let dn = message::entry(message.body, |name, value| {
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
                // A row may have the wrong number of values if rows are only counted.
                match rows.push::<Malformed>(values.map(Ok))? {
                    Pushed::Taken | Pushed::Misfit => Ok(None),
                    Pushed::TooMuch => Err(too_much().into()),
                }
            }
            op::REFERENCE | op::INTERMEDIATE => Ok(None),
            tag if tag == operation.verb.answer() => Ok(Some(message::done(message.body)?)),
            _ => Err(Malformed::Invalid.into()),
        }
    }

    /// Waits until one of the requests ends. Returns an error if the server rejected it. Returns None if it succeeded.
    fn answered(&mut self, under_way: &mut VecDeque<Pending>) -> Result<Option<Error>> {
        let (pending, done) = self.next_done(under_way).map_err(|fault| self.lose(fault, LOADING))?;
        let Pending { verb, dn, .. } = pending;
        let subject = || format!("{} {dn}", verb.name());
        Ok((done.code != code::SUCCESS).then(|| Error { subject: subject(), ..refused(&done, "") }))
    }

    fn next_done(&mut self, under_way: &mut VecDeque<Pending>) -> std::result::Result<(Pending, Done), Fault> {
        let message = self.channel.next()?;
        let place = under_way.iter().position(|one| one.id == message.id && message.tag == one.verb.answer());
        let pending = place.and_then(|place| under_way.remove(place)).ok_or(Malformed::Invalid)?;
        Ok((pending, message::done(message.body)?))
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

/// Whether the entry `name` is a descendant of the entry `above`. Both DNs must be normalised.
fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|rest| rest.ends_with(','))
}

/// Returns the subject of an error about an operation.
fn subject(line: &str) -> String {
    format!("operation {}", shown(line))
}

/// Shortens an operation to one line, without the password in a bind or an entry.
fn shown(line: &str) -> String {
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
    Error { number: Ldap::codes(done).number, ..Error::failure(subject(line), done.to_string()).hint(hint) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::wire::{channel::Channel, connector::Connector, pipe::Pipe};

    #[test]
    fn a_lost_connection_has_no_result_code() {
        let settings = r#"{"host": "h", "port": 1, "ldaps": false, "tls": "disable", "mechanism": "simple"}"#;
        let connector = Connector::new(serde_json::from_str(settings).unwrap()).unwrap();
        let (client, mut server) = UnixStream::pair().unwrap();
        let channel = Channel::new(Pipe::new(client.into(), None));
        let mut session = Session::<Ldap> { channel, connector, state: (), lost: false };
        // A notice of disconnection, because the server is unavailable (code 52).
        server.write_all(&[0x30, 12, 2, 1, 0, op::EXTENDED_ANSWER, 7, 10, 1, 52, 4, 0, 4, 0]).unwrap();
        let error = session.query("delete cn=a").unwrap_err();
        assert!(error.cause.starts_with("the server ended the connection: "), "{error}");
        assert!(error.cause.ends_with("; operation: delete cn=a"), "{error}");
        assert_eq!((error.number, session.lost), (0, true));
    }

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
