//! Runs scripts on MySQL and MariaDB: each command becomes a packet, and its reply determines how the script continues.
//!
//! Deadlocks, lock wait timeouts and MariaDB's "record has changed" are retried like serialization failures on
//! PostgreSQL. An open transaction is rolled back, and the whole transaction runs again with the same variables and
//! random numbers. The limit is `max_tries` attempts.
//!
//! After any other error, the transaction is rolled back and counts as failed. The client then continues with its next
//! transaction.

mod reply;
mod request;

pub use request::Statements;

use super::jobs::Next;
use super::plan::Protocol;
use super::reconnector::Lifetime;
use super::script::{Action, SCRIPT_ERROR, ScriptClient};
use super::transaction::{Ending, Step, Transaction, UNEXPECTED};
use crate::measure::{Tally, clock};
use crate::wire::mysql::protocol::backend::ServerError;
use crate::wire::mysql::protocol::frontend;
use crate::wire::transport::Mailbox;
use pgbench_script::{Sql, Value};
use reply::{Progress, Reply};
use request::Requests;

/// The request to which the awaited reply belongs.
#[derive(Debug, Clone, Copy)]
enum Pending<'p> {
    Script,
    /// A Prepare was sent, because the command is used for the first time. The command runs when it is prepared.
    Prepare(&'p Sql),
    /// The command cannot be executed, so a request to close its prepared statement was sent. The server does not reply
    /// to it.
    Close(&'p Sql),
    /// A ROLLBACK was sent after a failure. If `repeat`, the transaction is then retried. Otherwise it has failed.
    RollBack {
        repeat: bool,
    },
    Nothing,
}

pub struct MysqlScript<'p> {
    script: ScriptClient<'p>,
    requests: Requests<'p>,
    reply: Reply<'p>,
    pending: Pending<'p>,
    /// Whether each statement is timed.
    timed: bool,
    sent: u64,
    /// Counts transactions, to determine when the client reconnects.
    lifetime: Lifetime,
}

/// Number of the error for a command that the server cannot prepare. MySQL returns it for BEGIN, for example.
const NOT_PREPARABLE: u16 = 1295;

impl<'p> MysqlScript<'p> {
    /// Creates a client. `given` contains the variables that are set with `-D`. `cached` is true if the server omits
    /// column descriptions that have not changed.
    pub fn new(
        mut script: ScriptClient<'p>,
        protocol: Protocol,
        statements: &'p Statements,
        given: &[(String, String)],
        cached: bool,
        timed: bool,
        reconnect: u64,
    ) -> Self {
        // If the user defines a variable as an integer, its value is sent as an integer. It would also be an integer in
        // the SQL text.
        for (name, text) in given {
            if let Some(slot) = script.program.symbols.get(name)
                && let Ok(number) = text.parse::<i64>()
                && number.to_string() == *text
            {
                script.variables.set(slot, Value::Integer(number));
            }
        }
        Self {
            reply: Reply::new(statements, cached),
            script,
            requests: Requests::new(protocol, statements),
            pending: Pending::Nothing,
            timed,
            sent: 0,
            lifetime: Lifetime::new(reconnect),
        }
    }

    /// Runs the script up to the next packet, sleep or end.
    #[inline]
    fn continue_script(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        match self.script.advance() {
            Action::Sql(sql) => {
                if self.timed {
                    self.sent = clock::now();
                }
                self.command(sql, mailbox, tally)
            }
            Action::End => self.end_of_script(mailbox, tally),
            Action::Sleep(ns) => Step::Sleep(ns),
            Action::Fault(cause) => self.fault(&cause, mailbox, tally),
            Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {
                unreachable!("refused when the scripts were compiled")
            }
        }
    }

