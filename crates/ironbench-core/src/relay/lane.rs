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

use super::delay::{Delay, End};
use super::naps::Naps;
use super::preface::{self, Received};
use super::{Inbox, Shared};
use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::crew::Gate;
use crate::wire::Endpoint;
use crate::{Error, Result};

/// Maximum number of bytes read at a time from one connection.
const PIECE_BYTES: usize = 64 << 10;
/// Maximum number of events handled between two readings of the clock.
const MOST_EVENTS: usize = 64;
/// How often an idle thread checks whether it must end.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100 * MILLISECOND as i64 };
/// Time limit for the preface, which clients send immediately after connecting.
const PREFACE_NS: u64 = 10 * SECOND;
/// Pause before another attempt. Attempts fail if no descriptor is free, or if the server's queue of new connections is
/// full.
const AGAIN_NS: u64 = MILLISECOND;
/// Memory for bytes in flight, divided among the directions of all connections of the thread.
const MOST_BYTES: usize = 256 << 20;
const LEAST_EACH: usize = 64 << 10;
const MOST_EACH: usize = 64 << 20;

/// Numbers of the two sides of a connection. A direction has the number of its sender's side.
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// Kind of a timer that concerns the connection as a whole.
const WHOLE: usize = 2;
const LISTENER: u64 = u64::MAX;
const HANDED: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;

#[derive(Debug, PartialEq, Eq)]
enum Stage {
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
    parked: bool,
}

struct Way {
    delay: Delay,
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

struct Pair {
    sides: [Option<Side>; 2],
    ways: [Way; 2],
    stage: Stage,
    server: Option<Endpoint>,
}

#[derive(Default)]
struct Slot {
    /// Number that distinguishes the successive connections in this slot.
    generation: u32,
    pair: Option<Pair>,
}

pub struct Lane {
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
    pairs: usize,
    timers: BinaryHeap<Reverse<(u64, u64)>>,
    buffer: Box<[u8]>,
    /// Number of directions for which a timer is set.
    waiting: usize,
    naps: Naps,
}

/// Returns the key of an event or a timer. The key contains a slot, the slot's generation, and a side or `WHOLE`.
fn key(slot: u32, generation: u32, part: usize) -> u64 {
    u64::from(generation) << 32 | u64::from(slot) << 2 | part as u64
}

fn failed(what: &str, error: Errno) -> Error {
    Error::failure("latency relay", format!("{what}: {error}"))
}

impl Way {
    fn new(delay_ns: u64) -> Self {
        Self {
            delay: Delay::new(delay_ns),
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

impl Lane {
    pub fn new(shared: Arc<Shared>, number: usize, listener: Option<OwnedFd>) -> Result<Self> {
        let made = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let handed = &shared.inboxes[number].event;
            epoll::add(&epoll, handed, epoll::EventData::new_u64(HANDED), epoll::EventFlags::IN)?;
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            // The descriptor is edge-triggered, so it does not have to be read.
            let rings = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), rings)?;
            Ok((epoll, timer))
        };
        let (epoll, timer) = made().map_err(|error| failed("epoll", error))?;
        let mut lane = Self {
            shared,
            number,
            listener,
            epoll,
            timer,
            alarm: NEVER,
            slots: Vec::new(),
            free: Vec::new(),
            pairs: 0,
            timers: BinaryHeap::new(),
            buffer: vec![0; PIECE_BYTES].into(),
            waiting: 0,
            naps: Naps::default(),
        };
        lane.listen();
        Ok(lane)
    }

