//! Compiles one script into commands.

use std::collections::HashMap;

use super::expression::Expression;
use super::locate::Fault;
use super::meta::{self, Meta, Word};
use super::parser::{self, Context, Read};
use super::scan::{RawSql, Scanner, Stop};
use super::substitute::substitute;
use super::{Command, CommandPosition, Dialect, Operand, Piece, ResultUse, Slot, Sql, Symbols, pipeline};
use crate::locate::Text;

/// State that the scripts of a program share during compilation.
#[derive(Debug, Default)]
pub struct Shared {
    pub dialect: Dialect,
    pub symbols: Symbols,
    pub statements: usize,
    /// Number of the prepared statement for each text, as in `Sql::statement`.
    pub prepared: HashMap<String, usize>,
    /// Variables that a `\set` defines.
    pub set: Vec<Slot>,
    /// Prefixes of `\gset` and `\aset`. The columns of these results become variables, whose names are known only when
    /// the server replies.
    pub prefixes: Vec<String>,
}

/// A compiled script that is not yet part of a program.
#[derive(Debug, Default)]
pub struct Compiled {
    pub commands: Vec<Command>,
    pub read: Vec<Read>,
    /// Position of each command.
    pub positions: Vec<CommandPosition>,
}

/// Compiles the script with this number (from 0).
pub fn compile(text: &Text<'_>, number: usize, shared: &mut Shared) -> Result<Compiled, Fault> {
    let mut compiler = Compiler {
        text,
        number,
        shared,
        done: Compiled::default(),
        offsets: Vec::new(),
        blocks: Vec::new(),
        written: 0,
        last_sql: None,
    };
    let mut scanner = Scanner::new(text.text, compiler.shared.dialect);
    loop {
        let (raw, stop) = scanner.next_command()?;
        if let Some(raw) = raw {
            compiler.sql(raw);
        }
        match stop {
            Stop::Semicolon => {}
            Stop::Backslash => scanner.at = compiler.meta(scanner.at)?,
            Stop::EndOfText => break,
        }
    }
    compiler.finish()
}

/// An open `\if`.
struct Block {
    offset: usize,
    /// Index of the command that tests the condition of the current branch, and jumps to the next branch if the
    /// condition is not true. The value is None after `\else`.
    condition: Option<usize>,
    /// Indexes of the jumps from the ends of branches to `\endif`.
    exits: Vec<usize>,
}

struct Compiler<'a> {
    text: &'a Text<'a>,
    number: usize,
    shared: &'a mut Shared,
    done: Compiled,
    /// Offset of each command. The checks at the end need it.
    offsets: Vec<usize>,
    blocks: Vec<Block>,
    /// Number of commands so far, without generated jumps.
    written: usize,
    /// The SQL command directly before the current position. `\gset` and `\aset` apply to it.
    last_sql: Option<usize>,
}

