//! A thread of the relay, which forwards the bytes of its connections after their delay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown, sockopt};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::delay::{DelayedBytes, End};
use super::preface::{self, PrefaceState};
use super::wakeup_latency::WakeupLatency;
use super::{NewClients, Shared};
use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::threads::Gate;
use crate::wire::Endpoint;
use crate::{Error, Result};

/// Maximum number of bytes read at a time from one connection.
const READ_BYTES: usize = 64 << 10;
/// Maximum number of events handled between two readings of the clock.
const MAX_EVENTS: usize = 64;
/// How often an idle thread checks whether it must end.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100 * MILLISECOND as i64 };
/// Time limit for the preface, which clients send immediately after connecting.
const PREFACE_NS: u64 = 10 * SECOND;
/// Pause before another attempt. Attempts fail if no descriptor is free, or if the server's queue of new connections is
/// full.
const RETRY_NS: u64 = MILLISECOND;
/// Memory for bytes in flight, divided among the directions of all connections of the thread.
const MAX_BYTES: usize = 256 << 20;
const LEAST_EACH: usize = 64 << 10;
const MAX_EACH: usize = 64 << 20;

/// Numbers of the two sides of a connection. A direction has the number of its sender's side.
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// Kind of a timer that concerns the connection as a whole.
const WHOLE: usize = 2;
const LISTENER: u64 = u64::MAX;
const NEW_CLIENT: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;

/// How far a relayed connection has been opened.
#[derive(Debug, PartialEq, Eq)]
enum ConnectionStage {
    /// The client has not finished its preface.
    Preface(Vec<u8>),
    /// The server has not accepted yet.
    Connecting,
    Open,
}

/// A socket, and the events for which it is registered.
struct Side {
    fd: OwnedFd,
    interest: epoll::EventFlags,
    /// Whether the socket is not registered with epoll. A registered socket would report an error or hang-up again and
    /// again.
    is_unregistered: bool,
}

/// One direction of a relayed connection.
struct Direction {
    delay: DelayedBytes,
    /// Whether a timer is set for the side's next bytes.
    is_timed: bool,
    /// Whether the receiver accepts no more bytes at the moment.
    is_blocked: bool,
    /// Whether the relay reads from the sender. The relay does not read while too many bytes wait, or after the
    /// sender's end.
    is_read: bool,
    has_ended: bool,
    /// Whether the end of the direction has been passed on.
    is_closed: bool,
    /// Whether the receiver is gone.
    is_broken: bool,
}

/// A connection of a client, and the connection of the relay to the server.
struct RelayedConnection {
    sides: [Option<Side>; 2],
    directions: [Direction; 2],
    stage: ConnectionStage,
    server: Option<Endpoint>,
}

/// A place for a connection, which is used again after the connection has ended.
#[derive(Default)]
struct Slot {
    /// Number that distinguishes the successive connections in this slot.
    generation: u32,
    connection: Option<RelayedConnection>,
}

/// A thread of the relay, with its connections and timers.
pub struct Forwarder {
    shared: Arc<Shared>,
    number: usize,
    /// The listening socket. Only the first thread has it.
    listener: Option<OwnedFd>,
    epoll: OwnedFd,
    /// A timer descriptor, because the timeout of epoll_wait(2) has a resolution of only milliseconds.
    timer: OwnedFd,
    /// The instant for which the timer was last set.
    alarm: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Number of connections.
    connections: usize,
    timers: BinaryHeap<Reverse<(u64, u64)>>,
    buffer: Box<[u8]>,
    /// Number of directions for which a timer is set.
    waiting: usize,
    wakeup_latency: WakeupLatency,
}

/// Returns the key of an event or a timer. The key contains a slot, the slot's generation, and a side or `WHOLE`.
fn key(slot: u32, generation: u32, part: usize) -> u64 {
    u64::from(generation) << 32 | u64::from(slot) << 2 | part as u64
}

fn failed(what: &str, error: Errno) -> Error {
    Error::failure("latency relay", format!("{what}: {error}"))
}

impl Direction {
    fn new(delay_ns: u64) -> Self {
        Self {
            delay: DelayedBytes::new(delay_ns),
            is_timed: false,
            is_blocked: false,
            is_read: false,
            has_ended: false,
            is_closed: false,
            is_broken: false,
        }
    }

