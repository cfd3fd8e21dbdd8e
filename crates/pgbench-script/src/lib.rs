//! pgbench's script language, compiled once and evaluated per transaction, without a database.
//!
//! [`Program::compile`] parses scripts. The function rejects what pgbench would reject only at run time, and shows
//! line, column and a caret. A client steps through the [`Command`]s of a script. Expressions are evaluated by
//! [`evaluate`] with the client's [`Variables`] and [`Random`]. An [`Sql`] is sent as text with `$n` and parameters, or
//! as text with values.
//!
//! ```
//! use pgbench_script::{Automatic, Program, Seeds, Source, Variables};
//!
//! let text = "\\set aid random(1, 100000)\nSELECT abalance FROM accounts WHERE aid = :aid;\n";
//! let source = Source { name: "select.sql".into(), text: text.into(), weight: 1 };
//! let program = Program::compile(&[source], &[])?;
//!
//! let seeds = Seeds::new(7, 1, false);
//! let mut client = Variables::new(&program, &[], &Automatic::default());
//! let mut sent = Vec::new();
//! program.rehearse(0, &mut client, &mut seeds.client(0), |sql, client| client.write_sql(&sql.pieces, &mut sent)).unwrap();
//! assert!(sent.starts_with(b"SELECT abalance FROM accounts WHERE aid = "));
//! # Ok::<(), pgbench_script::Error>(())
//! ```
//!
//! Expressions, functions, random distributions and the sequences of random numbers are the same as in PostgreSQL 18's
//! pgbench. With one client and the same seed, both send the same statements. `\shell` and `\setshell` are rejected.
//!
//! Language reference: PostgreSQL 18 documentation, pgbench, "Custom Scripts".

mod compile;
mod error;
mod expression;
mod functions;
mod hash;
mod lexer;
mod locate;
mod meta;
mod number;
mod operators;
mod parser;
mod permute;
mod pipeline;
mod program;
mod protocol;
mod random;
mod scan;
mod substitute;
#[cfg(test)]
mod tests;
mod variables;
mod weight;

use std::collections::HashMap;
use std::sync::Arc;

pub use error::{Error, Result};
pub use expression::{EvalError, Expression, evaluate};
pub use hash::fnv1a;
pub use locate::nearest;
pub use random::{Random, Seeds, SplitMix64};
pub use variables::{Automatic, Given, Variables, gives_default_seed};
pub use weight::parse_weighted;

/// Index of a variable in `Symbols` and in every client's `Variables`.
pub type Slot = usize;

/// The text of a script. `name` is its name in messages and records (a path or the name of a built-in script).
#[derive(Debug, Clone)]
pub struct Source {
    pub name: String,
    pub text: String,
    /// Relative weight of this script. A script with weight 0 is never chosen.
    pub weight: u32,
}

/// The SQL dialect, which determines where strings, quoted names and comments end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    Postgres,
    /// The dialect of MySQL or MariaDB.
    Mysql(SqlMode),
}

/// The parts of MySQL's `sql_mode` that affect strings (MySQL 8.4 Reference Manual, 7.1.11 "Server SQL Modes").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SqlMode {
    /// Whether `"` quotes names.
    pub ansi_quotes: bool,
    /// Whether a backslash is an ordinary character.
    pub no_backslash_escapes: bool,
}

/// Modes that include `ANSI_QUOTES` (MariaDB, "SQL_MODE").
const WITH_ANSI_QUOTES: [&str; 7] = ["ANSI_QUOTES", "ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"];

impl SqlMode {
    /// Parses a value of `sql_mode`, which contains names separated by commas.
    pub fn of(text: &str) -> Self {
        let names = || text.split(',').map(|name| name.trim().to_ascii_uppercase());
        Self {
            ansi_quotes: names().any(|name| WITH_ANSI_QUOTES.contains(&&*name)),
            no_backslash_escapes: names().any(|name| name == "NO_BACKSLASH_ESCAPES"),
        }
    }

    /// Whether a backslash between these quotes escapes the next character.
    pub fn escapes(self, quote: u8) -> bool {
        !self.no_backslash_escapes && (quote == b'\'' || quote == b'"' && !self.ansi_quotes)
    }
}

/// The names of all variables that the scripts mention. The list is complete after compilation, because a column of
/// `\gset` or `\aset` that no script mentions need not be kept.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Vec<String>,
    index: HashMap<String, Slot>,
}

