//! The operations of a program, compiled once for all clients.

use crate::wire::ldap::operation::{Operation, Verb};
use crate::{Error, Result};
use pgbench_script::{Program, ResultUse, Script, Slot, Sql};

/// An attribute whose value is stored in a variable.
#[derive(Debug)]
pub struct StoredAttribute {
    /// Name of the attribute, or `dn` for the entry's own name.
    pub name: String,
    pub slot: Slot,
}

#[derive(Debug)]
pub struct Operations {
    /// The operation of each command, and the variables in which values of the returned entries are stored. Indexed by
    /// `Sql::id`.
    each: Vec<(Operation, Vec<StoredAttribute>)>,
}

impl Operations {
    /// Compiles the operations. `base` completes a DN that ends with a comma.
    ///
    /// # Errors
    /// Input: a command is not an operation. Or it stores entries in variables, but its operation returns no entries.
    pub fn of(program: &Program, base: &str) -> Result<Self> {
        let each = program.sqls().map(|(script, sql)| one(program, script, sql, base)).collect::<Result<_>>()?;
        Ok(Self { each })
    }

    #[inline]
    pub fn get(&self, sql: &Sql) -> &Operation {
        &self.each[sql.id].0
    }

    #[inline]
    pub fn stored_attributes(&self, sql: &Sql) -> &[StoredAttribute] {
        &self.each[sql.id].1
    }
}

fn one(program: &Program, script: &Script, sql: &Sql, base: &str) -> Result<(Operation, Vec<StoredAttribute>)> {
    let wrong = |cause: String| Error::input(format!("{}:{}", script.name, sql.line), cause);
    if sql.combined {
        return Err(
            wrong("operations cannot be joined by \\;".to_owned()).hint("use \\startpipeline and \\endpipeline")
        );
    }
    let operation = Operation::compile(&sql.pieces, base).map_err(wrong)?;
    let prefix = match &sql.result_use {
        ResultUse::Discard => return Ok((operation, Vec::new())),
        ResultUse::Gset { prefix } | ResultUse::Aset { prefix } => prefix,
    };
    if operation.verb != Verb::Search {
        return Err(wrong(format!("a {} returns no entries to store", operation.verb.name())).hint("remove \\gset"));
    }
    let name = |slot: Slot| program.symbols.name(slot).strip_prefix(prefix.as_str());
    let stored_attributes = (0..program.symbols.len())
        .filter_map(|slot| name(slot).map(|name| StoredAttribute { name: name.to_owned(), slot }))
        .filter(|one| {
            one.name == "dn" || operation.attributes.iter().any(|asked| asked.eq_ignore_ascii_case(&one.name))
        });
    let stored_attributes = stored_attributes.collect();
    Ok((operation, stored_attributes))
}
