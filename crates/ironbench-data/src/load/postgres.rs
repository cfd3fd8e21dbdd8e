//! Loads rows into PostgreSQL, with one COPY per piece and several connections.

use std::time::Duration;

use ironbench_core::wire::postgres::{CopyIn, Postgres};
use ironbench_core::wire::{Connector, Session};
use ironbench_core::{Error, Result};

use super::{Progress, Queue};
use crate::plan::Generator;
use crate::row::CopyBinary;

/// Takes pieces from the queue until it is empty. Each piece is a separate COPY.
///
/// Without a `note`, all pieces share a transaction, so that only one commit waits for the WAL to reach the disk. With
/// a `note`, each piece has its own transaction, which also writes the note. The commit of a piece does not wait for
/// the WAL, because a crash would lose the piece and its note together.
pub(super) fn copy(
    connector: &Connector<Postgres>,
    generator: &Generator,
    queue: &Queue,
    note: &str,
    silence: Option<Duration>,
    progress: &Progress,
) -> Result<()> {
    let mut session = Session::open(connector, progress.stop_check())?;
    if let Some(silence) = silence {
        session.give_up_when_frozen(silence);
    }
    if !note.is_empty() {
        session.query("SET synchronous_commit = off")?;
    }
    session.query("BEGIN")?;
    while let Some(piece) = queue.take() {
        let sql = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", piece.table.name, piece.table.columns.join(", "));
        let mut copy = CopyIn::begin(&mut session, &sql).map_err(explain)?;
        let mut sink = CopyBinary::new(piece.table.columns.len(), |bytes: &[u8], rows| {
            copy.send(bytes)?;
            progress.add(rows, bytes.len() as u64)
        });
        generator.emit(piece.table.name, piece.units.clone(), &mut sink).map_err(explain)?;
        sink.finish().map_err(explain)?;
        copy.finish().map_err(explain)?;
        if !note.is_empty() {
            session.query(&format!("{}; COMMIT; BEGIN", piece.note_statement(note))).map_err(explain)?;
        }
    }
    session.query("COMMIT").map_err(explain)?;
    Ok(())
}

/// Adds a hint to errors of a full disk. SQLSTATE 53100 is `disk_full` (PostgreSQL 18 documentation, appendix A).
fn explain(error: Error) -> Error {
    if error.sqlstate == "53100" {
        return error.hint("free some space or choose a smaller scale; the loaded part is not used");
    }
    error
}
