//! A thread that passes on the bytes of its connections.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use ironbench_core::measure::clock;
use ironbench_core::{Error, Result};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;

use crate::Tracker;
use crate::handshake::StartedConnection;
use crate::proxy::Shared;
use crate::socket::Socket;

/// Maximum number of bytes read at a time from one connection.
const PIECE_BYTES: usize = 64 << 10;
/// Number of pieces that are read from one connection before other connections are served.
const MAX_PIECES: usize = 4;
const MAX_EVENTS: usize = 256;

/// Numbers of the two sides of a connection. The number of a side is also the number of the direction that begins
/// there.
const CLIENT: usize = 0;
const SERVER: usize = 1;
const INBOX: u64 = u64::MAX;

/// New connections of a thread, and the event that wakes it.
#[derive(Debug)]
pub struct Inbox {
    event: OwnedFd,
    connections: Mutex<Vec<(u32, StartedConnection)>>,
}

impl std::fmt::Debug for StartedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StartedConnection")
    }
}

impl Inbox {
    pub fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Self { event: event.map_err(|error| failed("eventfd", error))?, connections: Mutex::default() })
    }

    pub fn push(&self, session: u32, connection: StartedConnection) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).push((session, connection));
        self.wake();
    }

    pub fn wake(&self) {
        let _ = rustix::io::write(self.event.as_fd(), &1_u64.to_ne_bytes());
    }

    fn take_all(&self) -> Vec<(u32, StartedConnection)> {
        let _ = rustix::io::read(self.event.as_fd(), &mut [0; 8]);
        std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn failed(what: &str, error: Errno) -> Error {
    Error::failure("proxy", format!("{what}: {error}"))
}

/// The state of a direction, with the bytes that its receiver has not accepted yet.
#[derive(Default)]
struct Direction {
    waiting: Vec<u8>,
    sent: usize,
    has_ended: bool,
    is_closed: bool,
}

impl Direction {
    fn is_blocked(&self) -> bool {
        self.sent < self.waiting.len()
    }
}

struct Pair {
    sides: [Socket; 2],
    directions: [Direction; 2],
    interest: [epoll::EventFlags; 2],
    /// Whether a side has hung up. While the proxy cannot read from such a side, it is not registered with epoll, which
    /// would report the hang-up again and again. The next field says whether this is the case.
    hung_up: [bool; 2],
    parked: [bool; 2],
    /// Follows the messages. The value is None for a connection without statements.
    tracker: Option<Box<dyn Tracker>>,
}

#[derive(Default)]
struct Slot {
    /// Number of the connection among those that have used the slot one after the other.
    generation: u32,
    pair: Option<Box<Pair>>,
}

pub struct Forwarder {
    shared: Arc<Shared>,
    number: usize,
    epoll: OwnedFd,
    slots: Vec<Slot>,
    free: Vec<u32>,
    buffer: Box<[u8]>,
}

/// Why a connection ends.
enum ConnectionEnd {
    /// Both directions have ended.
    Ended,
    Failed(usize),
}

impl Forwarder {
    pub fn new(shared: Arc<Shared>, number: usize) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed("epoll", error))?;
        let event = &shared.inboxes[number].event;
        epoll::add(&epoll, event, epoll::EventData::new_u64(INBOX), epoll::EventFlags::IN)
            .map_err(|error| failed("epoll", error))?;
        let buffer = vec![0; PIECE_BYTES].into();
        Ok(Self { shared, number, epoll, slots: Vec::new(), free: Vec::new(), buffer })
    }

    /// Passes on bytes until the proxy is stopped.
    pub fn run(mut self) -> Result<()> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        while !self.shared.is_stopped() {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed("epoll_wait", error)),
            }
            for event in &events {
                match event.data.u64() {
                    INBOX => {
                        for (session, connection) in self.shared.inboxes[self.number].take_all() {
                            self.admit(session, connection);
                        }
                    }
                    key => self.handle_event(key, event.flags),
                }
            }
        }
        for pair in self.slots.iter_mut().filter_map(|slot| slot.pair.as_mut()) {
            self.shared.ended(pair, false);
        }
        Ok(())
    }

    fn admit(&mut self, session: u32, connection: StartedConnection) {
        let StartedConnection { client, server, answer, session: start } = connection;
        let tracker = start.map(|start| start.tracker(session, self.shared.clock));
        if tracker.is_none() {
            self.shared.unfollowed.fetch_add(1, Relaxed);
        }
        let directions = [Direction::default(), Direction { waiting: answer, ..Direction::default() }];
        let interest = [epoll::EventFlags::empty(); 2];
        let pair = Box::new(Pair {
            sides: [client, server],
            directions,
            interest,
            hung_up: [false; 2],
            parked: [false; 2],
            tracker,
        });
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let generation = self.slots[slot as usize].generation;
        for (number, side) in pair.sides.iter().enumerate() {
            let data = epoll::EventData::new_u64(key(slot, generation, number));
            if epoll::add(&self.epoll, &side.fd, data, epoll::EventFlags::empty()).is_err() {
                self.free.push(slot);
                self.shared.open.fetch_sub(1, Relaxed);
                return;
            }
        }
        self.slots[slot as usize].pair = Some(pair);
        self.progress(slot, |pair, shared, buffer| {
            if let Some(tracker) = &mut pair.tracker {
                tracker.server_sent(&pair.directions[SERVER].waiting, clock::now());
            }
            pair.drain(SERVER, shared, buffer)?;
            // The TLS session may have received bytes already, for which there will be no event.
            pair.pump(CLIENT, shared, buffer)?;
            pair.pump(SERVER, shared, buffer)
        });
    }

    fn handle_event(&mut self, key: u64, flags: epoll::EventFlags) {
        let (slot, side) = ((key as u32) >> 1, (key & 1) as usize);
        let is_current = self
            .slots
            .get(slot as usize)
            .is_some_and(|one| u64::from(one.generation) == key >> 32 && one.pair.is_some());
        if !is_current {
            return;
        }
        self.progress(slot, |pair, shared, buffer| {
            if flags.contains(epoll::EventFlags::OUT) {
                pair.drain(1 - side, shared, buffer)?;
            }
            if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                let was_congested = pair.is_congested(CLIENT);
                pair.pump(side, shared, buffer)?;
                // Bytes inside a TLS session cause no event.
                if was_congested && pair.sides[CLIENT].is_tls() {
                    pair.pump(CLIENT, shared, buffer)?;
                }
            }
            if !flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                return Ok(());
            }
            if pair.directions[side].has_ended {
                return Err(ConnectionEnd::Failed(side));
            }
            pair.hung_up[side] = true;
            Ok(())
        });
    }

    /// Moves bytes of a connection with `moves`, and closes the connection if `moves` reports its end.
    fn progress(
        &mut self,
        slot: u32,
        moves: impl FnOnce(&mut Pair, &Shared, &mut [u8]) -> std::result::Result<(), ConnectionEnd>,
    ) {
        let place = &mut self.slots[slot as usize];
        let Some(pair) = &mut place.pair else { return };
        let mut moved = moves(pair, &self.shared, &mut self.buffer);
        if moved.is_ok() && !pair.register(&self.epoll, slot, place.generation) {
            moved = Err(ConnectionEnd::Failed(CLIENT));
        }
        let Err(over) = moved else { return };
        if let Some(mut pair) = place.pair.take() {
            self.shared.ended(&mut pair, matches!(over, ConnectionEnd::Failed(SERVER)));
        }
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
    }
}

