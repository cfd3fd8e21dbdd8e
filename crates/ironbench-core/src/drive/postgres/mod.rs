//! Runs scripts on PostgreSQL: each command becomes a message, and its reply determines how the script continues.
//!
//! Serialization failures and deadlocks are retried as in pgbench. An open transaction block is rolled back, and the
//! whole transaction runs again with the same variables and random numbers. The limit is `max_tries` attempts.
//!
//! After any other error, the transaction block is rolled back and the transaction counts as failed. If the error
//! occurs in the first second, it may end the trial. Otherwise the client continues with its next transaction. pgbench
//! behaves differently: the error ends the client, so the load decreases without notice.

mod reply;
mod request;

pub use request::Statements;

use super::jobs::Next;
use super::plan::Protocol;
use super::reconnector::Lifetime;
use super::script::{Action, SCRIPT_ERROR, ScriptClient};
use super::transaction::{Ending, Step, Transaction};
use crate::measure::{Tally, clock};
use crate::wire::postgres::protocol::backend::TransactionStatus;
use crate::wire::postgres::protocol::frontend;
use crate::wire::transport::Mailbox;
use reply::Reply;
use request::Requests;

/// The request to which the awaited replies belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Script,
    /// A ROLLBACK was sent after a failure. If `repeat`, the transaction is then retried. Otherwise it has failed.
    RollBack {
        repeat: bool,
    },
}

pub struct PostgresScript<'p> {
    script: ScriptClient<'p>,
    requests: Requests<'p>,
    reply: Reply<'p>,
    pending: Pending,
    /// Whether a pipeline is open. If so, commands accumulate in the outbox until the pipeline ends.
    pipeline: bool,
    /// The commands accumulated in the pipeline, as indexes in the script.
    pipelined_commands: Vec<usize>,
    /// Whether each statement is timed.
    timed: bool,
    sent: u64,
    /// Counts transactions, to determine when the client reconnects.
    lifetime: Lifetime,
}

impl<'p> PostgresScript<'p> {
    pub fn new(
        script: ScriptClient<'p>,
        protocol: Protocol,
        statements: &'p Statements,
        timed: bool,
        reconnect: u64,
    ) -> Self {
        Self {
            reply: Reply::new(),
            script,
            requests: Requests::new(protocol, statements),
            pending: Pending::Script,
            pipeline: false,
            pipelined_commands: Vec::new(),
            timed,
            sent: 0,
            lifetime: Lifetime::new(reconnect),
        }
    }

    /// Runs the script up to the next message, sleep or end.
    #[inline]
    fn continue_script(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        loop {
            match self.script.advance() {
                Action::Sql(sql) => {
                    self.requests.command(sql, &self.script.variables, &mut mailbox.outbox);
                    if self.pipeline {
                        self.pipelined_commands.push(self.script.command_index());
                        continue;
                    }
                    self.requests.end_command(&mut mailbox.outbox);
                    self.reply.expect(sql);
                    return self.send();
                }
                Action::End => return self.end_of_script(mailbox, tally),
                Action::Sleep(ns) => return Step::Sleep(ns),
                Action::StartPipeline => self.pipeline = true,
                Action::SyncPipeline => self.sync(mailbox),
                Action::EndPipeline => {
                    self.sync(mailbox);
                    self.pipeline = false;
                    self.reply.expect_commands(self.pipelined_commands.len());
                    return self.send();
                }
                Action::Fault(cause) => return self.fault(&cause, mailbox, tally),
            }
        }
    }

    #[inline]
    fn send(&mut self) -> Step {
        if self.timed {
            self.sent = clock::now();
        }
        Step::Send
    }

    /// Records the time of the last command, whose reply is complete.
    #[cold]
    fn time(&self, tally: &mut Tally) {
        let command = self.script.command(self.script.command_index());
        tally.record_reply_time(command, clock::now() - self.sent, self.reply.has_error());
    }

    fn sync(&mut self, mailbox: &mut Mailbox) {
        frontend::sync(&mut mailbox.outbox);
        self.requests.group_sent();
        self.reply.expect_group();
    }