impl Symbols {
    /// Returns the slot of `name`. Adds the name if it is new.
    pub fn slot(&mut self, name: &str) -> Slot {
        if let Some(&slot) = self.index.get(name) {
            return slot;
        }
        let slot = self.names.len();
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), slot);
        slot
    }

    pub fn get(&self, name: &str) -> Option<Slot> {
        self.index.get(name).copied()
    }

    pub fn name(&self, slot: Slot) -> &str {
        &self.names[slot]
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// A value of an expression, with pgbench's types.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
}

/// The scripts of a trial, immutable and shared by all threads.
#[derive(Debug)]
pub struct Program {
    pub scripts: Vec<Script>,
    pub symbols: Arc<Symbols>,
    /// Sum of all weights, which is above 0.
    pub total_weight: u64,
    /// Number of SQL commands in all scripts. The values of `Sql::id` are smaller than this number.
    pub statements: usize,
    /// For each slot, whether the variable is defined anywhere: by `-D`, by `\set`, or by the tool itself.
    defined: Vec<bool>,
    /// Warnings about possible mistakes in the scripts.
    pub cautions: Vec<Caution>,
}

/// An undefined variable, and the place where it first appears.
#[derive(Debug)]
pub struct Caution {
    /// Script and line.
    subject: String,
    name: String,
    in_sql: bool,
    hint: String,
}

#[derive(Debug)]
pub struct Script {
    pub name: String,
    pub weight: u32,
    pub commands: Vec<Command>,
    /// Position of each command in the source.
    pub positions: Vec<CommandPosition>,
    /// Number of commands in the scripts before this one.
    pub commands_before: usize,
}

/// The position of a command in its script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandPosition {
    /// Line of the script, from 1.
    pub line: u32,
    /// Number of the command in the script as written, from 1.
    pub command: u32,
    /// The command as written, on one line and without comments.
    pub text: String,
}

/// A command. Control flow is compiled to jumps. Therefore a client needs no state except a program counter.
#[derive(Debug)]
pub enum Command {
    Sql(Sql),
    Set {
        slot: Slot,
        expression: Expression,
        line: u32,
    },
    /// Sleeps for the time in the argument. The client's own timer ends the sleep, so no thread is blocked.
    Sleep {
        argument: Operand,
        unit_ns: u64,
        line: u32,
    },
    /// Continues at `target` if the condition is not true.
    JumpUnless {
        condition: Expression,
        target: usize,
        line: u32,
    },
    Jump {
        target: usize,
    },
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

#[derive(Debug, Clone, Copy)]
pub enum Operand {
    Constant(i64),
    Variable(Slot),
}

/// A SQL command in two forms: as text with `$n` and parameters, and as pieces for the simple protocol.
#[derive(Debug, Default)]
pub struct Sql {
    /// Number of the command, which is unique in the program.
    pub id: usize,
    /// Number of the prepared statement. Commands with the same text share one, whose number is the `id` of the first
    /// of them. A command whose rows are stored does not share its statement.
    pub statement: usize,
    /// Text with `$1`, `$2`, … for the extended and prepared protocols.
    pub text: String,
    pub parameters: Vec<Slot>,
    /// Offset in `text` at which the `$n` of each parameter begins.
    pub parameter_offsets: Vec<usize>,
    /// Text split at its variables, for the simple protocol. An undefined variable stays as written.
    pub pieces: Vec<Piece>,
    pub result_use: ResultUse,
    /// Whether the command consists of several statements joined by `\;`. Only the simple protocol can run such a
    /// command.
    pub combined: bool,
    /// Variables inside quotes. The simple protocol replaces them. In other protocols they are part of the quoted text.
    pub quoted: Vec<Slot>,
    pub line: u32,
}

#[derive(Debug, Clone)]
pub enum Piece {
    Text(String),
    Variable(Slot),
}

/// The use of a command's rows.
#[derive(Debug, Clone, Default)]
pub enum ResultUse {
    #[default]
    Discard,
    /// The meta-command `\gset [prefix]`. The command must return exactly one row. The columns of the row become
    /// variables.
    Gset { prefix: String },
    /// The meta-command `\aset [prefix]`. For every statement in a combined query that returns rows, the columns of its
    /// last row become variables.
    Aset { prefix: String },
}
