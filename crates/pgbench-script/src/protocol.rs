//! Rejects scripts that a protocol cannot run, before anything is started.

use super::{Command, Program, Script, Sql};
use crate::{Error, Result};

/// Maximum number of parameters, because a Bind message has a 16-bit count of them.
const MAX_PARAMETERS: usize = 65_535;

impl Program {
    /// Rejects scripts that the simple protocol cannot run.
    pub fn check_simple(&self) -> Result<()> {
        for script in &self.scripts {
            if script.commands.iter().any(|command| matches!(command, Command::StartPipeline)) {
                let cause = "\\startpipeline cannot be used with the simple protocol";
                return Err(Error::new(script.name.as_str(), cause).hint("use --protocol extended or prepared"));
            }
        }
        Ok(())
    }

    /// Rejects scripts that an embedded library cannot run. Such a library has no pipelines, and the same parameters as
    /// a server.
    pub fn check_library(&self) -> Result<()> {
        for script in &self.scripts {
            for command in &script.commands {
                match command {
                    Command::StartPipeline => {
                        let cause = "\\startpipeline needs a server; this engine runs inside the client";
                        return Err(Error::new(script.name.as_str(), cause).hint("remove the pipeline"));
                    }
                    Command::Sql(sql) => self.check_quoted(script, sql, "write the variable outside the quotes")?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Rejects scripts that MySQL's text protocol cannot run.
    pub fn check_mysql_simple(&self) -> Result<()> {
        for script in &self.scripts {
            let starts = |command: &Command| matches!(command, Command::StartPipeline);
            if let Some(at) = script.commands.iter().position(starts) {
                let subject = format!("{}:{}", script.name, script.positions[at].line);
                let cause = "\\startpipeline cannot be used: MySQL's protocol has no pipelines";
                return Err(Error::new(subject, cause).hint("remove the pipeline"));
            }
        }
        Ok(())
    }

    /// Rejects scripts that MySQL's prepared statements cannot run.
    pub fn check_mysql_prepared(&self) -> Result<()> {
        self.check_mysql_simple()?;
        self.check_extended()
    }

    fn check_quoted(&self, script: &Script, sql: &Sql, hint: &str) -> Result<()> {
        let Some(slot) = sql.quoted.iter().find(|slot| self.defined[**slot]) else { return Ok(()) };
        let name = self.symbols.name(*slot);
        let cause = format!("the variable :{name} is inside quotes, where a server accepts no parameter");
        Err(Error::new(place(script, sql), cause).hint(hint))
    }

    /// Rejects scripts that the extended protocol, prepared or not, cannot run.
    pub fn check_extended(&self) -> Result<()> {
        for (script, sql) in self.sqls() {
            let refuse = |cause: String| Err(Error::new(place(script, sql), cause).hint("use --protocol simple"));
            if sql.combined {
                return refuse("statements joined by \\; cannot be prepared".to_owned());
            }
            if sql.parameters.len() > MAX_PARAMETERS {
                let count = sql.parameters.len();
                return refuse(format!("{count} variables in one statement; the protocol allows {MAX_PARAMETERS}"));
            }
            self.check_quoted(script, sql, "use --protocol simple")?;
        }
        Ok(())
    }
}

fn place(script: &Script, sql: &Sql) -> String {
    format!("{}:{}", script.name, sql.line)
}

#[cfg(test)]
mod tests {
    use crate::{Program, Source};

    fn program(text: &str) -> Program {
        let source = Source { name: "s.sql".into(), text: text.into(), weight: 1 };
        Program::compile(&[source], &[("a".into(), "1".into())]).unwrap()
    }

    fn checked(text: &str) -> Result<(), String> {
        program(text).check_library().map_err(|error| error.to_string())
    }

    #[test]
    fn mysql_has_no_pipelines_and_prepares_one_statement_at_a_time() {
        let refused = |text: &str| {
            let error = |checked: crate::Result<()>| checked.err().map(|error| error.to_string());
            (error(program(text).check_mysql_simple()), error(program(text).check_mysql_prepared()))
        };
        let pipeline = "s.sql:2: \\startpipeline cannot be used: MySQL's protocol has no pipelines".to_owned();
        let both = (Some(pipeline.clone()), Some(pipeline));
        assert_eq!(refused("SELECT 1;\n\\startpipeline\nSELECT 1;\n\\endpipeline"), both);
        let combined = "s.sql:1: statements joined by \\; cannot be prepared".to_owned();
        assert_eq!(refused("SELECT 1\\; SELECT :a;"), (None, Some(combined)));
    }

    #[test]
    fn question_marks_stand_where_variables_were_and_nowhere_else() {
        let program = program("SELECT :a, '$1 :a', :a -- $2\n, '?', :a;");
        let (_, sql) = program.sqls().next().unwrap();
        assert_eq!(sql.with_question_marks(), "SELECT ?, '$1 :a', ? -- $2\n, '?', ?;");
    }

    #[test]
    fn a_library_engine_takes_combined_statements_but_no_pipeline_and_no_quoted_variable() {
        assert_eq!(checked("SELECT 1\\; SELECT :a;"), Ok(()));
        let pipeline = checked("\\startpipeline\nSELECT 1;\n\\endpipeline").unwrap_err();
        assert_eq!(pipeline, "s.sql: \\startpipeline needs a server; this engine runs inside the client");
        let quoted = checked("SELECT 1;\nSELECT ':a';").unwrap_err();
        assert_eq!(quoted, "s.sql:2: the variable :a is inside quotes, where a server accepts no parameter");
    }
}
