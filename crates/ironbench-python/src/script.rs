//! pgbench scripts for Python. The scripts are checked before anything is started. A test can run them without a
//! database.

use ironbench_core::Error;
use ironbench_core::drive::ldap::Operations;
use pgbench_script::{
    Automatic, Dialect, Program, Seeds, Source, SqlMode, Variables, gives_default_seed, parse_weighted,
};
use pyo3::prelude::*;

use crate::errors::raise;

type Definitions = Vec<(String, String)>;

#[pyfunction]
pub fn compile_scripts(
    scripts: Vec<(String, String, u32)>,
    variables: Definitions,
    protocol: &str,
) -> PyResult<Vec<Vec<String>>> {
    let program = Program::compile_for(dialect(protocol), &sources(scripts), &variables).map_err(refuse)?;
    let checked = match protocol {
        "" => Ok(()),
        "simple" => program.check_simple(),
        "extended" | "prepared" => program.check_extended(),
        "library" | "mysql_library" => program.check_library(),
        "mysql_prepared" => program.check_mysql_prepared(),
        "mysql_simple" => program.check_mysql_simple(),
        "ldap" => {
            Operations::of(&program, "").map_err(raise)?;
            Ok(())
        }
        _ => {
            let error = Error::input(format!("protocol \"{protocol}\""), "unknown protocol");
            return Err(raise(error.hint(
                "known: extended, ldap, library, mysql_library, mysql_prepared, mysql_simple, prepared, simple",
            )));
        }
    };
    checked.map_err(refuse)?;
    Ok(program.scripts.iter().map(|script| script.sqls().map(|sql| sql.text.clone()).collect()).collect())
}

#[pyfunction]
pub fn script_cautions(
    scripts: Vec<(String, String, u32)>,
    variables: Definitions,
    protocol: &str,
) -> PyResult<Vec<String>> {
    let program = Program::compile_for(dialect(protocol), &sources(scripts), &variables).map_err(refuse)?;
    Ok(program.cautions.iter().map(|caution| caution.words(protocol.ends_with("simple"))).collect())
}

#[pyfunction]
pub fn rehearse_script(name: String, text: String, variables: Definitions, seed: u64) -> PyResult<Vec<String>> {
    let program = compile(name.clone(), text, &variables)?;
    let seeds = Seeds::new(seed, 1, gives_default_seed(&variables));
    let automatic = Automatic { client_id: 0, default_seed: seeds.default_seed, random_seed: seed as i64, scale: 1 };
    let mut client = Variables::new(&program, &variables, &automatic);
    client.collect_debug();
    let mut lines = Vec::new();
    let done = program.rehearse(0, &mut client, &mut seeds.client(0), |sql, client| {
        lines.append(&mut client.take_debug());
        let mut text = Vec::new();
        client.write_sql(&sql.pieces, &mut text);
        lines.push(String::from_utf8_lossy(&text).into_owned());
    });
    done.map_err(|error| raise(Error::failure(name, error.to_string())))?;
    lines.append(&mut client.take_debug());
    Ok(lines)
}

#[pyfunction]
pub fn split_weight(text: &str) -> PyResult<(&str, u32)> {
    parse_weighted(text).map_err(refuse)
}

/// Returns the SQL dialect of the servers that use this protocol.
fn dialect(protocol: &str) -> Dialect {
    if protocol.starts_with("mysql_") { Dialect::Mysql(SqlMode::default()) } else { Dialect::Postgres }
}

fn refuse(error: pgbench_script::Error) -> PyErr {
    raise(error.into())
}

fn compile(name: String, text: String, variables: &[(String, String)]) -> PyResult<Program> {
    Program::compile(&[Source { name, text, weight: 1 }], variables).map_err(refuse)
}

fn sources(scripts: Vec<(String, String, u32)>) -> Vec<Source> {
    scripts.into_iter().map(|(name, text, weight)| Source { name, text, weight }).collect()
}
