//! Meta-commands: lines that begin with a backslash.

use super::lexer::{continuation, is_variable_name, skip_blanks};
use super::locate::{Fault, nearest};
use super::{Operand, Slot, Symbols};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meta {
    Aset,
    Elif,
    Else,
    EndPipeline,
    Endif,
    Gset,
    If,
    Set,
    Sleep,
    StartPipeline,
    SyncPipeline,
}

const COMMANDS: [(&str, Meta); 11] = [
    ("aset", Meta::Aset),
    ("elif", Meta::Elif),
    ("else", Meta::Else),
    ("endif", Meta::Endif),
    ("endpipeline", Meta::EndPipeline),
    ("gset", Meta::Gset),
    ("if", Meta::If),
    ("set", Meta::Set),
    ("sleep", Meta::Sleep),
    ("startpipeline", Meta::StartPipeline),
    ("syncpipeline", Meta::SyncPipeline),
];

/// A word of a meta-command, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    pub text: &'a str,
    pub offset: usize,
}

impl Word<'_> {
    pub fn end(&self) -> usize {
        self.offset + self.text.len()
    }
}

/// Returns the next word at or after `at` in the same line, including its continuations. If there is no word, returns
/// the offset of the end of the line as an error.
pub fn word(text: &str, at: usize) -> Result<Word<'_>, usize> {
    let start = skip_blanks(text, at);
    let bytes = text.as_bytes();
    let mut end = start;
    while end < bytes.len()
        && !matches!(bytes[end], b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
        && (bytes[end] != b'\\' || continuation(text, end).is_none())
    {
        end += 1;
    }
    if start == end { Err(start) } else { Ok(Word { text: &text[start..end], offset: start }) }
}

/// Returns all words after `at` in the line, and the offset of the end of the line.
pub fn words(text: &str, mut at: usize) -> (Vec<Word<'_>>, usize) {
    let mut found = Vec::new();
    loop {
        match word(text, at) {
            Ok(word) => {
                at = word.end();
                found.push(word);
            }
            Err(end) => return (found, end),
        }
    }
}

pub fn find(name: Word<'_>) -> Result<Meta, Fault> {
    let is = |known: &str| name.text.eq_ignore_ascii_case(known);
    if is("shell") || is("setshell") {
        return Err(Fault::new(name.offset, format!("\\{} is not supported", name.text))
            .hint("a shell command during the measured time would also be measured; set variables with -D instead"));
    }
    if is("setrandom") {
        return Err(Fault::new(name.offset, "\\setrandom was removed in pgbench 9.6".to_owned())
            .hint("use \\set NAME random(MIN, MAX)"));
    }
    COMMANDS.iter().find(|(known, _)| is(known)).map(|(_, meta)| *meta).ok_or_else(|| {
        let hint = nearest(name.text, COMMANDS.iter().map(|(known, _)| *known));
        Fault::new(name.offset, format!("unknown command \\{}", name.text)).hint(hint)
    })
}

/// Rejects more than `most` arguments.
pub fn at_most(words: &[Word<'_>], most: usize, name: Word<'_>) -> Result<(), Fault> {
    match words.get(most) {
        Some(extra) => Err(Fault::new(extra.offset, format!("\\{} has too many arguments", name.text))),
        None => Ok(()),
    }
}

/// Parses the variable that `\set` defines.
pub fn variable(text: &str, name: Word<'_>, symbols: &mut Symbols) -> Result<(Slot, usize), Fault> {
    let word =
        word(text, name.end()).map_err(|end| Fault::new(end, "\\set needs a variable name and an expression"))?;
    if !is_variable_name(word.text) {
        return Err(Fault::new(word.offset, format!("\"{}\" is not a variable name", word.text))
            .hint("use letters, digits and underscores, and do not start with a digit"));
    }
    Ok((symbols.slot(word.text), word.end()))
}

/// Parses `NUMBER|:VARIABLE [us|ms|s]`, with or without a space before the unit. The default unit is seconds.
pub fn sleep(words: &[Word<'_>], name: Word<'_>, symbols: &mut Symbols) -> Result<(Operand, u64), Fault> {
    let Some(first) = words.first() else {
        return Err(Fault::new(name.end(), "\\sleep needs a time, for example 10 ms"));
    };
    at_most(words, 2, name)?;
    let mut unit = words.get(1).copied();
    let argument = if let Some(variable) = first.text.strip_prefix(':') {
        if !is_variable_name(variable) {
            return Err(Fault::new(first.offset + 1, format!("\"{variable}\" is not a variable name")));
        }
        Operand::Variable(symbols.slot(variable))
    } else {
        let sign = usize::from(first.text.starts_with(['+', '-']));
        let digits = first.text[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = first.text.split_at(sign + digits);
        let wrong =
            || Fault::new(first.offset, format!("\"{}\" is not a sleep time, which must be an integer", first.text));
        if !rest.is_empty() {
            if unit.is_some() || digits == 0 {
                return Err(wrong());
            }
            unit = Some(Word { text: rest, offset: first.offset + number.len() });
        }
        Operand::Constant(number.parse().map_err(|_| wrong())?)
    };
    let unit_ns = match unit {
        None => 1_000_000_000,
        Some(unit) => [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)]
            .into_iter()
            .find(|(known, _)| unit.text.eq_ignore_ascii_case(known))
            .map(|(_, unit_ns)| unit_ns)
            .ok_or_else(|| {
                Fault::new(unit.offset, format!("\"{}\" is not a unit of time", unit.text)).hint("use us, ms or s")
            })?,
    };
    Ok((argument, unit_ns))
}
