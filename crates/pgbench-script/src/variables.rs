//! The variables of one client.

use super::number::{parse_value, write_value};
use super::{EvalError, Operand, Piece, Program, Slot, Symbols, Value};
use std::io::Write;
use std::sync::Arc;

/// The variables that every client has without a definition. These variables can be overridden by `-D`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Automatic {
    /// Number of the client, from 0.
    pub client_id: i64,
    /// Seed of `hash` and `permute` if a script gives none. This seed comes from `Seeds::default_seed`.
    pub default_seed: i64,
    /// Seed of the trial.
    pub random_seed: i64,
    /// Scale of the loaded data.
    pub scale: i64,
}

/// Names of the automatic variables, in the order of their slots.
pub(super) const AUTOMATIC: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];
pub(super) const DEFAULT_SEED: Slot = 1;

/// Whether `-D` sets `:default_seed`. If so, no seed is drawn for it.
pub fn gives_default_seed(variables: &[(String, String)]) -> bool {
    variables.iter().any(|(name, _)| name == AUTOMATIC[DEFAULT_SEED])
}

/// The state of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Undefined,
    /// The value was computed. The text is generated when needed.
    Value,
    /// The variable was given as text, and has not been parsed as a value.
    Text,
    /// The variable was given as text, and has been parsed as a value.
    Both,
}

/// A variable. When it gets a value instead of a text, the memory of the text is kept for the next text.
#[derive(Debug)]
struct Held {
    state: State,
    value: Value,
    text: Vec<u8>,
}

impl Held {
    const UNDEFINED: Self = Self { state: State::Undefined, value: Value::Null, text: Vec::new() };

    fn has_text(&self) -> bool {
        matches!(self.state, State::Text | State::Both)
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        let mut made = Self::UNDEFINED;
        made.clone_from(self);
        made
    }

    fn clone_from(&mut self, source: &Self) {
        self.state = source.state;
        self.value = source.value;
        if source.has_text() {
            self.text.clone_from(&source.text);
        }
    }
}

/// The content of a variable, which was computed, or given as text by the user or the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given<'a> {
    Value(Value),
    Text(&'a [u8]),
}

/// The variables of a client, indexed by slot.
#[derive(Debug)]
pub struct Variables {
    symbols: Arc<Symbols>,
    held: Vec<Held>,
    /// Output of `debug()`, if it is collected instead of printed to standard error.
    collected: Option<Vec<String>>,
}

impl Clone for Variables {
    fn clone(&self) -> Self {
        let Self { symbols, held, collected } = self;
        Self { symbols: Arc::clone(symbols), held: held.clone(), collected: collected.clone() }
    }

    /// Copies the variables. Memory is allocated only for texts. The drive loop saves variables before each transaction
    /// that it may retry.
    fn clone_from(&mut self, source: &Self) {
        let Self { symbols, held, collected } = source;
        self.symbols.clone_from(symbols);
        self.held.clone_from(held);
        self.collected.clone_from(collected);
    }
}

impl Variables {
    /// Creates the variables. `variables` are the definitions from `-D`. Names that no script mentions are ignored.
    pub fn new(program: &Program, variables: &[(String, String)], automatic: &Automatic) -> Self {
        let Automatic { client_id, default_seed, random_seed, scale } = *automatic;
        let held = vec![Held::UNDEFINED; program.symbols.len()];
        let mut made = Self { symbols: Arc::clone(&program.symbols), held, collected: None };
        for (slot, value) in [client_id, default_seed, random_seed, scale].into_iter().enumerate() {
            made.set(slot, Value::Integer(value));
        }
        for (name, text) in variables {
            if let Some(slot) = program.symbols.get(name) {
                made.set_text(slot, text.as_bytes());
            }
        }
        made
    }

    /// Creates an empty set, for evaluating constants.
    pub(super) fn empty() -> Self {
        Self { symbols: Arc::default(), held: Vec::new(), collected: None }
    }

    #[inline]
    pub fn set(&mut self, slot: Slot, value: Value) {
        let held = &mut self.held[slot];
        held.state = State::Value;
        held.value = value;
    }

