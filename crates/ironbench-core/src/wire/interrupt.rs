//! Ending a wait on somebody's wish: the statement is cancelled on the server, and given a while to end by itself.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::Result;

/// A server that has not ended a cancelled statement after this long is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tells whether somebody wants the wait to end. Shared, because a connection is tried at several addresses.
pub(super) type Wish = Arc<Mutex<dyn FnMut() -> bool + Send>>;

pub(super) fn wish(wanted: Box<dyn FnMut() -> bool + Send>) -> Wish {
    Arc::new(Mutex::new(wanted))
}

/// Ends on the server what a session is running.
pub type Cancelling = Box<dyn Fn() -> Result<()> + Send>;

pub(super) struct Interrupt {
    wish: Wish,
    /// None while connecting: there is nothing to cancel yet, the wait just ends.
    cancel: Option<Cancelling>,
    sent: Option<Instant>,
}

impl Interrupt {
    pub fn new(wish: Wish, cancel: Option<Cancelling>) -> Self {
        Self { wish, cancel, sent: None }
    }

    /// A new statement begins: what was wished for the one before does not concern it.
    pub fn rearm(&mut self) {
        self.sent = None;
    }

    /// Asks whether somebody wants the statement to end, and sees to it.
    pub fn check(&mut self) -> io::Result<()> {
        match (self.sent, &self.cancel) {
            (Some(sent), _) if sent.elapsed() >= PATIENCE => Err(io::ErrorKind::Interrupted.into()),
            (Some(_), _) => Ok(()),
            (None, _) if !(self.wish.lock().unwrap_or_else(PoisonError::into_inner))() => Ok(()),
            (None, None) => Err(io::ErrorKind::Interrupted.into()),
            (None, Some(cancel)) => {
                self.sent = Some(Instant::now());
                // A server that cannot be reached for this is one that does not answer: patience ends it.
                let _ = cancel();
                Ok(())
            }
        }
    }
}