    /// Relays until the gate is stopped.
    pub fn run(mut self, gate: &Gate) -> Result<()> {
        let mut events = Vec::with_capacity(MOST_EVENTS);
        while !gate.is_stopped() {
            let now = clock::now();
            self.deliver_due(now);
            self.wait(&mut events)?;
            for event in &events {
                let flags = event.flags;
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    HANDED => self.take_handed(),
                    TIMER => self.naps.woke(clock::now().saturating_sub(self.alarm)),
                    key => self.happened(key, flags),
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<()> {
        events.clear();
        let now = clock::now();
        let next = self.timers.peek().map_or(NEVER, |Reverse((due, _))| *due);
        let nap = self.naps.length(next.saturating_sub(now), self.waiting);
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
            match self.pair(key) {
                None => {}
                Some(_) if part == WHOLE => self.patience_ended(slot, now),
                Some(pair) => {
                    pair.ways[part].is_timed = false;
                    self.deliver(slot, part);
                }
            }
        }
    }

    /// Returns the connection of an event or a timer, unless it has ended.
    fn pair(&mut self, key: u64) -> Option<&mut Pair> {
        let slot = self.slots.get_mut((key as u32 >> 2) as usize)?;
        if u64::from(slot.generation) == key >> 32 { slot.pair.as_mut() } else { None }
    }

    /// Waits for new connections.
    fn listen(&mut self) {
        if let Some(listener) = &self.listener {
            // Registration fails if memory is short. The timer then leads to another attempt.
            let data = epoll::EventData::new_u64(LISTENER);
            if epoll::add(&self.epoll, listener, data, epoll::EventFlags::IN).is_err() {
                self.timers.push(Reverse((clock::now() + AGAIN_NS, LISTENER)));
            }
        }
    }

    fn accept(&mut self) -> Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(client) => {
                let to = self.shared.next_lane();
                if to == self.number { self.admit(client) } else { self.shared.inboxes[to].hand(client) }
            }
            // New connections must wait until descriptors or memory are free. The timer then leads to another attempt.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                let _ = epoll::delete(&self.epoll, listener);
                self.timers.push(Reverse((clock::now() + AGAIN_NS, LISTENER)));
            }
            // The client has given up, or the wait was interrupted. The connection may also have been accepted already,
            // after another event.
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => {}
            Err(error) => return Err(failed("accept", error)),
        }
        Ok(())
    }

