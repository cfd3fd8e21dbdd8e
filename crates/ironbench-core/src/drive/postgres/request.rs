//! Encodes commands as messages, for the simple, extended and prepared protocols.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::drive::plan::Protocol;
use crate::wire::postgres::protocol::frontend;
use pgbench_script::{Command, Program, Slot, Sql, Symbols, Variables};

/// Names of a program's prepared statements, shared by all clients.
#[derive(Debug)]
pub struct Statements {
    /// Name of each statement. Indexed by `Sql::statement`.
    names: Vec<String>,
    symbols: Arc<Symbols>,
}

impl Statements {
    pub fn of(program: &Program) -> Self {
        let mut names = vec![String::new(); program.statements];
        for script in &program.scripts {
            for command in &script.commands {
                if let Command::Sql(sql) = command {
                    names[sql.statement] = format!("s{}", sql.statement);
                }
            }
        }
        Self { names, symbols: Arc::clone(&program.symbols) }
    }
}

/// Encodes a client's commands and tracks which statements its session has prepared.
#[derive(Debug)]
pub struct Requests<'p> {
    protocol: Protocol,
    statements: &'p Statements,
    /// Whether a Parse of each statement was sent and has not failed. Indexed by `Sql::statement`.
    prepared: Vec<bool>,
    /// Parse messages that were sent and are not yet acknowledged, each as its group and its statement. A group
    /// consists of the messages up to a Sync.
    parsing: VecDeque<(u64, usize)>,
    /// Number of groups sent.
    sent: u64,
    answered: u64,
}

impl<'p> Requests<'p> {
    pub fn new(protocol: Protocol, statements: &'p Statements) -> Self {
        let prepared = if protocol == Protocol::Prepared { vec![false; statements.names.len()] } else { Vec::new() };
        Self { protocol, statements, prepared, parsing: VecDeque::new(), sent: 0, answered: 0 }
    }

    /// Resets the state for a new session, which has prepared nothing.
    pub fn forget_session(&mut self) {
        self.prepared.fill(false);
        self.parsing.clear();
        (self.sent, self.answered) = (0, 0);
    }

    /// Returns the variable for a column, or None if no script mentions that name.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.statements.symbols.get(name)
    }

    /// Ends a COPY, because a script cannot provide its data. A second Sync is necessary, because a server that waits
    /// for data ignores the Sync that was sent with the command.
    pub fn refuse_copy(&self, out: &mut Vec<u8>) {
        frontend::copy_fail(out, "a script cannot copy");
        if self.protocol != Protocol::Simple {
            frontend::sync(out);
        }
    }

    /// Appends a command without the end of its group. The messages are the same as those of libpq (`PQsendQueryGuts`
    /// in fe-exec.c). They include a Describe, although most results are discarded. The server thus does the same work
    /// as with pgbench.
    #[inline]
    pub fn command(&mut self, sql: &Sql, variables: &Variables, out: &mut Vec<u8>) {
        let name = match self.protocol {
            Protocol::Simple => {
                return frontend::query_with(out, |out| variables.write_sql(&sql.pieces, out));
            }
            Protocol::Extended => {
                frontend::parse(out, "", &sql.text);
                ""
            }
            Protocol::Prepared => {
                if !self.prepared[sql.statement] {
                    self.prepare(sql, out);
                }
                self.statements.names[sql.statement].as_str()
            }
        };
        let parameters = &sql.parameters;
        frontend::bind(out, name, parameters.len() as u16, |i, out| variables.write_text(parameters[i], out));
        frontend::describe_portal(out);
        frontend::execute(out);
    }

    /// Ends the group of messages of a command that is not in a pipeline.
    #[inline]
    pub fn end_command(&mut self, out: &mut Vec<u8>) {
        if self.protocol != Protocol::Simple {
            frontend::sync(out);
        }
        self.group_sent();
    }

    #[inline]
    pub fn group_sent(&mut self) {
        self.sent += 1;
    }

    /// Appends a Parse for the statement. The Parse is sent together with the statement's first use, which saves a
    /// round trip.
    #[cold]
    fn prepare(&mut self, sql: &Sql, out: &mut Vec<u8>) {
        frontend::parse(out, &self.statements.names[sql.statement], &sql.text);
        self.prepared[sql.statement] = true;
        self.parsing.push_back((self.sent, sql.statement));
    }

    /// Handles a ParseComplete.
    pub fn parsed(&mut self) {
        self.parsing.pop_front();
    }

    /// Handles a ReadyForQuery, which ends the replies to a group. If a Parse of this group was not acknowledged, it
    /// has failed or was skipped. The statement is then not prepared.
    #[inline]
    pub fn group_answered(&mut self) {
        while let Some(&(group, id)) = self.parsing.front()
            && group <= self.answered
        {
            self.parsing.pop_front();
            self.prepared[id] = false;
        }
        self.answered += 1;
    }

    /// Forgets Parse messages that were dropped before they were sent.
    pub fn forget_unsent(&mut self) {
        for (_, id) in self.parsing.drain(..) {
            self.prepared[id] = false;
        }
        self.sent = self.answered;
    }
}
