//! Runs scripts on an LDAP directory. Each command is an operation, as `wire::ldap::operation` parses it.
//!
//! Every operation takes effect separately, so a failed transaction cannot be rolled back. If an operation does not end
//! with success, the transaction fails and its remaining commands are skipped. The client then continues with its next
//! transaction. A transaction is retried only after the result code `busy`.
//!
//! The operations of a pipeline are sent together. The server may answer them in any order.

mod operations;
mod replay;

pub use operations::Operations;
pub use replay::{AccessLogReplay, complaint};

use super::jobs::Next;
use super::reconnector::Lifetime;
use super::script::{Action, SCRIPT_ERROR, ScriptClient};
use super::transaction::{Ending, Step, Transaction, UNEXPECTED};
use crate::measure::directory::Answers;
use crate::measure::{Tally, clock};
use crate::wire::ldap::OwnBind;
use crate::wire::ldap::ber::Malformed;
use crate::wire::ldap::message::{self, Message, code, op};
use crate::wire::ldap::operation::{Operation, Verb};
use crate::wire::transport::Mailbox;
use operations::StoredAttribute;
use pgbench_script::{Random, ResultUse, Sql, Variables};

/// Message ID of the first request, above the message IDs of the bind.
const FIRST_ID: i32 = 100;

/// A request that has not been answered yet.
struct PendingRequest<'p> {
    id: i32,
    operation: &'p Operation,
    /// Index of the request's command in the script.
    at: usize,
    sent: u64,
    /// Number of entries that the search has returned so far.
    entries: u64,
}

/// An error that makes the transaction fail.
struct OperationError {
    class: String,
    retryable: bool,
    cause: String,
    at: usize,
}

pub struct LdapScript<'p> {
    script: ScriptClient<'p>,
    operations: &'p Operations,
    /// Generates the random letters in values.
    random: Random,
    id: i32,
    pending: Vec<PendingRequest<'p>>,
    in_pipeline: bool,
    /// The search whose entries are stored in variables.
    storing_command: Option<&'p Sql>,
    /// Number of entries received so far for the search in progress.
    entries: u64,
    refused: Option<OperationError>,
    timed: bool,
    /// Counts requests, to determine when the client reconnects.
    lifetime: Lifetime,
    /// The request that binds the client as the connection's own user again. The value is None if the client stays
    /// bound as another user.
    own: Option<&'p OwnBind>,
    /// Whether the client has tried to bind as another user. False again when it is bound as the connection's own user.
    is_others: bool,
    /// Message ID of the pending bind as the connection's own user, or None if no such bind is pending.
    back: Option<i32>,
}

impl<'p> LdapScript<'p> {
    /// Creates a client. For `reconnect` see [`crate::drive::plan::Engine::Ldap`].
    pub fn new(
        script: ScriptClient<'p>,
        operations: &'p Operations,
        random: Random,
        timed: bool,
        reconnect: u64,
    ) -> Self {
        Self {
            script,
            operations,
            random,
            id: FIRST_ID,
            pending: Vec::new(),
            in_pipeline: false,
            storing_command: None,
            entries: 0,
            refused: None,
            timed,
            lifetime: Lifetime::new(reconnect),
            own: None,
            is_others: false,
            back: None,
        }
    }

    /// Sets the request that binds the client as the connection's own user again. See
    /// [`crate::drive::plan::Engine::Ldap`].
    pub fn binding_back(self, own: Option<&'p OwnBind>) -> Self {
        Self { own, ..self }
    }

    /// Runs the script up to the next message, sleep or end.
    #[inline]
    fn continue_script(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        loop {
            match self.script.advance() {
                Action::Sql(sql) => {
                    if let Err(step) = self.command(sql, mailbox, tally) {
                        return step;
                    }
                    if !self.in_pipeline {
                        return Step::Send;
                    }
                }
                Action::End => return self.end(true, tally),
                Action::Sleep(ns) => return Step::Sleep(ns),
                Action::Fault(cause) => return self.fault(&cause, mailbox, tally),
                Action::StartPipeline => self.in_pipeline = true,
                Action::SyncPipeline if !self.pending.is_empty() => return Step::Send,
                Action::SyncPipeline => {}
                Action::EndPipeline => {
                    self.in_pipeline = false;
                    if !self.pending.is_empty() {
                        return Step::Send;
                    }
                }
            }
        }
    }

