//! Ending a wait on somebody's wish: the statement is cancelled on the server, and given a while to end by itself.

use std::{
    io,
    time::{Duration, Instant},
};

use super::connect::Cancel;

/// A server that has not ended a cancelled statement after this long is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Interrupt {
    wanted: Box<dyn FnMut() -> bool + Send>,
    cancel: Cancel,
    sent: Option<Instant>,
}

impl Interrupt {
    pub fn new(wanted: Box<dyn FnMut() -> bool + Send>, cancel: Cancel) -> Self {
        Self { wanted, cancel, sent: None }
    }

    /// A new statement begins: what was wished for the one before does not concern it.
    pub fn rearm(&mut self) {
        self.sent = None;
    }

    /// Asks whether somebody wants the statement to end, and sees to it.
    pub fn check(&mut self) -> io::Result<()> {
        match self.sent {
            Some(sent) if sent.elapsed() >= PATIENCE => Err(io::ErrorKind::Interrupted.into()),
            Some(_) => Ok(()),
            None => {
                if (self.wanted)() {
                    self.sent = Some(Instant::now());
                    // A server that cannot be reached for this is one that does not answer: patience ends it.
                    let _ = self.cancel.send();
                }
                Ok(())
            }
        }
    }
}
