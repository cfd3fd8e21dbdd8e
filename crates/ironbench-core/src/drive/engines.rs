//! Which loop runs which engine: the only place where transports, transactions and engines are put together.

use std::ops::Range;
use std::os::fd::OwnedFd;

use super::blocking::{BlockingLoop, Patience, SharedPace};
use super::crew::{self, Ended, Haul, Orders, Start, Worker};
use super::event_loop::EventLoop;
use super::null::NullScript;
use super::opening;
use super::plan::{Engine, Io, Plan, Protocol};
use super::postgres::{PostgresScript, Statements};
use super::script::Clients;
use crate::measure::{Recorder, clock};
use crate::script::Program;
use crate::wire::postgres::{Connected, Connector, Stream};
use crate::wire::sqlite;
use crate::wire::transport::epoll::{Epoll, Socket};
use crate::wire::transport::null::Null;
use crate::wire::transport::uring::Uring;
use crate::{Error, Result};

type Poll<'a> = &'a mut dyn FnMut() -> bool;

pub fn run(orders: &Orders, program: &Program, poll: Poll) -> Result<Haul> {
    let Plan { variables, clients, seed, max_tries, .. } = orders.plan;
    let clients = Clients::new(program, variables, *clients, *seed, *max_tries);
    match &orders.plan.engine {
        Engine::Null { service_ns } => {
            let make = |_, share: Range<usize>| {
                let transport = Null::new(share.len(), *service_ns);
                Ok(EventLoop::new(transport, share.map(|client| NullScript(clients.client(client))).collect()))
            };
            crew::run(orders, make, poll)
        }
        Engine::Sqlite { path, pragmas } => {
            let pace = SharedPace::default();
            let mut patience = Patience::default();
            let give_up = patience.give_up();
            let make = |_, share: Range<usize>| {
                let connection = sqlite::Client::open(path, pragmas, program.statements, give_up.clone())?;
                Ok(BlockingLoop::new(connection, clients.client(share.start), &pace, &give_up))
            };
            crew::run(orders, make, &mut || {
                patience.check(orders.control, clock::now());
                poll()
            })
        }
        Engine::Postgres { connection, protocol, io } => {
            let statements = Statements::of(program);
            let connector = Connector::new(connection.clone())?;
            let postgres = Postgres { orders, clients, protocol: *protocol, statements, connector };
            postgres.run(*io, poll)
        }
    }
}

struct Postgres<'a, 'o> {
    orders: &'a Orders<'o>,
    clients: Clients<'a>,
    protocol: Protocol,
    statements: Statements,
    connector: Connector,
}

/// The transport is known only when the sessions are there: TLS runs through epoll, and so does a kernel without io_uring.
#[expect(clippy::large_enum_variant, reason = "there is one for a thread")]
enum PostgresLoop<'p> {
    Uring(EventLoop<Uring, PostgresScript<'p>>),
    Epoll(EventLoop<Epoll, PostgresScript<'p>>),
}

impl Worker for PostgresLoop<'_> {
    fn io(&self) -> &'static str {
        match self {
            Self::Uring(event_loop) => event_loop.io(),
            Self::Epoll(event_loop) => event_loop.io(),
        }
    }

    fn run(self, start: &Start, recorder: &mut Recorder) -> Ended {
        match self {
            Self::Uring(event_loop) => event_loop.run(start, recorder),
            Self::Epoll(event_loop) => event_loop.run(start, recorder),
        }
    }
}

impl Postgres<'_, '_> {
    fn run(&self, io: Io, poll: Poll) -> Result<Haul> {
        let make = |_, share: Range<usize>| {
            let connect = || self.connector.connect_until(self.orders.control.stopped());
            let sessions = opening::open(share.len(), self.orders.shares.len(), connect)?;
            let script = |client| PostgresScript::new(self.clients.client(client), self.protocol, &self.statements);
            self.make(io, sessions, share.map(script).collect())
        };
        crew::run(self.orders, make, poll)
    }

    fn make<'p>(&self, io: Io, sessions: Vec<Connected>, scripts: Vec<PostgresScript<'p>>) -> Result<PostgresLoop<'p>> {
        let tls = sessions.iter().any(Connected::is_tls);
        if io == Io::Epoll || tls {
            return Ok(PostgresLoop::Epoll(EventLoop::new(epoll(sessions)?, scripts)));
        }
        match Uring::prepare(sessions.len()) {
            Ok(prepared) => {
                let sockets = sessions.into_iter().map(plain).collect();
                let transport = prepared.carry(sockets).map_err(|e| Error::failure("io_uring", e.to_string()))?;
                Ok(PostgresLoop::Uring(EventLoop::new(transport, scripts)))
            }
            Err(_) if io == Io::Auto => Ok(PostgresLoop::Epoll(EventLoop::new(epoll(sessions)?, scripts))),
            Err(error) => Err(Error::failure("io_uring", format!("cannot be used here: {error}"))
                .hint("let ironbench choose, or use epoll")),
        }
    }
}

fn epoll(sessions: Vec<Connected>) -> Result<Epoll> {
    let sockets = sessions.into_iter().map(|session| match session.stream {
        Stream::Plain(fd) => (Socket::Plain(fd), session.unread),
        Stream::Tls { fd, tls } => (Socket::Tls(fd, tls), session.unread),
    });
    Epoll::new(sockets.collect()).map_err(|e| Error::failure("epoll", e.to_string()))
}

fn plain(session: Connected) -> (OwnedFd, Vec<u8>) {
    match session.stream {
        Stream::Plain(fd) | Stream::Tls { fd, .. } => (fd, session.unread),
    }
}