    /// Sets a variable to text from the server.
    pub fn set_text(&mut self, slot: Slot, text: &[u8]) {
        let held = &mut self.held[slot];
        held.state = State::Text;
        held.text.clear();
        held.text.extend_from_slice(text);
    }

    /// Returns the value that a variable has in expressions.
    #[inline]
    pub fn value(&mut self, slot: Slot) -> Result<Value, EvalError> {
        let held = &self.held[slot];
        match held.state {
            State::Value | State::Both => Ok(held.value),
            State::Undefined | State::Text => self.value_of_text(slot),
        }
    }

    #[inline(never)]
    fn value_of_text(&mut self, slot: Slot) -> Result<Value, EvalError> {
        let held = &mut self.held[slot];
        let name = self.symbols.name(slot);
        if held.state == State::Undefined {
            return Err(EvalError::new(format!("undefined variable \"{name}\"")));
        }
        let Some(value) = std::str::from_utf8(&held.text).ok().and_then(parse_value) else {
            let text = String::from_utf8_lossy(&held.text);
            return Err(EvalError::new(format!("malformed variable \"{name}\" value: \"{text}\"")));
        };
        held.value = value;
        held.state = State::Both;
        Ok(value)
    }

    /// Returns the content of a variable as it was given. Returns `None` if the variable is undefined.
    #[inline]
    pub fn held(&self, slot: Slot) -> Option<Given<'_>> {
        let held = &self.held[slot];
        match held.state {
            State::Undefined => None,
            State::Value => Some(Given::Value(held.value)),
            State::Text | State::Both => Some(Given::Text(&held.text)),
        }
    }

    /// Appends the text of a variable for SQL. Returns false, without appending anything, if the variable is undefined.
    #[inline]
    pub fn write_text(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        let held = &self.held[slot];
        match held.state {
            State::Undefined => return false,
            State::Value => write_value(held.value, out),
            State::Text | State::Both => out.extend_from_slice(&held.text),
        }
        true
    }

    /// Appends a SQL command for the simple protocol. Variables are replaced, and undefined ones stay as written.
    pub fn write_sql(&self, pieces: &[Piece], out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(slot) => {
                    if !self.write_text(*slot, out) {
                        out.push(b':');
                        out.extend_from_slice(self.symbols.name(*slot).as_bytes());
                    }
                }
            }
        }
    }

    /// Returns the duration of a `\sleep` in nanoseconds. If the duration is a variable, the digits at the start of its
    /// text are used.
    pub fn sleep_ns(&self, argument: Operand, unit_ns: u64) -> Result<u64, EvalError> {
        let units = match argument {
            Operand::Constant(units) => units,
            Operand::Variable(slot) => {
                let mut text = Vec::new();
                if !self.write_text(slot, &mut text) {
                    return Err(EvalError::new(format!("undefined variable \"{}\"", self.symbols.name(slot))));
                }
                leading_integer(&text).ok_or_else(|| {
                    let (name, text) = (self.symbols.name(slot), String::from_utf8_lossy(&text));
                    EvalError::new(format!("invalid sleep time \"{text}\" for variable \"{name}\""))
                })?
            }
        };
        Ok(u64::try_from(units).unwrap_or(0).saturating_mul(unit_ns))
    }

    /// Makes `debug()` collect its lines in this object instead of printing them.
    pub fn collect_debug(&mut self) {
        self.collected = Some(Vec::new());
    }

    /// Returns the lines collected so far.
    pub fn take_debug(&mut self) -> Vec<String> {
        self.collected.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[cold]
    pub(super) fn show_debug(&mut self, script: usize, command: usize, value: Value) {
        let mut line = format!("debug(script={script},command={command}): {}", value.type_name()).into_bytes();
        if value != Value::Null {
            line.push(b' ');
            write_value(value, &mut line);
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        match &mut self.collected {
            Some(lines) => lines.push(line),
            // Errors are ignored, because standard error may be closed.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }
}

/// Parses an integer like C's `atoi`, but returns None if the text does not begin with a number.
fn leading_integer(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let number = std::str::from_utf8(&text[..sign + digits]).ok()?;
    Some(number.parse().unwrap_or(if text[0] == b'-' { i64::MIN } else { i64::MAX }))
}