    fn end(&mut self, arrival: u64, end: End) {
        self.delay.end(arrival, end);
        (self.has_ended, self.is_read) = (true, false);
    }
}

impl Forwarder {
    pub fn new(shared: Arc<Shared>, number: usize, listener: Option<OwnedFd>) -> Result<Self> {
        let made = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let handed = &shared.new_clients[number].event;
            epoll::add(&epoll, handed, epoll::EventData::new_u64(NEW_CLIENT), epoll::EventFlags::IN)?;
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            // The descriptor is edge-triggered, so it does not have to be read.
            let rings = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), rings)?;
            Ok((epoll, timer))
        };
        let (epoll, timer) = made().map_err(|error| failed("epoll", error))?;
        let mut forwarder = Self {
            shared,
            number,
            listener,
            epoll,
            timer,
            alarm: NEVER,
            slots: Vec::new(),
            free: Vec::new(),
            connections: 0,
            timers: BinaryHeap::new(),
            buffer: vec![0; READ_BYTES].into(),
            waiting: 0,
            wakeup_latency: WakeupLatency::default(),
        };
        forwarder.listen();
        Ok(forwarder)
    }

    /// Relays until the gate is stopped.
    pub fn run(mut self, gate: &Gate) -> Result<()> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        while !gate.is_stopped() {
            let now = clock::now();
            self.deliver_due(now);
            self.wait(&mut events)?;
            for event in &events {
                let flags = event.flags;
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    NEW_CLIENT => self.take_new_clients(),
                    TIMER => self.wakeup_latency.record(clock::now().saturating_sub(self.alarm)),
                    key => self.handle_event(key, flags),
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<()> {
        events.clear();
        let now = clock::now();
        let next = self.timers.peek().map_or(NEVER, |Reverse((due, _))| *due);
        let nap = self.wakeup_latency.sleep_ns(next.saturating_sub(now), self.waiting);
        let mut timeout = TICK;
        if nap == 0 {
            timeout = Timespec { tv_sec: 0, tv_nsec: 0 };
        } else if next < NEVER && self.alarm != now + nap {
            self.alarm = now + nap;
            let at = Timespec { tv_sec: (self.alarm / SECOND) as i64, tv_nsec: (self.alarm % SECOND) as i64 };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
                .map_err(|error| failed("timerfd_settime", error))?;
        }
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(failed("epoll_wait", error)),
        }
    }

    fn deliver_due(&mut self, now: u64) {
        while let Some(&Reverse((due, key))) = self.timers.peek() {
            if due > now {
                return;
            }
            self.timers.pop();
            if key == LISTENER {
                self.listen();
                continue;
            }
            let (slot, part) = ((key as u32) >> 2, (key & 3) as usize);
            self.waiting -= usize::from(part != WHOLE);
            match self.connection(key) {
                None => {}
                Some(_) if part == WHOLE => self.time_limit_reached(slot, now),
                Some(connection) => {
                    connection.directions[part].is_timed = false;
                    self.deliver(slot, part);
                }
            }
        }
    }

    /// Returns the connection of an event or a timer, unless it has ended.
    fn connection(&mut self, key: u64) -> Option<&mut RelayedConnection> {
        let slot = self.slots.get_mut((key as u32 >> 2) as usize)?;
        if u64::from(slot.generation) == key >> 32 { slot.connection.as_mut() } else { None }
    }

    /// Waits for new connections.
    fn listen(&mut self) {
        if let Some(listener) = &self.listener {
            // Registration fails if memory is short. The timer then leads to another attempt.
            let data = epoll::EventData::new_u64(LISTENER);
            if epoll::add(&self.epoll, listener, data, epoll::EventFlags::IN).is_err() {
                self.timers.push(Reverse((clock::now() + RETRY_NS, LISTENER)));
            }
        }
    }

    fn accept(&mut self) -> Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(client) => {
                let to = self.shared.next_thread();
                if to == self.number { self.admit(client) } else { self.shared.new_clients[to].add(client) }
            }
            // New connections must wait until descriptors or memory are free. The timer then leads to another attempt.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                let _ = epoll::delete(&self.epoll, listener);
                self.timers.push(Reverse((clock::now() + RETRY_NS, LISTENER)));
            }
            // The client has given up, or the wait was interrupted. The connection may also have been accepted already,
            // after another event.
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => {}
            Err(error) => return Err(failed("accept", error)),
        }
        Ok(())
    }

    fn take_new_clients(&mut self) {
        for client in self.shared.new_clients[self.number].take() {
            self.admit(client);
        }
    }

    /// Starts to read the preface of a new client.
    fn admit(&mut self, client: OwnedFd) {
        if !self.shared.is_unix && sockopt::set_tcp_nodelay(&client, true).is_err() {
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let directions = [Direction::new(self.shared.delay_ns), Direction::new(self.shared.delay_ns)];
        let sides = [Some(Side { fd: client, interest: epoll::EventFlags::empty(), is_unregistered: true }), None];
        self.slots[slot as usize].connection =
            Some(RelayedConnection { sides, directions, stage: ConnectionStage::Preface(Vec::new()), server: None });
        self.connections += 1;
        self.set_timer(slot, WHOLE, clock::now() + PREFACE_NS);
        self.register(slot, CLIENT);
    }

    fn set_timer(&mut self, slot: u32, part: usize, due: u64) {
        self.timers.push(Reverse((due, key(slot, self.slots[slot as usize].generation, part))));
    }

    /// Handles the end of a connection's time limit. If its preface has not arrived, the connection ends. If connecting
    /// failed, tries again.
    fn time_limit_reached(&mut self, slot: u32, now: u64) {
        let Some(connection) = &self.slots[slot as usize].connection else { return };
        match connection.stage {
            ConnectionStage::Preface(_) => self.remove(slot),
            ConnectionStage::Connecting if connection.sides[SERVER].is_none() => self.connect(slot, now),
            ConnectionStage::Connecting | ConnectionStage::Open => {}
        }
    }

    /// Handles an event of a connection.
    fn handle_event(&mut self, key: u64, flags: epoll::EventFlags) {
        let (slot, side) = ((key as u32) >> 2, (key & 3) as usize);
        let Some(connection) = self.connection(key) else { return };
        let ended = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        match connection.stage {
            ConnectionStage::Preface(_) => self.read_preface(slot),
            ConnectionStage::Connecting if side == CLIENT => self.remove(slot), // the client has given up
            ConnectionStage::Connecting => self.connected(slot),
            ConnectionStage::Open => {
                if flags.contains(epoll::EventFlags::OUT) {
                    self.deliver(slot, 1 - side);
                }
                if self.connection(key).is_some() {
                    self.read(slot, side, ended);
                }
            }
        }
    }

    fn read_preface(&mut self, slot: u32) {
        let connection = self.slots[slot as usize].connection.as_mut().expect("the caller has seen it");
        let ConnectionStage::Preface(bytes) = &mut connection.stage else { return };
        let fd = &connection.sides[CLIENT].as_ref().expect("a client is connected").fd;
        let max_bytes = &mut self.buffer[..=preface::MAX_BYTES - bytes.len()];
        match recv(fd, max_bytes, RecvFlags::DONTWAIT) {
            Ok((1.., count)) => bytes.extend_from_slice(&self.buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(_) | Err(_) => return self.remove(slot),
        }
        match preface::parse(bytes, &self.shared.token) {
            PrefaceState::Incomplete => {}
            PrefaceState::Foreign => self.remove(slot),
            PrefaceState::Complete(server) => {
                connection.server = Some(server);
                connection.stage = ConnectionStage::Connecting;
                self.register(slot, CLIENT);
                self.connect(slot, clock::now());
            }
        }
    }

    /// Starts to connect to the server.
    fn connect(&mut self, slot: u32, now: u64) {
        let connection = self.slots[slot as usize].connection.as_mut().expect("the caller has seen it");
        match connection.server.as_ref().expect("the preface names it").begin() {
            Ok((fd, is_connected)) => {
                connection.sides[SERVER] =
                    Some(Side { fd, interest: epoll::EventFlags::empty(), is_unregistered: true });
                if is_connected { self.connected(slot) } else { self.register(slot, SERVER) }
            }
            Err(Errno::AGAIN) => self.set_timer(slot, WHOLE, now + RETRY_NS),
            Err(error) => self.refused(slot, error),
        }
    }

    /// Starts to relay, if the server has accepted the connection.
    fn connected(&mut self, slot: u32) {
        let connection = self.slots[slot as usize].connection.as_mut().expect("the caller has seen it");
        let fd = &connection.sides[SERVER].as_ref().expect("it was opened").fd;
        match sockopt::socket_error(fd) {
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) => return self.refused(slot, error),
        }
        // Connecting takes a round trip, like TCP's handshake. The server accepts when the last packet of the handshake
        // has arrived. Its first bytes therefore reach the client after two round trips.
        let (now, round_trip_ns) = (clock::now(), 2 * self.shared.delay_ns);
        connection.stage = ConnectionStage::Open;
        connection.directions[CLIENT].is_read = true;
        connection.directions[SERVER].is_read = true;
        let back = &mut connection.directions[SERVER].delay;
        back.push(now + self.shared.delay_ns, &0i32.to_le_bytes());
        back.not_before(now + 2 * round_trip_ns);
        self.register(slot, CLIENT);
        self.register(slot, SERVER);
        self.set_delivery_timer(slot, SERVER);
    }

    /// Answers the client with the error, after a round trip.
    fn refused(&mut self, slot: u32, error: Errno) {
        let connection = self.slots[slot as usize].connection.as_mut().expect("the caller has seen it");
        connection.sides[SERVER] = None;
        connection.stage = ConnectionStage::Open;
        let now = clock::now() + self.shared.delay_ns;
        connection.directions[SERVER].delay.push(now, &error.raw_os_error().to_le_bytes());
        connection.directions[SERVER].end(now, End::Closed);
        self.register(slot, CLIENT);
        self.set_delivery_timer(slot, SERVER);
    }

    /// Reads the bytes that have arrived from one side.
    fn read(&mut self, slot: u32, side: usize, ended: bool) {
        let max_bytes = self.max_waiting_bytes();
        let connection = self.slots[slot as usize].connection.as_mut().expect("the caller has seen it");
        let direction = &mut connection.directions[side];
        let Some(socket) = &mut connection.sides[side] else { return };
        if !direction.is_read {
            if ended && !socket.is_unregistered {
                socket.is_unregistered = true;
                let _ = epoll::delete(&self.epoll, &socket.fd); // epoll would report the hang-up repeatedly
            }
            return;
        }
        let got = recv(&socket.fd, &mut *self.buffer, RecvFlags::DONTWAIT);
        let now = clock::now();
        match got {
            Ok((1.., _)) if direction.is_broken => {}
            Ok((1.., count)) => {
                direction.delay.push(now, &self.buffer[..count]);
                if direction.delay.memory_bytes() >= max_bytes {
                    direction.is_read = false;
                    self.register(slot, side);
                }
                self.set_delivery_timer(slot, side);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => {
                let end =
                    if got.is_err() || connection.directions[1 - side].is_broken { End::Reset } else { End::Closed };
                connection.directions[side].end(now, end);
                self.register(slot, side);
                self.set_delivery_timer(slot, side);
            }
        }
    }

    /// Returns the number of bytes that may wait in one direction.
    fn max_waiting_bytes(&self) -> usize {
        (MAX_BYTES / (2 * self.connections.max(1))).clamp(LEAST_EACH, MAX_EACH)
    }

    /// Sends the bytes that are due from `side` to the other side. If the direction has ended, then passes on the end.
    fn deliver(&mut self, slot: u32, side: usize) {
        let max_bytes = self.max_waiting_bytes();
        let connection = self.slots[slot as usize].connection.as_mut().expect("the caller has seen it");
        let direction = &mut connection.directions[side];
        let other = 1 - side;
        let was_blocked = std::mem::take(&mut direction.is_blocked);
        let mut now = clock::now();
        loop {
            let [first, second] = direction.delay.due_bytes(now);
            if first.is_empty() {
                break;
            }
            let Some(to) = &connection.sides[other] else { break };
            let more = if second.is_empty() { SendFlags::empty() } else { SendFlags::MORE };
            match send(&to.fd, first, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more) {
                Ok(count) => {
                    let tally = &self.shared.counters[self.number];
                    tally.bytes.fetch_add(count as u64, Relaxed);
                    direction.delay.remove_sent(count, now, |late_ns| {
                        // If the receiver did not read, the delay was not caused by the relay.
                        if !was_blocked {
                            tally.chunks.fetch_add(1, Relaxed);
                            tally.late_ns.fetch_add(late_ns, Relaxed);
                        }
                    });
                    now = clock::now();
                }
                Err(Errno::AGAIN) => {
                    direction.is_blocked = true;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(_) => return self.broken(slot, side, now),
            }
        }
        if !direction.has_ended && !direction.is_read && direction.delay.memory_bytes() < max_bytes / 2 {
            direction.is_read = true;
        }
        match direction.delay.take_end(now) {
            Some(End::Closed) => {
                direction.is_closed = true;
                if let Some(to) = &connection.sides[other] {
                    let _ = shutdown(&to.fd, Shutdown::Write); // errors are ignored: the receiver may be gone
                }
                if connection.sides[SERVER].is_none() || connection.directions[other].is_closed {
                    return self.remove(slot);
                }
            }
            Some(End::Reset) => return self.reset(slot, other),
            None => {}
        }
        self.register(slot, side);
        self.register(slot, other);
        self.set_delivery_timer(slot, side);
    }

    /// Handles a direction whose receiver is gone. When the other direction has ended, the sender gets a reset.
    fn broken(&mut self, slot: u32, side: usize, now: u64) {
        let connection = self.slots[slot as usize].connection.as_mut().expect("the caller has seen it");
        let other = 1 - side;
        if connection.sides[SERVER].is_none() {
            return self.remove(slot); // the client has not waited for the server's error
        }
        connection.directions[side].is_broken = true;
        connection.directions[side].delay.discard();
        if connection.directions[other].has_ended {
            connection.directions[other].end(now, End::Reset);
        }
        self.register(slot, side);
        self.register(slot, other);
        self.set_delivery_timer(slot, other);
    }

    /// Closes the connection of both sides. `side` gets a reset.
    fn reset(&mut self, slot: u32, side: usize) {
        if let Some(connection) = &self.slots[slot as usize].connection
            && let Some(to) = &connection.sides[side]
        {
            // With this option, closing the socket resets the connection (socket(7), SO_LINGER). Unix sockets have no
            // resets.
            let _ = sockopt::set_socket_linger(&to.fd, Some(std::time::Duration::ZERO));
        }
        self.remove(slot);
    }

    fn remove(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        place.generation = place.generation.wrapping_add(1);
        place.connection = None;
        self.free.push(slot);
        self.connections -= 1;
    }

    /// Sets a timer for the next bytes of a direction. Does nothing if a timer is already set, or if the receiver must
    /// first accept earlier bytes.
    fn set_delivery_timer(&mut self, slot: u32, side: usize) {
        let Some(connection) = &mut self.slots[slot as usize].connection else { return };
        let direction = &mut connection.directions[side];
        let due = direction.delay.next();
        if due != NEVER && !direction.is_timed && !direction.is_blocked {
            direction.is_timed = true;
            self.waiting += 1;
            self.set_timer(slot, side, due);
        }
    }

    /// Registers a side for the events that it waits for. If that fails, the connection is closed.
    fn register(&mut self, slot: u32, side: usize) {
        let generation = self.slots[slot as usize].generation;
        let Some(connection) = &mut self.slots[slot as usize].connection else { return };
        let wanted = match connection.stage {
            ConnectionStage::Preface(_) => epoll::EventFlags::IN,
            ConnectionStage::Connecting if side == CLIENT => epoll::EventFlags::RDHUP,
            ConnectionStage::Connecting => epoll::EventFlags::OUT,
            ConnectionStage::Open => {
                let mut wanted = epoll::EventFlags::empty();
                wanted.set(epoll::EventFlags::IN, connection.directions[side].is_read);
                wanted.set(epoll::EventFlags::OUT, connection.directions[1 - side].is_blocked);
                wanted
            }
        };
        let Some(socket) = &mut connection.sides[side] else { return };
        if socket.interest == wanted && (!socket.is_unregistered || wanted.is_empty()) {
            return;
        }
        let data = epoll::EventData::new_u64(key(slot, generation, side));
        let done = if socket.is_unregistered {
            epoll::add(&self.epoll, &socket.fd, data, wanted)
        } else {
            epoll::modify(&self.epoll, &socket.fd, data, wanted)
        };
        (socket.interest, socket.is_unregistered) = (wanted, false);
        if done.is_err() {
            self.remove(slot);
        }
    }
}

impl NewClients {
    pub fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Self { event: event.map_err(|error| failed("eventfd", error))?, clients: Default::default() })
    }

    fn add(&self, client: OwnedFd) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        let _ = rustix::io::write(self.event.as_fd(), &1u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<OwnedFd> {
        let _ = rustix::io::read(self.event.as_fd(), &mut [0; 8]);
        std::mem::take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
