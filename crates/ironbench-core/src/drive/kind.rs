//! What a trial runs, by name: each kind of transaction is counted and timed apart.

use pgbench_script::{Command, Place, Program, Script};

/// One kind of transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub name: String,
    /// How often it is chosen, beside the others.
    pub weight: u32,
    /// SQL commands of one transaction that each connection prepares.
    pub statements: usize,
    /// Of each command of a script, where it stands.
    pub places: Vec<Place>,
}

impl Kind {
    pub fn of_program(program: &Program) -> Vec<Self> {
        let statements = |script: &Script| script.commands.iter().filter(|c| matches!(c, Command::Sql(_))).count();
        let kind = |script: &Script| Self {
            name: script.name.clone(),
            weight: script.weight,
            statements: statements(script),
            places: script.places.clone(),
        };
        program.scripts.iter().map(kind).collect()
    }
}
