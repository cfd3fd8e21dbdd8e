//! The scripts of a trial, compiled and checked together.

use super::compile::{Compiled, Shared, compile};
use super::lexer::is_variable_name;
use super::locate::{Fault, Text, nearest};
use super::parser::Read;
use super::variables::AUTOMATIC;
use super::{Caution, Command, Dialect, EvalError, Program, Random, Script, Slot, Source, Sql, Variables, evaluate};
use crate::{Error, Result};
use std::sync::Arc;

impl Script {
    /// Iterates over the script's SQL commands, in the order written.
    pub fn sqls(&self) -> impl Iterator<Item = &Sql> {
        self.commands.iter().filter_map(|command| match command {
            Command::Sql(sql) => Some(sql),
            _ => None,
        })
    }
}

impl Program {
    /// Compiles all scripts. `variables` are the definitions from `-D`.
    ///
    /// # Errors
    /// An error shows file, line, column, the text of the line, a caret below the position, and a hint.
    pub fn compile(sources: &[Source], variables: &[(String, String)]) -> Result<Self> {
        Self::compile_for(Dialect::Postgres, sources, variables)
    }

    /// Compiles scripts for a server of this dialect.
    pub fn compile_for(dialect: Dialect, sources: &[Source], variables: &[(String, String)]) -> Result<Self> {
        let total_weight = sources.iter().map(|source| u64::from(source.weight)).sum();
        if total_weight == 0 {
            return Err(Error::new("scripts", "no script has a weight greater than zero")
                .hint("set the weight of at least one script to 1 or more"));
        }
        let mut shared = Shared { dialect, ..Shared::default() };
        for name in AUTOMATIC {
            shared.symbols.slot(name);
        }
        for (name, _) in variables {
            if !is_variable_name(name) {
                return Err(Error::new(format!("variable \"{name}\""), "is not a variable name")
                    .hint("use letters, digits and underscores, and do not start with a digit"));
            }
            shared.symbols.slot(name);
        }
        let given = shared.symbols.len();
        let mut compiled = Vec::with_capacity(sources.len());
        for (number, source) in sources.iter().enumerate() {
            let text = Text::new(&source.name, &source.text);
            let script = compile(&text, number, &mut shared).map_err(|fault| text.error(fault))?;
            compiled.push((text, script));
        }
        let mut defined = vec![false; shared.symbols.len()];
        defined[..given].fill(true);
        shared.set.iter().for_each(|slot| defined[*slot] = true);
        for (source, (text, script)) in sources.iter().zip(&compiled) {
            if source.weight > 0 {
                check_read(script, &shared, &defined).map_err(|fault| text.error(fault))?;
            }
        }
        let cautions = cautions(&compiled, &shared, &defined);
        let mut commands_before = 0;
        let script = |(source, (_, script)): (&Source, (Text<'_>, Compiled))| {
            let before = commands_before;
            commands_before += script.commands.len();
            Script {
                name: source.name.clone(),
                weight: source.weight,
                commands: script.commands,
                positions: script.positions,
                commands_before: before,
            }
        };
        let scripts = sources.iter().zip(compiled).map(script).collect();
        let Shared { symbols, statements, .. } = shared;
        Ok(Self { scripts, symbols: Arc::new(symbols), total_weight, statements, defined, cautions })
    }

    /// Iterates over all SQL commands with their scripts, in the order of their IDs.
    pub fn sqls(&self) -> impl Iterator<Item = (&Script, &Sql)> {
        self.scripts.iter().flat_map(|script| script.sqls().map(move |sql| (script, sql)))
    }

    /// Chooses a script by its weight.
    #[inline]
    pub fn choose(&self, random: &mut Random) -> usize {
        if self.scripts.len() == 1 {
            return 0;
        }
        let mut drawn = random.up_to(self.total_weight - 1);
        self.scripts
            .iter()
            .position(|script| {
                let chosen = drawn < u64::from(script.weight);
                drawn = drawn.saturating_sub(u64::from(script.weight));
                chosen
            })
            .unwrap_or(0)
    }

    /// Runs a script without a server and without its sleeps. `on_sql` gets each SQL command that would be sent.
    pub fn rehearse(
        &self,
        script: usize,
        variables: &mut Variables,
        random: &mut Random,
        mut on_sql: impl FnMut(&Sql, &mut Variables),
    ) -> std::result::Result<(), EvalError> {
        let commands = &self.scripts[script].commands;
        let mut at = 0;
        while let Some(command) = commands.get(at) {
            at += 1;
            match command {
                Command::Set { slot, expression, .. } => {
                    let value = evaluate(expression, variables, random)?;
                    variables.set(*slot, value);
                }
                Command::JumpUnless { condition, target, .. } => {
                    let holds = evaluate(condition, variables, random)?.is_true();
                    at = if holds { at } else { *target };
                }
                Command::Jump { target } => at = *target,
                Command::Sql(sql) => on_sql(sql, variables),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Rejects a script if every run of it evaluates an expression with a variable that is never defined.
fn check_read(script: &Compiled, shared: &Shared, defined: &[bool]) -> std::result::Result<(), Fault> {
    let undefined = |read: &&Read| read.certain && shared.never_given(read.slot, defined);
    let Some(Read { slot, offset, .. }) = script.read.iter().find(undefined) else { return Ok(()) };
    let name = shared.symbols.name(*slot);
    Err(Fault::new(*offset, format!("variable \"{name}\" is never defined"))
        .hint(format!("{}; define it with \\set before, or with -D {name}=VALUE", shared.nearest(name, defined))))
}

/// Finds undefined variables that may be a mistake. Such variables are in SQL, or in a part of an expression that some
/// runs skip.
fn cautions(compiled: &[(Text<'_>, Compiled)], shared: &Shared, defined: &[bool]) -> Vec<Caution> {
    let mut found = Vec::new();
    for (text, script) in compiled {
        let lazy = script.read.iter().map(|read| (read.slot, text.line(read.offset), false));
        let sent = script.commands.iter().filter_map(|command| match command {
            Command::Sql(sql) => Some(sql.parameters.iter().map(|slot| (*slot, sql.line, true))),
            _ => None,
        });
        let undefined = lazy.chain(sent.flatten()).filter(|(slot, ..)| shared.never_given(*slot, defined));
        for (slot, line, in_sql) in undefined {
            let name = shared.symbols.name(slot);
            if found.iter().any(|caution: &Caution| caution.name == name && caution.in_sql == in_sql) {
                continue;
            }
            let subject = format!("{}:{line}", text.name);
            found.push(Caution { subject, name: name.to_owned(), in_sql, hint: shared.nearest(name, defined) });
        }
    }
    found
}

impl Shared {
    /// Whether the variable cannot be defined by `-D`, by `\set`, or by a column of `\gset` or `\aset`.
    fn never_given(&self, slot: Slot, defined: &[bool]) -> bool {
        let name = self.symbols.name(slot);
        !defined[slot] && !self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    fn nearest(&self, name: &str, defined: &[bool]) -> String {
        let known = (0..defined.len()).filter(|slot| defined[*slot]).map(|slot| self.symbols.name(slot));
        nearest(name, known)
    }
}

impl Caution {
    /// Formats the caution as a message. `simple` says whether the simple protocol is used, because the effect of the
    /// mistake depends on it.
    pub fn words(&self, simple: bool) -> String {
        let Self { subject, name, in_sql, hint } = self;
        let fate = match (in_sql, simple) {
            (true, true) => "stays in the statement as written",
            (true, false) => "is sent as null",
            (false, _) => "fails when a transaction reaches it",
        };
        format!("{subject}: the variable :{name} is never defined and {fate}; {hint}")
    }
}