impl Shared {
    /// Ends a connection, and reports its last statements.
    fn ended(&self, pair: &mut Pair, by_server: bool) {
        let by_server = by_server || pair.directions[SERVER].has_ended;
        if let Some(tracker) = &mut pair.tracker {
            tracker.close(by_server, clock::now());
            self.queue.put(tracker.events());
        }
        self.open.fetch_sub(1, Relaxed);
    }
}

/// Returns the key of an event. The key contains a slot, the generation of the slot, and a side.
fn key(slot: u32, generation: u32, side: usize) -> u64 {
    u64::from(generation) << 32 | u64::from(slot) << 1 | side as u64
}

impl Pair {
    /// Reads from one side, and sends to the other.
    fn pump(&mut self, side: usize, shared: &Shared, buffer: &mut [u8]) -> std::result::Result<(), ConnectionEnd> {
        let mut pieces = 0;
        while !self.directions[side].is_blocked() && !self.directions[side].has_ended && !self.is_congested(side) {
            match self.sides[side].receive(buffer) {
                Ok(0) => {
                    self.directions[side].has_ended = true;
                    self.close(side)?;
                }
                Ok(count) => {
                    let now = clock::now();
                    self.send(side, &buffer[..count])?;
                    self.follow(side, &buffer[..count], now, shared);
                    pieces += 1;
                    // After a short piece, no more bytes are waiting. This does not apply to TLS. There is no event for
                    // bytes inside a TLS session, so all of them are read.
                    if !self.sides[side].is_tls() && (count < buffer.len() || pieces >= MAX_PIECES) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(ConnectionEnd::Failed(side)),
            }
        }
        Ok(())
    }

    /// Whether the client must wait until the server has answered.
    fn is_congested(&self, side: usize) -> bool {
        side == CLIENT && self.tracker.as_ref().is_some_and(|tracker| tracker.is_congested())
    }

    fn send(&mut self, side: usize, bytes: &[u8]) -> std::result::Result<(), ConnectionEnd> {
        let sent = self.sides[1 - side].send(bytes).map_err(|_| ConnectionEnd::Failed(1 - side))?;
        if sent < bytes.len() {
            let direction = &mut self.directions[side];
            direction.waiting.clear();
            direction.waiting.extend_from_slice(&bytes[sent..]);
            direction.sent = 0;
        }
        Ok(())
    }

    fn follow(&mut self, side: usize, bytes: &[u8], now: u64, shared: &Shared) {
        let Some(tracker) = &mut self.tracker else { return };
        let was_lost = tracker.is_lost();
        if side == CLIENT {
            tracker.client_sent(bytes, now)
        } else {
            tracker.server_sent(bytes, now)
        }
        if tracker.is_lost() && !was_lost {
            shared.unfollowed.fetch_add(1, Relaxed);
        }
        if !tracker.events().is_empty() && !shared.queue.put(tracker.events()) {
            tracker.lose_statements();
        }
    }

    /// Sends the waiting bytes of the direction that begins at `side`. If all are sent, continues to read from that
    /// side.
    fn drain(&mut self, side: usize, shared: &Shared, buffer: &mut [u8]) -> std::result::Result<(), ConnectionEnd> {
        let (direction, to) = (&mut self.directions[side], &mut self.sides[1 - side]);
        if !to.flush().map_err(|_| ConnectionEnd::Failed(1 - side))? {
            return Ok(());
        }
        while direction.is_blocked() {
            let sent = to.send(&direction.waiting[direction.sent..]).map_err(|_| ConnectionEnd::Failed(1 - side))?;
            if sent == 0 {
                return Ok(());
            }
            direction.sent += sent;
        }
        (direction.waiting, direction.sent) = (Vec::new(), 0);
        self.close(side)?;
        self.pump(side, shared, buffer)
    }

    /// Passes on the end of a direction, if all its bytes are sent.
    fn close(&mut self, side: usize) -> std::result::Result<(), ConnectionEnd> {
        let direction = &mut self.directions[side];
        if direction.has_ended && !direction.is_blocked() && !direction.is_closed {
            direction.is_closed = true;
            self.sides[1 - side].end();
        }
        if self.directions.iter().all(|direction| direction.is_closed) { Err(ConnectionEnd::Ended) } else { Ok(()) }
    }

    /// Registers both sides for the events that they wait for. Returns false if that fails.
    fn register(&mut self, epoll: &OwnedFd, slot: u32, generation: u32) -> bool {
        for side in [CLIENT, SERVER] {
            let reads =
                !self.directions[side].has_ended && !self.directions[side].is_blocked() && !self.is_congested(side);
            let writes = self.directions[1 - side].is_blocked() || self.sides[side].wants_write();
            let mut wanted = epoll::EventFlags::empty();
            wanted.set(epoll::EventFlags::IN, reads);
            wanted.set(epoll::EventFlags::OUT, writes);
            let (fd, data) = (&self.sides[side].fd, epoll::EventData::new_u64(key(slot, generation, side)));
            let parks = self.hung_up[side] && wanted.is_empty();
            let done = match (self.parked[side], parks) {
                (false, true) => epoll::delete(epoll, fd),
                (true, false) => epoll::add(epoll, fd, data, wanted),
                (false, false) if self.interest[side] != wanted => epoll::modify(epoll, fd, data, wanted),
                _ => Ok(()),
            };
            self.parked[side] = parks;
            self.interest[side] = wanted;
            if done.is_err() {
                return false;
            }
        }
        true
    }
}
