//! Encodes commands as packets, for the binary and the text protocol.

use std::sync::Arc;

use crate::drive::plan::Protocol;
use crate::wire::mysql::protocol::binary::kind;
use crate::wire::mysql::protocol::{frontend, is_rollback};
use pgbench_script::{Given, Program, Slot, Sql, Symbols, Value, Variables};

/// Texts of a program's statements, shared by all clients.
#[derive(Debug)]
pub struct Statements {
    /// Text of each statement, with `?` for each variable. Indexed by `Sql::statement`.
    texts: Vec<String>,
    /// Whether each statement ends a transaction without a commit. Indexed by `Sql::id`.
    rollbacks: Vec<bool>,
    symbols: Arc<Symbols>,
}

impl Statements {
    pub fn of(program: &Program) -> Self {
        let mut texts = vec![String::new(); program.statements];
        let mut rollbacks = vec![false; program.statements];
        for (_, sql) in program.sqls() {
            texts[sql.statement] = sql.with_question_marks();
            rollbacks[sql.id] = is_rollback(&sql.text);
        }
        Self { texts, rollbacks, symbols: Arc::clone(&program.symbols) }
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the variable for a column, or None if no script mentions that name.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.symbols.get(name)
    }

    #[inline]
    pub fn rolls_back(&self, sql: &Sql) -> bool {
        self.rollbacks[sql.id]
    }
}

/// State of a statement in a session.
#[derive(Debug)]
enum StatementState {
    New,
    Prepared {
        statement: u32,
        /// Types of the parameters, as last sent to the server.
        kinds: Vec<u8>,
    },
    /// The server cannot prepare the statement.
    NotPreparable,
    /// The server has prepared the statement, but it found this number of parameters. The script has another number.
    WrongParameters(u16),
}

/// Encodes a client's commands and tracks which statements its session has prepared.
#[derive(Debug)]
pub struct Requests<'p> {
    protocol: Protocol,
    statements: &'p Statements,
    /// State of each statement. Indexed by `Sql::statement`.
    states: Vec<StatementState>,
}

impl<'p> Requests<'p> {
    pub fn new(protocol: Protocol, statements: &'p Statements) -> Self {
        let states = statements.texts.iter().map(|_| StatementState::New).collect();
        Self { protocol, statements, states }
    }

    /// Resets the state for a new session, which has prepared nothing.
    pub fn forget_session(&mut self) {
        self.states.fill_with(|| StatementState::New);
    }

    #[inline]
    pub fn must_prepare(&self, sql: &Sql) -> bool {
        self.protocol != Protocol::Simple && matches!(self.states[sql.statement], StatementState::New)
    }

    pub fn prepare(&self, sql: &Sql, out: &mut Vec<u8>) {
        frontend::prepare(out, &self.statements.texts[sql.statement]);
    }

    pub fn prepared(&mut self, sql: &Sql, statement: u32) {
        // The type NULL means that no value of the parameter has been sent yet.
        let kinds = vec![kind::NULL; sql.parameters.len()];
        self.states[sql.statement] = StatementState::Prepared { statement, kinds };
    }

    pub fn set_wrong_parameters(&mut self, sql: &Sql, found: u16) {
        self.states[sql.statement] = StatementState::WrongParameters(found);
    }

    /// Returns why a prepared statement cannot be executed. Returns None if it can be executed.
    #[inline]
    pub fn parameter_mismatch(&self, sql: &Sql) -> Option<String> {
        let StatementState::WrongParameters(found) = self.states[sql.statement] else { return None };
        let known = sql.parameters.len();
        Some(format!("the server found {found} parameters, but the script has {known} variables there"))
    }

    pub fn set_not_preparable(&mut self, sql: &Sql) {
        self.states[sql.statement] = StatementState::NotPreparable;
    }

    /// Appends a command. Returns whether its rows will have the binary format.
    #[inline]
    pub fn command(&mut self, sql: &Sql, variables: &Variables, out: &mut Vec<u8>) -> bool {
        match &mut self.states[sql.statement] {
            StatementState::Prepared { statement, kinds } => {
                frontend::execute(out, *statement, |out| parameters(&sql.parameters, variables, kinds, out));
                true
            }
            StatementState::New | StatementState::NotPreparable | StatementState::WrongParameters(_) => {
                frontend::query_with(out, |out| variables.write_sql(&sql.pieces, out));
                false
            }
        }
    }
}