    #[inline]
    fn end_of_script(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if self.reply.status != TransactionStatus::Idle || self.pipeline {
            return self.fault("the script ends inside a transaction block or pipeline", mailbox, tally);
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
        if self.pipeline {
            // The commands accumulated in the pipeline were never sent, so they are dropped.
            self.pipeline = false;
            self.pipelined_commands.clear();
            mailbox.outbox.clear();
            self.requests.forget_unsent();
            self.reply.forget_expected();
        }
        self.roll_back(false, mailbox, tally)
    }

    /// Handles an error that the engine returned for a command.
    #[cold]
    fn failed(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let (error, completed) = self.reply.take_error().expect("called when there is one");
        // In a pipeline, the failed command is the first one that was not completed.
        let at = self.pipelined_commands.get(completed).copied().unwrap_or(self.script.command_index());
        self.pipelined_commands.clear();
        let hint = if error.hint.is_empty() { String::new() } else { format!("; hint: {}", error.hint) };
        let class = error.sqlstate.as_str();
        let retryable = matches!(class, "40001" | "40P01") || self.script.retries_after(class);
        let repeat = retryable && self.script.retry(tally);
        let script = &self.script;
        let words = || script.error_message(at, &format!("{error}{hint}"));
        if repeat {
            tally.error(&error.sqlstate, words);
        } else {
            tally.failure(script.kind(), &error.sqlstate, retryable, words);
        }
        self.roll_back(repeat, mailbox, tally)
    }

    fn roll_back(&mut self, repeat: bool, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if self.reply.status != TransactionStatus::Idle {
            mailbox.outbox.clear();
            frontend::query(&mut mailbox.outbox, "ROLLBACK");
            self.pending = Pending::RollBack { repeat };
            self.requests.group_sent();
            self.reply.expect_group();
            self.reply.expect_commands(1);
            return Step::Send;
        }
        self.pending = Pending::Script;
        if repeat { self.restart(mailbox, tally) } else { self.end(false, tally) }
    }

    fn restart(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        mailbox.outbox.clear();
        self.continue_script(mailbox, tally)
    }

    /// Continues after everything sent has been answered.
    #[inline]
    fn answered(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        mailbox.outbox.clear();
        if self.pending == Pending::Script {
            if self.timed {
                self.time(tally);
            }
            if self.reply.has_error() {
                return self.failed(mailbox, tally);
            }
            if let Some(cause) = self.reply.result_fault() {
                return self.fault(&cause, mailbox, tally);
            }
            self.pipelined_commands.clear();
            return self.continue_script(mailbox, tally);
        }
        let Pending::RollBack { repeat } = self.pending else { unreachable!("the other case was handled above") };
        self.pending = Pending::Script;
        if self.reply.take_error().is_some() || self.reply.status != TransactionStatus::Idle {
            return Step::Broken("the server refused to roll back".to_owned());
        }
        if repeat { self.restart(mailbox, tally) } else { self.end(false, tally) }
    }
}

impl Transaction for PostgresScript<'_> {
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
        match self.reply.read(mailbox, &mut self.requests, &mut self.script.variables, tally) {
            Ok(true) => self.answered(mailbox, tally),
            Ok(false) => Step::Receive,
            Err(reply::Trouble::Malformed(malformed)) => Step::Broken(malformed.to_string()),
            Err(reply::Trouble::Refuse) => {
                mailbox.outbox.clear();
                self.requests.refuse_copy(&mut mailbox.outbox);
                Step::Send
            }
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
        (self.pending, self.pipeline) = (Pending::Script, false);
        self.pipelined_commands.clear();
        self.script.abandon(inside, cause, tally)
    }

    /// Statements must be prepared again, because the session is new.
    fn reconnected(&mut self) {
        self.lifetime.restart();
        self.requests.forget_session();
        self.reply = Reply::new();
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        frontend::terminate(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        self.reply.last_words(mailbox)
    }
}