impl Compiler<'_> {
    fn push(&mut self, command: Command, offset: usize) -> usize {
        let text = match &command {
            Command::Sql(sql) => self.as_written(sql),
            _ => one_line(self.text.text[offset..].lines().next().unwrap_or_default()),
        };
        let (line, number) = (self.text.line(offset), self.written as u32);
        self.done.positions.push(CommandPosition { line, command: number, text });
        self.done.commands.push(command);
        self.offsets.push(offset);
        self.done.commands.len() - 1
    }

    fn sql(&mut self, raw: RawSql) {
        self.written += 1;
        let parts = substitute(&raw, &mut self.shared.symbols);
        let sql = Sql {
            id: self.shared.statements,
            statement: self.shared.statements,
            text: parts.text,
            parameters: parts.parameters,
            parameter_offsets: parts.parameter_offsets,
            pieces: parts.pieces,
            result_use: ResultUse::Discard,
            combined: raw.statements > 1,
            quoted: parts.quoted,
            line: self.text.line(raw.offset),
        };
        self.shared.statements += 1;
        self.last_sql = Some(self.push(Command::Sql(sql), raw.offset));
    }

    /// Returns a SQL command with its variables as written.
    fn as_written(&self, sql: &Sql) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable(slot) => format!(":{}", self.shared.symbols.name(*slot)),
        };
        one_line(sql.pieces.iter().map(piece).collect::<String>().trim_end_matches(';'))
    }

    /// Compiles the meta-command after the backslash that precedes `at`. Returns the offset of the next line.
    fn meta(&mut self, at: usize) -> Result<usize, Fault> {
        let text = self.text.text;
        let name = match meta::word(text, at) {
            Ok(name) => name,
            Err(end) => return Ok(next_line(text, end)),
        };
        let backslash = at - 1;
        let last_sql = self.last_sql.take();
        self.written += 1;
        let end = match meta::find(name)? {
            Meta::Set => {
                let (slot, at) = meta::variable(text, name, &mut self.shared.symbols)?;
                let (expression, end) = self.expression(at)?;
                self.shared.set.push(slot);
                self.push(Command::Set { slot, expression, line: self.text.line(backslash) }, backslash);
                end
            }
            Meta::If => {
                let (condition, end) = self.expression(name.end())?;
                let condition = self.condition(condition, backslash);
                self.blocks.push(Block { offset: backslash, condition: Some(condition), exits: Vec::new() });
                end
            }
            Meta::Elif => {
                let (condition, end) = self.expression(name.end())?;
                self.next_branch(name, backslash)?;
                let condition = self.condition(condition, backslash);
                if let Some(block) = self.blocks.last_mut() {
                    block.condition = Some(condition);
                }
                end
            }
            other => {
                let (words, end) = meta::words(text, name.end());
                self.words(other, name, &words, backslash, last_sql)?;
                end
            }
        };
        Ok(next_line(text, end))
    }

    /// Compiles a meta-command whose arguments are words.
    fn words(
        &mut self,
        meta: Meta,
        name: Word<'_>,
        words: &[Word<'_>],
        backslash: usize,
        last_sql: Option<usize>,
    ) -> Result<(), Fault> {
        meta::at_most(
            words,
            match meta {
                Meta::Sleep => 2,
                Meta::Gset | Meta::Aset => 1,
                _ => 0,
            },
            name,
        )?;
        match meta {
            Meta::Sleep => {
                let (argument, unit_ns) = meta::sleep(words, name, &mut self.shared.symbols)?;
                if let Operand::Variable(slot) = argument {
                    let certain = self.blocks.is_empty();
                    self.done.read.push(Read { slot, offset: words[0].offset, certain });
                }
                self.push(Command::Sleep { argument, unit_ns, line: self.text.line(backslash) }, backslash);
            }
            Meta::Gset | Meta::Aset => self.set_result_use(meta, name, words.first(), last_sql)?,
            Meta::Else => self.next_branch(name, backslash)?,
            Meta::Endif => {
                let block = self.blocks.pop().ok_or_else(|| without_if(name))?;
                let here = self.done.commands.len();
                for jump in block.exits.into_iter().chain(block.condition) {
                    self.aim(jump, here);
                }
            }
            Meta::StartPipeline => drop(self.push(Command::StartPipeline, backslash)),
            Meta::SyncPipeline => drop(self.push(Command::SyncPipeline, backslash)),
            Meta::EndPipeline => drop(self.push(Command::EndPipeline, backslash)),
            Meta::Set | Meta::If | Meta::Elif => unreachable!("their argument is an expression"),
        }
        Ok(())
    }

    fn set_result_use(
        &mut self,
        meta: Meta,
        name: Word<'_>,
        prefix: Option<&Word<'_>>,
        last_sql: Option<usize>,
    ) -> Result<(), Fault> {
        self.written -= 1;
        let prefix = prefix.map_or(String::new(), |word| word.text.to_owned());
        match last_sql.map(|index| &mut self.done.commands[index]) {
            Some(Command::Sql(sql)) => {
                self.shared.prefixes.push(prefix.clone());
                sql.result_use =
                    if meta == Meta::Gset { ResultUse::Gset { prefix } } else { ResultUse::Aset { prefix } };
                Ok(())
            }
            _ => Err(Fault::new(name.offset, format!("\\{} must follow a SQL command", name.text))),
        }
    }

    fn expression(&mut self, at: usize) -> Result<(Expression, usize), Fault> {
        let context = Context {
            symbols: &mut self.shared.symbols,
            read: &mut self.done.read,
            certain: self.blocks.is_empty(),
            script: self.number,
            command: self.written,
        };
        parser::parse(self.text.text, at, context)
    }

    fn condition(&mut self, condition: Expression, offset: usize) -> usize {
        self.push(Command::JumpUnless { condition, target: usize::MAX, line: self.text.line(offset) }, offset)
    }

    /// Ends a branch of the innermost `\if` and starts the next one here.
    fn next_branch(&mut self, name: Word<'_>, offset: usize) -> Result<(), Fault> {
        let exit = self.done.commands.len();
        let block = self.blocks.last_mut().ok_or_else(|| without_if(name))?;
        let Some(condition) = block.condition.take() else {
            return Err(Fault::new(name.offset, format!("\\{} follows \\else", name.text)));
        };
        block.exits.push(exit);
        self.push(Command::Jump { target: usize::MAX }, offset);
        self.aim(condition, exit + 1);
        Ok(())
    }

    fn aim(&mut self, jump: usize, at: usize) {
        if let Command::Jump { target } | Command::JumpUnless { target, .. } = &mut self.done.commands[jump] {
            *target = at;
        }
    }

    fn finish(mut self) -> Result<Compiled, Fault> {
        if let Some(block) = self.blocks.last() {
            return Err(Fault::new(block.offset, "this \\if has no \\endif"));
        }
        if self.done.commands.is_empty() {
            return Err(Fault::new(0, "the script contains no command"));
        }
        pipeline::check(&self.done.commands, &self.offsets)?;
        self.share_statements();
        Ok(self.done)
    }

    /// Lets commands with the same text share a prepared statement.
    fn share_statements(&mut self) {
        for command in &mut self.done.commands {
            if let Command::Sql(sql) = command
                && matches!(sql.result_use, ResultUse::Discard)
            {
                sql.statement = *self.shared.prepared.entry(sql.text.clone()).or_insert(sql.id);
            }
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_if(name: Word<'_>) -> Fault {
    Fault::new(name.offset, format!("\\{} without \\if", name.text))
}

/// Returns the offset after the newline at `end`, or the end of the text.
fn next_line(text: &str, end: usize) -> usize {
    (end + 1).min(text.len())
}