    #[inline]
    fn command(&mut self, sql: &'p Sql, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if let Some(cause) = self.requests.parameter_mismatch(sql) {
            return self.fault(&cause, mailbox, tally);
        }
        if self.requests.must_prepare(sql) {
            self.requests.prepare(sql, &mut mailbox.outbox);
            self.reply.expect_prepared(sql);
            self.pending = Pending::Prepare(sql);
        } else {
            let binary = self.requests.command(sql, &self.script.variables, &mut mailbox.outbox);
            self.reply.expect(sql, binary);
            self.pending = Pending::Script;
        }
        Step::Send
    }

    /// Records the time of the last command, whose reply is complete.
    #[cold]
    fn time(&self, tally: &mut Tally) {
        let command = self.script.command(self.script.command_index());
        tally.record_reply_time(command, clock::now() - self.sent, self.reply.has_error());
    }

    #[inline]
    fn end_of_script(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if self.reply.commits.is_in_transaction() {
            return self.fault("the script ends inside a transaction", mailbox, tally);
        }
        self.end(true, tally)
    }

    #[inline]
    fn end(&mut self, well: bool, tally: &mut Tally) -> Step {
        self.lifetime.count_use();
        Step::Ended(self.script.count_end(well, tally))
    }

    /// Handles a mistake in the script itself, which is never retried.
    #[cold]
    fn fault(&mut self, cause: &str, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let script = &self.script;
        tally
            .failure(script.kind(), SCRIPT_ERROR, false, || script.script_error_message(script.command_index(), cause));
        self.roll_back(false, mailbox, tally)
    }

    /// Handles an error that the engine returned for a command.
    #[cold]
    fn failed(&mut self, error: &ServerError, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if error.ends_session() {
            return Step::Broken(error.to_string());
        }
        let class = error.number.to_string();
        let retryable = error.is_retryable() || self.script.retries_after(&class);
        let at = self.script.command_index();
        let repeat = retryable && self.script.retry(tally);
        let script = &self.script;
        let words = || script.error_message(at, &error.to_string());
        if repeat {
            tally.error(&class, words);
        } else {
            tally.failure(script.kind(), &class, retryable, words);
        }
        self.roll_back(repeat, mailbox, tally)
    }

    fn roll_back(&mut self, repeat: bool, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if self.reply.commits.may_be_in_transaction() {
            mailbox.outbox.clear();
            frontend::query(&mut mailbox.outbox, "ROLLBACK");
            self.pending = Pending::RollBack { repeat };
            self.reply.expect_rollback();
            return Step::Send;
        }
        self.rolled_back(repeat, mailbox, tally)
    }

    fn rolled_back(&mut self, repeat: bool, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if repeat {
            mailbox.outbox.clear();
            return self.continue_script(mailbox, tally);
        }
        self.end(false, tally)
    }

    /// Continues after everything sent has been answered.
    #[inline]
    fn answered(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        mailbox.outbox.clear();
        // No reply is expected before the next command. The server has sent this packet on its own.
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Script => {
                if self.timed {
                    self.time(tally);
                }
                if let Some(error) = self.reply.take_error() {
                    return self.failed(&error, mailbox, tally);
                }
                if let Some(cause) = self.reply.result_fault() {
                    return self.fault(&cause, mailbox, tally);
                }
                self.continue_script(mailbox, tally)
            }
            Pending::Prepare(sql) => self.prepared(sql, mailbox, tally),
            Pending::RollBack { repeat } => {
                if let Some(error) = self.reply.take_error() {
                    return Step::Broken(format!("the server refused to roll back: {error}"));
                }
                self.rolled_back(repeat, mailbox, tally)
            }
            Pending::Close(_) | Pending::Nothing => unreachable!("nothing is read then"),
        }
    }

    #[cold]
    fn prepared(&mut self, sql: &'p Sql, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if let Some(error) = self.reply.take_error() {
            if error.number != NOT_PREPARABLE {
                return self.failed(&error, mailbox, tally);
            }
            self.requests.set_not_preparable(sql);
            return self.command(sql, mailbox, tally);
        }
        let made = self.reply.prepared();
        if usize::from(made.parameters) == sql.parameters.len() {
            self.requests.prepared(sql, made.statement);
            return self.command(sql, mailbox, tally);
        }
        // The prepared statement cannot be executed, so it is closed. Otherwise it would count against the server's
        // global max_prepared_stmt_count.
        self.requests.set_wrong_parameters(sql, made.parameters);
        frontend::close(&mut mailbox.outbox, made.statement);
        self.pending = Pending::Close(sql);
        Step::SendWithoutReply
    }
}

impl Transaction for MysqlScript<'_> {
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
        if let Pending::Close(_) | Pending::Nothing = self.pending {
            return Step::Broken(UNEXPECTED.to_owned());
        }
        match self.reply.read(mailbox, &mut self.script.variables, tally) {
            Ok(Progress::Answered) => self.answered(mailbox, tally),
            Ok(Progress::More) => Step::Receive,
            // A script cannot provide a file. An empty file is sent instead, which ends the reply.
            Ok(Progress::WantsFile(sequence)) => {
                mailbox.outbox.clear();
                frontend::packet(&mut mailbox.outbox, sequence, |_| {});
                Step::Send
            }
            Err(malformed) => Step::Broken(malformed.to_string()),
        }
    }

    fn message_sent(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Close(sql) => {
                mailbox.outbox.clear();
                self.command(sql, mailbox, tally)
            }
            _ => Step::Broken(UNEXPECTED.to_owned()),
        }
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
        self.pending = Pending::Nothing;
        self.script.abandon(inside, cause, tally)
    }

    /// Statements must be prepared again, because the session is new.
    fn reconnected(&mut self) {
        self.lifetime.restart();
        self.requests.forget_session();
        self.reply.forget_session();
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        frontend::quit(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        self.reply.last_words(mailbox)
    }
}