/// Appends the parameters of an Execute. The types are included if one of them differs from the type sent last.
#[inline]
fn parameters(slots: &[Slot], variables: &Variables, kinds: &mut [u8], out: &mut Vec<u8>) {
    if slots.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + slots.len().div_ceil(8), 0);
    let mut changed = false;
    for (number, (slot, known)) in slots.iter().zip(kinds.iter_mut()).enumerate() {
        match kind_of(variables.held(*slot)) {
            None => out[nulls + number / 8] |= 1 << (number % 8),
            Some(kind) if kind != *known => {
                *known = kind;
                changed = true;
            }
            Some(_) => {}
        }
    }
    // The server also needs a type for parameters that have always been NULL.
    out.push(u8::from(changed || kinds.contains(&kind::NULL)));
    if out.last() == Some(&1) {
        kinds.iter().for_each(|kind| out.extend_from_slice(&[*kind, 0]));
    }
    for slot in slots {
        match variables.held(*slot) {
            None | Some(Given::Value(Value::Null)) => {}
            Some(Given::Value(Value::Integer(value))) => out.extend_from_slice(&value.to_le_bytes()),
            Some(Given::Value(Value::Double(value))) => out.extend_from_slice(&value.to_le_bytes()),
            Some(Given::Value(Value::Boolean(value))) => out.push(u8::from(value)),
            Some(Given::Text(text)) => frontend::string(out, text),
        }
    }
}

/// Returns the type of a parameter, or None if it is NULL.
#[inline]
fn kind_of(held: Option<Given<'_>>) -> Option<u8> {
    match held? {
        Given::Value(Value::Null) => None,
        Given::Value(Value::Integer(_)) => Some(kind::LONGLONG),
        Given::Value(Value::Double(_)) => Some(kind::DOUBLE),
        Given::Value(Value::Boolean(_)) => Some(kind::TINY),
        Given::Text(_) => Some(kind::VAR_STRING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgbench_script::{Automatic, Source};

    #[test]
    fn kinds_of_parameters_are_said_once_and_when_one_changes() {
        let source = Source { name: "s".into(), text: "SELECT :a, :b, :c;".into(), weight: 1 };
        let given = [("a", "x"), ("b", "y")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        let program = Program::compile(&[source], &given).unwrap();
        let mut variables = Variables::new(&program, &given, &Automatic::default());
        let statements = Statements::of(&program);
        assert_eq!(statements.texts, ["SELECT ?, ?, ?;"]);
        let (_, sql) = program.sqls().next().unwrap();
        variables.set(program.symbols.get("a").unwrap(), Value::Integer(1));
        let mut requests = Requests::new(Protocol::Prepared, &statements);
        assert!(requests.must_prepare(sql));
        requests.prepared(sql, 7);
        let mut sent = |variables: &Variables| {
            let mut out = Vec::new();
            assert!(requests.command(sql, variables, &mut out));
            out.split_off(4 + 10)
        };
        let one = 1i64.to_le_bytes();
        // The third variable is undefined and therefore NULL.
        let first = [&[4, 1, kind::LONGLONG, 0, kind::VAR_STRING, 0, kind::NULL, 0][..], &one, b"\x01y"].concat();
        assert_eq!(sent(&variables), first);
        let c = program.symbols.get("c").unwrap();
        variables.set(c, Value::Boolean(true));
        let kinds = [0, 1, kind::LONGLONG, 0, kind::VAR_STRING, 0, kind::TINY, 0];
        assert_eq!(sent(&variables), [&kinds[..], &one, b"\x01y\x01"].concat());
        assert_eq!(sent(&variables), [&[0, 0][..], &one, b"\x01y\x01"].concat());
        variables.set(c, Value::Null);
        assert_eq!(sent(&variables), [&[4, 0][..], &one, b"\x01y"].concat());
    }
}
