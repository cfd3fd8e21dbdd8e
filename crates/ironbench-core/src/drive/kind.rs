//! The kinds of transactions of a trial, which are counted and timed separately.

use pgbench_script::{Command, CommandPosition, Program, Script};

/// A kind of transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub name: String,
    /// Weight that determines how often the kind is chosen.
    pub weight: u32,
    /// Number of SQL commands in the transaction. Each connection prepares these commands.
    pub statements: usize,
    /// Position of each command in the script.
    pub positions: Vec<CommandPosition>,
}

impl Kind {
    pub fn of_program(program: &Program) -> Vec<Self> {
        let statements = |script: &Script| script.commands.iter().filter(|c| matches!(c, Command::Sql(_))).count();
        let kind = |script: &Script| Self {
            name: script.name.clone(),
            weight: script.weight,
            statements: statements(script),
            positions: script.positions.clone(),
        };
        program.scripts.iter().map(kind).collect()
    }
}