    /// Appends the request of a command.
    #[inline]
    fn command(&mut self, sql: &'p Sql, mailbox: &mut Mailbox, tally: &mut Tally) -> Result<(), Step> {
        let operation = self.operations.get(sql);
        let id = self.next_id();
        let before = mailbox.outbox.len();
        let Self { script, random, .. } = self;
        if let Err(slot) = operation.request(id, &script.variables, random, &mut mailbox.outbox) {
            mailbox.outbox.truncate(before);
            let cause = format!("the variable :{} has no value", self.script.program.symbols.name(slot));
            return Err(self.fault(&cause, mailbox, tally));
        }
        self.storing_command = if matches!(sql.result_use, ResultUse::Discard) { None } else { Some(sql) };
        self.entries = 0;
        self.lifetime.count_use();
        let sent = if self.timed { clock::now() } else { 0 };
        self.pending.push(PendingRequest { id, operation, at: self.script.command_index(), sent, entries: 0 });
        Ok(())
    }

    #[inline]
    fn next_id(&mut self) -> i32 {
        let id = self.id;
        self.id = id.checked_add(1).unwrap_or(FIRST_ID);
        id
    }

    #[inline]
    fn end(&mut self, well: bool, tally: &mut Tally) -> Step {
        self.in_pipeline = false;
        Step::Ended(self.script.count_end(well, tally))
    }

    /// Handles an error of the script itself, which is never retried. Unsent operations of a pipeline are dropped.
    #[cold]
    fn fault(&mut self, cause: &str, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let script = &self.script;
        tally
            .failure(script.kind(), SCRIPT_ERROR, false, || script.script_error_message(script.command_index(), cause));
        self.pending.clear();
        mailbox.outbox.clear();
        self.end(false, tally)
    }

    /// Continues after every request has been answered.
    #[inline]
    fn answered(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        mailbox.outbox.clear();
        if let (true, Some(own)) = (self.is_others, self.own) {
            let id = self.next_id();
            own.request(id, &mut mailbox.outbox);
            self.back = Some(id);
            return Step::Send;
        }
        if let Some(refused) = self.refused.take() {
            return self.failed(&refused, mailbox, tally);
        }
        if let Some(Sql { result_use: ResultUse::Gset { .. }, .. }) = self.storing_command
            && self.entries != 1
        {
            let cause = format!("the search needs one entry, but the server returned {}", self.entries);
            let script = &self.script;
            tally.failure(script.kind(), SCRIPT_ERROR, false, || script.error_message(script.command_index(), &cause));
            return self.end(false, tally);
        }
        self.continue_script(mailbox, tally)
    }

    #[cold]
    fn failed(&mut self, refused: &OperationError, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let repeat = refused.retryable && self.script.retry(tally);
        let script = &self.script;
        let words = || script.error_message(refused.at, &refused.cause);
        if repeat {
            tally.error(&refused.class, words);
            self.in_pipeline = false;
            return self.continue_script(mailbox, tally);
        }
        tally.failure(script.kind(), &refused.class, refused.retryable, words);
        self.end(false, tally)
    }

