//! Interrupts a wait when the caller asks for it. The running statement is cancelled on the server and gets some time
//! to end.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{fault::Fault, protocol::ServerProtocol};
use crate::Result;

/// Time limit for a server to end a cancelled statement.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// A function that returns whether the caller wants the wait to end. The function is shared, because several addresses
/// may be tried for one connection.
pub type SharedStopCheck = Arc<Mutex<dyn FnMut() -> bool + Send>>;

pub(super) fn shared(check: Box<dyn FnMut() -> bool + Send>) -> SharedStopCheck {
    Arc::new(Mutex::new(check))
}

/// A function that cancels the statement that a session is running on the server.
pub type Cancelling = Box<dyn Fn() -> Result<()> + Send>;

/// A function that returns whether the server answers a new connection in time.
pub type Probe = Arc<dyn Fn() -> bool + Send + Sync>;

/// Whether connection attempts show that a server responds. It does if at least one attempt was answered, or if none
/// timed out.
pub(super) fn answers<P: ServerProtocol>(tries: impl Iterator<Item = std::result::Result<(), Fault<P>>>) -> bool {
    let mut waited_in_vain = false;
    for one in tries {
        match one {
            Err(Fault::Io(error)) => waited_in_vain |= error.kind() == io::ErrorKind::TimedOut,
            _ => return true,
        }
    }
    !waited_in_vain
}

/// Distinguishes a hung server from a busy server. A busy server may run a statement for hours without sending a byte,
/// but it still answers a new connection. If the server does not answer a new connection either, the wait ends.
struct HangDetector {
    probe: Probe,
    /// Time without a received byte after which the server is probed.
    silence: Duration,
    last_received: Instant,
    probe_thread: Option<JoinHandle<bool>>,
}

impl HangDetector {
    fn note_received(&mut self) {
        self.last_received = Instant::now();
        self.probe_thread = None;
    }

    fn check(&mut self) -> io::Result<()> {
        match self.probe_thread.take() {
            Some(probe_thread) if !probe_thread.is_finished() => self.probe_thread = Some(probe_thread),
            Some(probe_thread) => {
                if !probe_thread.join().unwrap_or(true) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                self.last_received = Instant::now();
            }
            None if self.last_received.elapsed() < self.silence => {}
            None => {
                let probe = self.probe.clone();
                // The probe runs in a separate thread, because the reply to the statement may arrive before the probe
                // ends.
                self.probe_thread = Some(thread::Builder::new().name("probe".to_owned()).spawn(move || probe())?);
            }
        }
        Ok(())
    }
}

pub struct Interrupt {
    stop_check: SharedStopCheck,
    /// Cancels the statement. The value is None while connecting, because no statement runs then. An interrupt then
    /// only ends the wait.
    cancel: Option<Cancelling>,
    sent: Option<Instant>,
    hang_detector: Option<HangDetector>,
}

impl Interrupt {
    pub fn new(stop_check: SharedStopCheck, cancel: Option<Cancelling>) -> Self {
        Self { stop_check, cancel, sent: None, hang_detector: None }
    }

    /// Called when a new statement starts. Forgets an interrupt of the previous statement.
    pub fn rearm(&mut self) {
        self.sent = None;
        self.note_received();
    }

    /// Makes waits fail with `TimedOut` if the server hangs. The server hangs if it sends nothing for `silence` and
    /// `probe` then fails.
    pub fn detect_hang(&mut self, silence: Duration, probe: Probe) {
        self.hang_detector = Some(HangDetector { probe, silence, last_received: Instant::now(), probe_thread: None });
    }

    /// Called when the server has sent or accepted bytes.
    pub fn note_received(&mut self) {
        if let Some(hang_detector) = &mut self.hang_detector {
            hang_detector.note_received();
        }
    }

    /// Checks whether the statement should end. If so, cancels the statement.
    pub fn check(&mut self) -> io::Result<()> {
        if let Some(hang_detector) = &mut self.hang_detector {
            hang_detector.check()?;
        }
        match (self.sent, &self.cancel) {
            (Some(sent), _) if sent.elapsed() >= CANCEL_TIMEOUT => Err(io::ErrorKind::Interrupted.into()),
            (Some(_), _) => Ok(()),
            (None, _) if !(self.stop_check.lock().unwrap_or_else(PoisonError::into_inner))() => Ok(()),
            (None, None) => Err(io::ErrorKind::Interrupted.into()),
            (None, Some(cancel)) => {
                self.sent = Some(Instant::now());
                // If cancelling fails, the server cannot be reached. The time limit then ends the wait.
                let _ = cancel();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::mysql::{Mysql, protocol::Malformed};

    fn watched(silence: Duration, lives: bool) -> Interrupt {
        let mut interrupt = Interrupt::new(shared(Box::new(|| false)), None);
        interrupt.detect_hang(silence, Arc::new(move || lives));
        interrupt
    }

    /// Checks up to a thousand times. Returns the first error.
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
        let io = |kind: io::ErrorKind| Err(Fault::<Mysql>::Io(kind.into()));
        let (refused, late) = (io::ErrorKind::ConnectionRefused, io::ErrorKind::TimedOut);
        assert!(answers([io(refused), Ok(())].into_iter()));
        assert!(answers([io(late), Err(Malformed::Invalid.into())].into_iter()));
        assert!(answers([io(refused)].into_iter()));
        assert!(!answers([io(refused), io(late)].into_iter()));
    }
}
