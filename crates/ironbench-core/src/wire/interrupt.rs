//! Ending a wait on somebody's wish: the statement is cancelled on the server, and given a while to end by itself.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::fault::Fault;
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

/// Tells whether the server answers a new connection in time.
pub(super) type Probe = Arc<dyn Fn() -> bool + Send + Sync>;

/// Whether tries at the addresses of a server say that it lives: one of them was answered, or none waited in vain.
pub(super) fn answers<T, M, S>(tries: impl Iterator<Item = std::result::Result<T, Fault<M, S>>>) -> bool {
    let mut waited_in_vain = false;
    for one in tries {
        match one {
            Err(Fault::Io(error)) => waited_in_vain |= error.kind() == io::ErrorKind::TimedOut,
            _ => return true,
        }
    }
    !waited_in_vain
}

/// Tells a frozen server from a busy one: a statement may run for hours without a byte, but a server that also leaves a new
/// connection unanswered is not waited for any longer.
struct Watch {
    probe: Probe,
    /// After so long without a byte, the server is probed.
    silence: Duration,
    heard: Instant,
    probing: Option<JoinHandle<bool>>,
}

impl Watch {
    fn heard(&mut self) {
        self.heard = Instant::now();
        self.probing = None;
    }

    fn check(&mut self) -> io::Result<()> {
        match self.probing.take() {
            Some(probing) if !probing.is_finished() => self.probing = Some(probing),
            Some(probing) => {
                if !probing.join().unwrap_or(true) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                self.heard = Instant::now();
            }
            None if self.heard.elapsed() < self.silence => {}
            None => {
                let probe = self.probe.clone();
                // In a thread: the answer to the statement may arrive meanwhile.
                self.probing = Some(thread::Builder::new().name("probe".to_owned()).spawn(move || probe())?);
            }
        }
        Ok(())
    }
}

pub(super) struct Interrupt {
    wish: Wish,
    /// None while connecting: there is nothing to cancel yet, the wait just ends.
    cancel: Option<Cancelling>,
    sent: Option<Instant>,
    watch: Option<Watch>,
}

impl Interrupt {
    pub fn new(wish: Wish, cancel: Option<Cancelling>) -> Self {
        Self { wish, cancel, sent: None, watch: None }
    }

    /// A new statement begins: what was wished for the one before does not concern it.
    pub fn rearm(&mut self) {
        self.sent = None;
        self.heard();
    }

    /// From now on a wait ends with `TimedOut` if the server is silent for `silence` and `probe` then fails.
    pub fn watch(&mut self, silence: Duration, probe: Probe) {
        self.watch = Some(Watch { probe, silence, heard: Instant::now(), probing: None });
    }

    /// The server has sent or taken something.
    pub fn heard(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.heard();
        }
    }

    /// Asks whether somebody wants the statement to end, and sees to it.
    pub fn check(&mut self) -> io::Result<()> {
        if let Some(watch) = &mut self.watch {
            watch.check()?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(silence: Duration, lives: bool) -> Interrupt {
        let mut interrupt = Interrupt::new(wish(Box::new(|| false)), None);
        interrupt.watch(silence, Arc::new(move || lives));
        interrupt
    }

    /// The first error of a thousand checks.
    fn checked(interrupt: &mut Interrupt) -> Option<io::ErrorKind> {
        (0..1000).find_map(|_| {
            thread::sleep(Duration::from_micros(100));
            interrupt.check().err().map(|error| error.kind())
        })
    }

    #[test]
    fn a_silent_server_is_given_up_only_when_it_leaves_a_new_connection_unanswered() {
        let hour = Duration::from_secs(3600);
        assert_eq!(checked(&mut watched(Duration::ZERO, false)), Some(io::ErrorKind::TimedOut));
        assert_eq!(checked(&mut watched(Duration::ZERO, true)), None);
        assert_eq!(checked(&mut watched(hour, false)), None);
    }

    #[test]
    fn a_server_lives_if_one_address_answers_or_none_was_waited_for_in_vain() {
        let io = |kind: io::ErrorKind| Err(Fault::<(), ()>::Io(kind.into()));
        let (refused, late) = (io::ErrorKind::ConnectionRefused, io::ErrorKind::TimedOut);
        assert!(answers([io(refused), Ok(())].into_iter()));
        assert!(answers([io(late), Err(Fault::Malformed(()))].into_iter()));
        assert!(answers([io(refused)].into_iter()));
        assert!(!answers([io(refused), io(late)].into_iter()));
    }
}
