//! Loads rows into MySQL and MariaDB, with one LOAD DATA LOCAL per piece and several connections.

use std::time::Duration;

use ironbench_core::wire::mysql::{CopyIn, Mysql};
use ironbench_core::wire::{Connector, Session};
use ironbench_core::{Error, Result};

use super::{Piece, Progress, Queue};
use crate::plan::Generator;
use crate::row::CopyText;

/// Time that a piece may wait for a lock. If the server no longer answers, the load fails earlier.
const LOCK_WAIT_S: u32 = 3600;

/// Maximum number of attempts to load a piece that conflicts with locks of other transactions. For example, after an
/// interrupted load, the server may still be rolling back that load's rows.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(200);

/// Takes pieces from the queue until it is empty. Each piece and its `note` are a separate transaction, because the
/// server stores uncommitted rows twice.
///
/// LOAD DATA reads the text format of PostgreSQL's COPY by default: tabs, newlines, `\` before both, `\N`.
pub(super) fn copy(
    connector: &Connector<Mysql>,
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
    // LOAD DATA locks a table with AUTO_INCREMENT, so a piece may have to wait for the pieces of other connections. A
    // server without InnoDB rejects this setting and does not need it.
    let _ = session.query(&format!("SET innodb_lock_wait_timeout = {LOCK_WAIT_S}"));
    while let Some(piece) = queue.take() {
        let mut attempt = 1;
        while let Err(error) = copy_piece(&mut session, generator, piece, note, progress) {
            if !is_conflict(&error) || attempt == ATTEMPTS {
                return Err(explain(error));
            }
            attempt += 1;
            session.query("ROLLBACK")?;
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// Copies a piece in a transaction. If this fails, the piece does not count as progress.
fn copy_piece(
    session: &mut Session<Mysql>,
    generator: &Generator,
    piece: &Piece,
    note: &str,
    progress: &Progress,
) -> Result<()> {
    session.query("BEGIN")?;
    let columns = piece.table.columns.join(", ");
    let sql = format!("LOAD DATA LOCAL INFILE '' INTO TABLE {} CHARACTER SET utf8mb4 ({columns})", piece.table.name);
    let mut copy = CopyIn::begin(session, &sql)?;
    let (mut made, mut size) = (0, 0);
    let mut sink = CopyText::new(|bytes: &[u8], rows| {
        copy.send(bytes)?;
        made += rows;
        size += bytes.len() as u64;
        progress.add(rows, bytes.len() as u64)
    });
    generator.emit(piece.table.name, piece.units.clone(), &mut sink)?;
    sink.finish()?;
    let ended = copy.finish().and_then(|taken| {
        if taken != made {
            let cause = format!("the server accepted {taken} of {made} rows");
            return Err(Error::failure(format!("table {}", piece.table.name), cause));
        }
        if !note.is_empty() {
            session.query(&piece.note_statement(note))?;
        }
        session.query("COMMIT").map(drop)
    });
    ended.inspect_err(|_| progress.take_back(made, size))
}

/// Whether the server rejected a statement because of another transaction's locks. The error numbers are 1205 (lock
/// wait timeout) and 1213 (deadlock).
fn is_conflict(error: &Error) -> bool {
    matches!(error.number, 1205 | 1213)
}

/// Adds a hint to errors of a full disk. The error numbers are 1114 (the table or the disk is full), 1021 (the disk is
/// full) and 14 (a table's file cannot grow, `EE_CANT_CHSIZE`).
fn explain(error: Error) -> Error {
    if matches!(error.number, 14 | 1021 | 1114) {
        return error.hint("free some space or choose a smaller scale; the loaded part is not used");
    }
    error
}