    fn take_handed(&mut self) {
        for client in self.shared.inboxes[self.number].taken() {
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
        let ways = [Way::new(self.shared.delay_ns), Way::new(self.shared.delay_ns)];
        let sides = [Some(Side { fd: client, interest: epoll::EventFlags::empty(), parked: true }), None];
        self.slots[slot as usize].pair = Some(Pair { sides, ways, stage: Stage::Preface(Vec::new()), server: None });
        self.pairs += 1;
        self.set_timer(slot, WHOLE, clock::now() + PREFACE_NS);
        self.register(slot, CLIENT);
    }

    fn set_timer(&mut self, slot: u32, part: usize, due: u64) {
        self.timers.push(Reverse((due, key(slot, self.slots[slot as usize].generation, part))));
    }

    /// Handles the end of a connection's time limit. If its preface has not arrived, the connection ends. If connecting
    /// failed, tries again.
    fn patience_ended(&mut self, slot: u32, now: u64) {
        let Some(pair) = &self.slots[slot as usize].pair else { return };
        match pair.stage {
            Stage::Preface(_) => self.remove(slot),
            Stage::Connecting if pair.sides[SERVER].is_none() => self.connect(slot, now),
            Stage::Connecting | Stage::Open => {}
        }
    }

    fn happened(&mut self, key: u64, flags: epoll::EventFlags) {
        let (slot, side) = ((key as u32) >> 2, (key & 3) as usize);
        let Some(pair) = self.pair(key) else { return };
        let ended = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        match pair.stage {
            Stage::Preface(_) => self.read_preface(slot),
            Stage::Connecting if side == CLIENT => self.remove(slot), // the client has given up
            Stage::Connecting => self.connected(slot),
            Stage::Open => {
                if flags.contains(epoll::EventFlags::OUT) {
                    self.deliver(slot, 1 - side);
                }
                if self.pair(key).is_some() {
                    self.read(slot, side, ended);
                }
            }
        }
    }

    fn read_preface(&mut self, slot: u32) {
        let pair = self.slots[slot as usize].pair.as_mut().expect("the caller has seen it");
        let Stage::Preface(bytes) = &mut pair.stage else { return };
        let fd = &pair.sides[CLIENT].as_ref().expect("a client is connected").fd;
        let room = &mut self.buffer[..=preface::MOST_BYTES - bytes.len()];
        match recv(fd, room, RecvFlags::DONTWAIT) {
            Ok((1.., count)) => bytes.extend_from_slice(&self.buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(_) | Err(_) => return self.remove(slot),
        }
        match preface::received(bytes, &self.shared.token) {
            Received::Part => {}
            Received::Foreign => self.remove(slot),
            Received::Whole(server) => {
                pair.server = Some(server);
                pair.stage = Stage::Connecting;
                self.register(slot, CLIENT);
                self.connect(slot, clock::now());
            }
        }
    }

    /// Starts to connect to the server.
    fn connect(&mut self, slot: u32, now: u64) {
        let pair = self.slots[slot as usize].pair.as_mut().expect("the caller has seen it");
        match pair.server.as_ref().expect("the preface names it").begin() {
            Ok((fd, is_connected)) => {
                pair.sides[SERVER] = Some(Side { fd, interest: epoll::EventFlags::empty(), parked: true });
                if is_connected { self.connected(slot) } else { self.register(slot, SERVER) }
            }
            Err(Errno::AGAIN) => self.set_timer(slot, WHOLE, now + AGAIN_NS),
            Err(error) => self.refused(slot, error),
        }
    }

    /// Starts to relay, if the server has accepted the connection.
    fn connected(&mut self, slot: u32) {
        let pair = self.slots[slot as usize].pair.as_mut().expect("the caller has seen it");
        let fd = &pair.sides[SERVER].as_ref().expect("it was opened").fd;
        match sockopt::socket_error(fd) {
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) => return self.refused(slot, error),
        }
        // Connecting takes a round trip, like TCP's handshake. The server accepts when the last packet of the handshake
        // has arrived. Its first bytes therefore reach the client after two round trips.
        let (now, round_trip_ns) = (clock::now(), 2 * self.shared.delay_ns);
        pair.stage = Stage::Open;
        pair.ways[CLIENT].is_read = true;
        pair.ways[SERVER].is_read = true;
        let back = &mut pair.ways[SERVER].delay;
        back.push(now + self.shared.delay_ns, &0i32.to_le_bytes());
        back.not_before(now + 2 * round_trip_ns);
        self.register(slot, CLIENT);
        self.register(slot, SERVER);
        self.time(slot, SERVER);
    }

    /// Answers the client with the error, after a round trip.
    fn refused(&mut self, slot: u32, error: Errno) {
        let pair = self.slots[slot as usize].pair.as_mut().expect("the caller has seen it");
        pair.sides[SERVER] = None;
        pair.stage = Stage::Open;
        let now = clock::now() + self.shared.delay_ns;
        pair.ways[SERVER].delay.push(now, &error.raw_os_error().to_le_bytes());
        pair.ways[SERVER].end(now, End::Closed);
        self.register(slot, CLIENT);
        self.time(slot, SERVER);
    }

    /// Reads the bytes that have arrived from one side.
    fn read(&mut self, slot: u32, side: usize, ended: bool) {
        let room = self.room();
        let pair = self.slots[slot as usize].pair.as_mut().expect("the caller has seen it");
        let way = &mut pair.ways[side];
        let Some(socket) = &mut pair.sides[side] else { return };
        if !way.is_read {
            if ended && !socket.parked {
                socket.parked = true;
                let _ = epoll::delete(&self.epoll, &socket.fd); // epoll would report the hang-up repeatedly
            }
            return;
        }
        let got = recv(&socket.fd, &mut *self.buffer, RecvFlags::DONTWAIT);
        let now = clock::now();
        match got {
            Ok((1.., _)) if way.is_broken => {}
            Ok((1.., count)) => {
                way.delay.push(now, &self.buffer[..count]);
                if way.delay.held_bytes() >= room {
                    way.is_read = false;
                    self.register(slot, side);
                }
                self.time(slot, side);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => {
                let end = if got.is_err() || pair.ways[1 - side].is_broken { End::Reset } else { End::Closed };
                pair.ways[side].end(now, end);
                self.register(slot, side);
                self.time(slot, side);
            }
        }
    }

    /// Returns the number of bytes that may wait in one direction.
    fn room(&self) -> usize {
        (MOST_BYTES / (2 * self.pairs.max(1))).clamp(LEAST_EACH, MOST_EACH)
    }

    /// Sends the bytes that are due from `side` to the other side. If the direction has ended, then passes on the end.
    fn deliver(&mut self, slot: u32, side: usize) {
        let room = self.room();
        let pair = self.slots[slot as usize].pair.as_mut().expect("the caller has seen it");
        let way = &mut pair.ways[side];
        let other = 1 - side;
        let was_blocked = std::mem::take(&mut way.is_blocked);
        let mut now = clock::now();
        loop {
            let [first, second] = way.delay.leaving(now);
            if first.is_empty() {
                break;
            }
            let Some(to) = &pair.sides[other] else { break };
            let more = if second.is_empty() { SendFlags::empty() } else { SendFlags::MORE };
            match send(&to.fd, first, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more) {
                Ok(count) => {
                    let tally = &self.shared.tallies[self.number];
                    tally.bytes.fetch_add(count as u64, Relaxed);
                    way.delay.left(count, now, |late_ns| {
                        // If the receiver did not read, the delay was not caused by the relay.
                        if !was_blocked {
                            tally.pieces.fetch_add(1, Relaxed);
                            tally.late_ns.fetch_add(late_ns, Relaxed);
                        }
                    });
                    now = clock::now();
                }
                Err(Errno::AGAIN) => {
                    way.is_blocked = true;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(_) => return self.broken(slot, side, now),
            }
        }
        if !way.has_ended && !way.is_read && way.delay.held_bytes() < room / 2 {
            way.is_read = true;
        }
        match way.delay.ended(now) {
            Some(End::Closed) => {
                way.is_closed = true;
                if let Some(to) = &pair.sides[other] {
                    let _ = shutdown(&to.fd, Shutdown::Write); // errors are ignored: the receiver may be gone
                }
                if pair.sides[SERVER].is_none() || pair.ways[other].is_closed {
                    return self.remove(slot);
                }
            }
            Some(End::Reset) => return self.reset(slot, other),
            None => {}
        }
        self.register(slot, side);
        self.register(slot, other);
        self.time(slot, side);
    }

    /// Handles a direction whose receiver is gone. When the other direction has ended, the sender gets a reset.
    fn broken(&mut self, slot: u32, side: usize, now: u64) {
        let pair = self.slots[slot as usize].pair.as_mut().expect("the caller has seen it");
        let other = 1 - side;
        if pair.sides[SERVER].is_none() {
            return self.remove(slot); // the client has not waited for the server's error
        }
        pair.ways[side].is_broken = true;
        pair.ways[side].delay.discard();
        if pair.ways[other].has_ended {
            pair.ways[other].end(now, End::Reset);
        }
        self.register(slot, side);
        self.register(slot, other);
        self.time(slot, other);
    }

    /// Closes the connection of both sides. `side` gets a reset.
    fn reset(&mut self, slot: u32, side: usize) {
        if let Some(pair) = &self.slots[slot as usize].pair
            && let Some(to) = &pair.sides[side]
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
        place.pair = None;
        self.free.push(slot);
        self.pairs -= 1;
    }

    /// Sets a timer for the next bytes of a direction. Does nothing if a timer is already set, or if the receiver must
    /// first accept earlier bytes.
    fn time(&mut self, slot: u32, side: usize) {
        let Some(pair) = &mut self.slots[slot as usize].pair else { return };
        let way = &mut pair.ways[side];
        let due = way.delay.next();
        if due != NEVER && !way.is_timed && !way.is_blocked {
            way.is_timed = true;
            self.waiting += 1;
            self.set_timer(slot, side, due);
        }
    }

    /// Registers a side for the events that it waits for. If that fails, the connection is closed.
    fn register(&mut self, slot: u32, side: usize) {
        let generation = self.slots[slot as usize].generation;
        let Some(pair) = &mut self.slots[slot as usize].pair else { return };
        let wanted = match pair.stage {
            Stage::Preface(_) => epoll::EventFlags::IN,
            Stage::Connecting if side == CLIENT => epoll::EventFlags::RDHUP,
            Stage::Connecting => epoll::EventFlags::OUT,
            Stage::Open => {
                let mut wanted = epoll::EventFlags::empty();
                wanted.set(epoll::EventFlags::IN, pair.ways[side].is_read);
                wanted.set(epoll::EventFlags::OUT, pair.ways[1 - side].is_blocked);
                wanted
            }
        };
        let Some(socket) = &mut pair.sides[side] else { return };
        if socket.interest == wanted && (!socket.parked || wanted.is_empty()) {
            return;
        }
        let data = epoll::EventData::new_u64(key(slot, generation, side));
        let done = if socket.parked {
            epoll::add(&self.epoll, &socket.fd, data, wanted)
        } else {
            epoll::modify(&self.epoll, &socket.fd, data, wanted)
        };
        (socket.interest, socket.parked) = (wanted, false);
        if done.is_err() {
            self.remove(slot);
        }
    }
}

impl Inbox {
    pub fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Self { event: event.map_err(|error| failed("eventfd", error))?, clients: Default::default() })
    }

    fn hand(&self, client: OwnedFd) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        let _ = rustix::io::write(self.event.as_fd(), &1u64.to_ne_bytes());
    }

    fn taken(&self) -> Vec<OwnedFd> {
        let _ = rustix::io::read(self.event.as_fd(), &mut [0; 8]);
        std::mem::take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
