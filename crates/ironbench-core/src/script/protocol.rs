//! What a protocol cannot run is refused before anything is started.

use super::{Command, Program, Script, Sql};
use crate::{Error, Result};

/// A Bind message counts its parameters with 16 bits.
const MOST_PARAMETERS: usize = 65_535;

impl Program {
    /// Refuses what the simple protocol cannot do.
    pub fn check_simple(&self) -> Result<()> {
        for script in &self.scripts {
            if script.commands.iter().any(|command| matches!(command, Command::StartPipeline)) {
                let cause = "\\startpipeline cannot be used with the simple protocol";
                return Err(Error::input(script.name.as_str(), cause).hint("use --protocol extended or prepared"));
            }
        }
        Ok(())
    }

    /// Refuses what the extended protocol, prepared or not, cannot do.
    pub fn check_extended(&self) -> Result<()> {
        let sqls = self.scripts.iter().flat_map(|script| {
            script.commands.iter().filter_map(move |command| match command {
                Command::Sql(sql) => Some((script, sql)),
                _ => None,
            })
        });
        for (script, sql) in sqls {
            let refuse = |cause: String| Err(Error::input(place(script, sql), cause).hint("use --protocol simple"));
            if sql.combined {
                return refuse("statements joined by \\; cannot be prepared".to_owned());
            }
            if sql.parameters.len() > MOST_PARAMETERS {
                let count = sql.parameters.len();
                return refuse(format!(
                    "{count} variables in one statement; the protocol has room for {MOST_PARAMETERS}"
                ));
            }
            if let Some(slot) = sql.quoted.iter().find(|slot| self.defined[**slot]) {
                let name = self.symbols.name(*slot);
                return refuse(format!("the variable :{name} is inside quotes, where a server takes no parameter"));
            }
        }
        Ok(())
    }
}

fn place(script: &Script, sql: &Sql) -> String {
    format!("{}:{}", script.name, sql.line)
}
