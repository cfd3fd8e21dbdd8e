//! Waits for another writer. The end of a trial can interrupt the wait.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ffi};

/// Number of steps of SQLite's virtual machine between two checks of the flag. The steps take well under a millisecond.
const STEPS_PER_LOOK: c_int = 4096;
/// Milliseconds between tries. The last value repeats. SQLite's own `busy_timeout` uses the same delays (src/main.c,
/// 3.53), so clients wait as in any application.
const DELAYS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// Waits like SQLite's `busy_timeout`, but can be interrupted. Nothing can interrupt `busy_timeout`, not even
/// `sqlite3_interrupt`.
#[derive(Debug)]
pub struct BusyHandler {
    timeout: Duration,
    give_up: Arc<AtomicBool>,
    began: Instant,
}

impl BusyHandler {
    /// Replaces the connection's `busy_timeout` by handlers with the same limit.
    /// The returned value must outlive the connection.
    pub fn install(connection: &Connection, give_up: Arc<AtomicBool>) -> rusqlite::Result<*mut BusyHandler> {
        let timeout_ms: u32 = connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0))?;
        let busy_handler =
            BusyHandler { timeout: Duration::from_millis(timeout_ms.into()), give_up, began: Instant::now() };
        let busy_handler = Box::into_raw(Box::new(busy_handler));
        // SAFETY: the connection is open. SQLite calls the handlers only from within calls on the connection, one at a
        // time.
        unsafe {
            ffi::sqlite3_busy_handler(connection.handle(), Some(busy), busy_handler.cast());
            ffi::sqlite3_progress_handler(connection.handle(), STEPS_PER_LOOK, Some(progress), busy_handler.cast());
        }
        Ok(busy_handler)
    }

    fn gave_up(&self) -> bool {
        self.give_up.load(Ordering::Relaxed)
    }

    /// Waits for another writer, and returns whether to try again.
    fn wait(&mut self, tries: usize) -> bool {
        if tries == 0 {
            self.began = Instant::now();
        }
        let left = self.timeout.saturating_sub(self.began.elapsed());
        if left.is_zero() || self.gave_up() {
            return false;
        }
        let delay = Duration::from_millis(DELAYS_MS[tries.min(DELAYS_MS.len() - 1)]);
        std::thread::sleep(delay.min(left));
        true
    }
}

unsafe extern "C" fn busy(busy_handler: *mut c_void, tries: c_int) -> c_int {
    // SAFETY: this is the pointer from `install`. The pointer is valid as long as the connection, and used only here.
    let busy_handler = unsafe { &mut *busy_handler.cast::<BusyHandler>() };
    c_int::from(busy_handler.wait(usize::try_from(tries).unwrap_or(0)))
}

unsafe extern "C" fn progress(busy_handler: *mut c_void) -> c_int {
    // SAFETY: this is the pointer from `install`. The pointer is valid as long as the connection.
    let busy_handler = unsafe { &*busy_handler.cast::<BusyHandler>() };
    c_int::from(busy_handler.gave_up())
}