    /// Handles all complete messages received.
    #[inline]
    fn read(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Result<(), String> {
        let received = mailbox.inbox.bytes();
        let mut input = received;
        while let Some(message) = message::next(&mut input).map_err(|malformed| malformed.to_string())? {
            self.take(message, tally)?;
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        Ok(())
    }

    #[inline]
    fn take(&mut self, message: Message<'_>, tally: &mut Tally) -> Result<(), String> {
        let told = |malformed: Malformed| malformed.to_string();
        if self.back == Some(message.id) {
            return self.bound_back(message);
        }
        let Some(place) = self.pending.iter().position(|pending| pending.id == message.id) else {
            return Err(unasked(message));
        };
        match message.tag {
            op::ENTRY => {
                self.entries += 1;
                self.pending[place].entries += 1;
                match self.storing_command {
                    Some(sql) => {
                        store_entry(self.operations.stored_attributes(sql), message.body, &mut self.script.variables)
                    }
                    None => Ok(()),
                }
                .map_err(told)
            }
            op::REFERENCE => {
                let at = self.pending[place].at;
                self.refused.get_or_insert_with(|| referred(at, &message::urls(message.body)));
                Ok(())
            }
            op::INTERMEDIATE => Ok(()),
            tag if tag == self.pending[place].operation.verb.answer() => {
                let code = message::code_of(message.body).map_err(told)?;
                let pending = self.pending.swap_remove(place);
                let well = pending.operation.succeeded(code);
                tally.commits += u64::from(well && pending.operation.verb.writes());
                tally.refused_changes += u64::from(!well && pending.operation.verb.writes());
                counted(pending.operation, code, pending.entries, &mut tally.directory);
                self.is_others |= pending.operation.verb == Verb::Bind;
                if self.timed {
                    tally.record_reply_time(self.script.command(pending.at), clock::now() - pending.sent, !well);
                }
                if !well {
                    let refused = refused(pending.at, message.body).map_err(told)?;
                    self.refused.get_or_insert(refused);
                }
                Ok(())
            }
            _ => Err(told(Malformed::Invalid)),
        }
    }

    /// Handles the answer to the bind as the connection's own user. Returns an error if the bind failed, because the
    /// client cannot continue then.
    fn bound_back(&mut self, message: Message<'_>) -> Result<(), String> {
        if message.tag != op::BOUND {
            return Err(unasked(message));
        }
        let done = message::done(message.body).map_err(|malformed| malformed.to_string())?;
        if let Some(own) = self.own {
            own.answered(&done)?;
        }
        (self.back, self.is_others) = (None, false);
        Ok(())
    }
}

/// Returns the error for a message that answers no request. A message with ID 0 is the server's notice of
/// disconnection.
#[cold]
fn unasked(message: Message<'_>) -> String {
    match message::done(message.body) {
        Ok(done) if message.id == 0 => format!("the server ended the session: {done}"),
        _ => UNEXPECTED.to_owned(),
    }
}

/// Counts the final answer to an operation. For a search, `entries` is the number of entries that it returned before.
#[inline]
fn counted(operation: &Operation, code: i32, entries: u64, answers: &mut Answers) {
    answers.success += u64::from(code == code::SUCCESS);
    answers.compare_true += u64::from(code == code::COMPARE_TRUE);
    answers.compare_false += u64::from(code == code::COMPARE_FALSE);
    if operation.verb == Verb::Search && operation.succeeded(code) {
        answers.size_limited += u64::from(code == code::SIZE_LIMIT_EXCEEDED);
        answers.search(entries);
    }
}

#[cold]
fn refused(at: usize, body: &[u8]) -> Result<OperationError, Malformed> {
    let done = message::done(body)?;
    let cause = match done.code {
        code::REFERRAL => format!("{done} (referrals are not followed)"),
        _ => done.to_string(),
    };
    Ok(OperationError { class: message::name(done.code).to_owned(), retryable: done.code == code::BUSY, cause, at })
}

#[cold]
fn referred(at: usize, urls: &str) -> OperationError {
    let cause = format!("the server returned a referral, and referrals are not followed: {urls}");
    OperationError { class: message::name(code::REFERRAL).to_owned(), retryable: false, cause, at }
}

/// Stores an entry's values in variables. If an attribute has several values, the first is stored.
fn store_entry(wanted: &[StoredAttribute], body: &[u8], variables: &mut Variables) -> Result<(), Malformed> {
    for one in wanted.iter().filter(|one| one.name != "dn") {
        variables.set_text(one.slot, b"");
    }
    let mut last: &[u8] = b"";
    let dn = message::entry(body, |name, value| {
        if last == name {
            return;
        }
        last = name;
        if let Some(one) = wanted.iter().find(|one| one.name.as_bytes().eq_ignore_ascii_case(name)) {
            variables.set_text(one.slot, value);
        }
    })?;
    if let Some(one) = wanted.iter().find(|one| one.name == "dn") {
        variables.set_text(one.slot, dn);
    }
    Ok(())
}

impl Transaction for LdapScript<'_> {
    #[inline]
    fn begin(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        mailbox.outbox.clear();
        self.script.begin();
        self.continue_script(mailbox, tally)
    }

    fn resume(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.continue_script(mailbox, tally)
    }

    #[inline]
    fn reply(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if let Err(cause) = self.read(mailbox, tally) {
            return Step::Broken(cause);
        }
        if self.pending.is_empty() && self.back.is_none() { self.answered(mailbox, tally) } else { Step::Receive }
    }

    fn job_queue(&self) -> Option<usize> {
        self.script.job_queue()
    }

    fn claim(&mut self, now: u64) -> Next {
        self.script.claim(now)
    }

    fn rest_ns(&mut self) -> u64 {
        self.script.rest_ns()
    }

    fn wants_reconnect(&self) -> bool {
        self.lifetime.is_over()
    }

    fn abandon(&mut self, inside: bool, cause: &str, tally: &mut Tally) -> Option<Ending> {
        self.pending.clear();
        (self.in_pipeline, self.refused, self.back) = (false, None, None);
        self.script.abandon(inside, cause, tally)
    }

    fn reconnected(&mut self) {
        self.lifetime.restart();
        self.is_others = false;
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        message::unbind(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        last_words(mailbox)
    }
}

/// Returns the server's notice that it ends the session, if it was received.
fn last_words(mailbox: &Mailbox) -> Option<String> {
    let mut input = mailbox.inbox.bytes();
    while let Ok(Some(message)) = message::next(&mut input) {
        if message.id == 0 {
            return message::done(message.body).ok().map(|done| done.to_string());
        }
    }
    None
}

#[cfg(test)]
mod tests;
