//! Chooses the loop for each engine. This is the only module that combines transports, transactions and engines.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::blocking::{BlockingLoop, GiveUpTimer};
use super::event_loop::EventLoop;
use super::ldap::{LdapScript, Operations};
use super::mysql::{MysqlScript, Statements as MysqlStatements};
use super::null::NullScript;
use super::parallel_connect::{self, ClientConnection};
use super::plan::{Engine, Io, Plan};
use super::postgres::{PostgresScript, Statements};
use super::reconnector::{Connect, Reconnector};
use super::script::Clients;
use super::thread_results::{ThreadResults, UnfinishedWork};
use super::threads::{self, DriveContext, Start, Worker};
use super::transaction::Transaction;
use crate::measure::{Recorder, clock};
use crate::wire::library::Library;
use crate::wire::transport::epoll::Epoll;
use crate::wire::transport::null::Null;
use crate::wire::transport::uring::Uring;
use crate::wire::{
    Cancelling, Connected, Connector, ServerProtocol, Stream,
    ldap::{Ldap, OwnBind},
    mysql::Mysql,
    postgres::Postgres,
    sqlite,
};
use crate::{Error, Result};
use pgbench_script::{Program, Seeds};

pub type Poll<'a> = &'a mut dyn FnMut() -> bool;

/// Runs the scripts of a program on the plan's engine.
pub fn run(context: &DriveContext, program: &Program, poll: Poll) -> Result<ThreadResults> {
    let (Plan { variables, .. }, clients) = (context.plan, Clients::new(program, context));
    let on_loss = context.plan.reconnect_on_loss;
    match &context.plan.engine {
        Engine::Null { service_ns } => {
            run_null(context, *service_ns, |client| NullScript(clients.client(client)), poll)
        }
        Engine::Sqlite { path, pragmas } => {
            let give_up_timer = GiveUpTimer::default();
            let give_up = give_up_timer.give_up();
            let open = |_| sqlite::Client::open(path, pragmas, program.statements, give_up.clone());
            run_blocking(context, &clients, open, give_up_timer, poll)
        }
        Engine::Called { .. } => Err(Error::input("drive plan", "the connections are missing")),
        Engine::Postgres { connection, protocol, io, reconnect } => {
            let (statements, timed) = (Statements::of(program), context.plan.statements);
            let script = |client, _: &Connected<Postgres>| {
                PostgresScript::new(clients.client(client), *protocol, &statements, timed, *reconnect)
            };
            run_server(context, connection, *io, *reconnect > 0 || on_loss, script, poll)
        }
        Engine::Mysql { connection, protocol, io, reconnect, .. } => {
            let (statements, timed) = (MysqlStatements::of(program), context.plan.statements);
            let script = |client, session: &Connected<Mysql>| {
                let cached = session.state.caches_columns();
                MysqlScript::new(clients.client(client), *protocol, &statements, variables, cached, timed, *reconnect)
            };
            run_server(context, connection, *io, *reconnect > 0 || on_loss, script, poll)
        }
        Engine::Ldap { connection, io, reconnect, bind_back } => {
            let operations = Operations::of(program, &connection.base)?;
            let own = if *bind_back { Some(OwnBind::of(connection)?) } else { None };
            let part = context.plan.part_or_whole();
            let (timed, letters) = (context.plan.statements, Seeds::new(!context.plan.seed, part.all_clients, true));
            let script = |client, _: &Connected<Ldap>| {
                let random = letters.client(part.first_client + client);
                LdapScript::new(clients.client(client), &operations, random, timed, *reconnect)
                    .binding_back(own.as_ref())
            };
            run_server(context, connection, *io, *reconnect > 0 || on_loss, script, poll)
        }
    }
}

/// Runs the scripts of a program on a blocking engine. `open` opens the connection of the client with the given number.
pub fn run_driver<C: Library>(
    context: &DriveContext,
    program: &Program,
    open: impl Fn(usize) -> Result<C> + Sync,
    give_up_timer: GiveUpTimer,
    poll: Poll,
) -> Result<ThreadResults> {
    run_blocking(context, &Clients::new(program, context), open, give_up_timer, poll)
}

fn run_blocking<C: Library>(
    context: &DriveContext,
    clients: &Clients,
    open: impl Fn(usize) -> Result<C> + Sync,
    mut give_up_timer: GiveUpTimer,
    poll: Poll,
) -> Result<ThreadResults> {
    let give_up = give_up_timer.give_up();
    let make =
        |_, share: Range<usize>| Ok(BlockingLoop::new(open(share.start)?, clients.client(share.start), &give_up));
    threads::run(context, make, &mut || {
        give_up_timer.check(context.control, clock::now());
        poll()
    })
}

/// Runs the transactions that `make` returns for each client, without an engine.
pub fn run_null<X: Transaction>(
    context: &DriveContext,
    service_ns: u64,
    make: impl Fn(usize) -> X + Sync,
    poll: Poll,
) -> Result<ThreadResults> {
    let make = |_, share: Range<usize>| {
        let transport = Null::new(share.len(), service_ns);
        Ok(EventLoop::new(transport, share.map(&make).collect()))
    };
    threads::run(context, make, poll)
}

/// Runs transactions against a server. `make` creates the transactions of a client from its number and its session.
/// `reconnects` is true if clients may request new connections.
pub fn run_server<P: ServerProtocol, X: Transaction>(
    context: &DriveContext,
    settings: &P::Settings,
    io: Io,
    reconnects: bool,
    make: impl Fn(usize, &Connected<P>) -> X + Sync,
    poll: Poll,
) -> Result<ThreadResults> {
    let connector = Connector::<P>::new(settings.clone())?;
    let again = reconnects.then(|| {
        let connector = connector.clone();
        Arc::new(move |stop| connector.connect_until(stop).map(ClientConnection::from)) as Connect
    });
    let make = |_, share: Range<usize>| {
        let connect = || connector.connect_until(context.control.stopped());
        let sessions = parallel_connect::open_all(share.len(), context.client_ranges.len(), connect)?;
        let cpus = &context.plan.client_cpus;
        let again = again.clone().map(|connect| Reconnector::new(connect, share.len(), cpus)).transpose()?;
        let transactions = share.zip(&sessions).map(|(client, session)| make(client, session)).collect();
        open_sockets(io, sessions.into_iter().map(ClientConnection::from).collect(), transactions, again)
    };
    threads::run(context, make, poll)
}

/// The event loop of a server, with its transport. The transport is chosen when the sessions are open. Sessions with
/// TLS need epoll, and a kernel without io_uring also needs epoll.
#[expect(clippy::large_enum_variant, reason = "there is one for a thread")]
enum ServerLoop<X> {
    Uring(EventLoop<Uring, X>),
    Epoll(EventLoop<Epoll, X>),
}

impl<X: Transaction> Worker for ServerLoop<X> {
    fn io(&self) -> &'static str {
        match self {
            Self::Uring(event_loop) => event_loop.io(),
            Self::Epoll(event_loop) => event_loop.io(),
        }
    }

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> UnfinishedWork {
        match self {
            Self::Uring(event_loop) => event_loop.run(start, recorder),
            Self::Epoll(event_loop) => event_loop.run(start, recorder),
        }
    }

    fn waits_for_jobs(&self) -> bool {
        match self {
            Self::Uring(event_loop) => event_loop.waits_for_jobs(),
            Self::Epoll(event_loop) => event_loop.waits_for_jobs(),
        }
    }

    fn end_sessions(self) {
        match self {
            Self::Uring(event_loop) => event_loop.end_sessions(),
            Self::Epoll(event_loop) => event_loop.end_sessions(),
        }
    }
}

fn open_sockets<X: Transaction>(
    io: Io,
    sessions: Vec<ClientConnection>,
    transactions: Vec<X>,
    again: Option<Reconnector>,
) -> Result<ServerLoop<X>> {
    let tls = sessions.iter().any(|session| session.stream.is_tls());
    let (streams, cancels): (Vec<_>, Vec<_>) = sessions.into_iter().map(split_connection).unzip();
    let by_epoll = |streams, transactions, cancels, again| {
        let transport = Epoll::new(streams).map_err(|e| Error::failure("epoll", e.to_string()))?;
        Ok(ServerLoop::Epoll(EventLoop::new(transport, transactions).cancelling(cancels).reconnecting(again)?))
    };
    if io == Io::Epoll || tls {
        return by_epoll(streams, transactions, cancels, again);
    }
    match Uring::prepare(streams.len()) {
        Ok(prepared) => {
            let sockets = streams.into_iter().map(plain_socket).collect();
            let transport = prepared.carry(sockets).map_err(|e| Error::failure("io_uring", e.to_string()))?;
            Ok(ServerLoop::Uring(EventLoop::new(transport, transactions).cancelling(cancels).reconnecting(again)?))
        }
        Err(_) if io == Io::Auto => by_epoll(streams, transactions, cancels, again),
        Err(error) => {
            Err(Error::failure("io_uring", format!("cannot be used here: {error}")).hint("use auto or epoll"))
        }
    }
}

type Socket = (Stream, Vec<u8>);

/// Splits a connection into the socket for the transport and the function that cancels the client's statement.
fn split_connection(ClientConnection { stream, unread, cancel }: ClientConnection) -> (Socket, Option<Cancelling>) {
    ((stream, unread), cancel)
}

fn plain_socket((stream, unread): Socket) -> (OwnedFd, Vec<u8>) {
    match stream {
        Stream::Plain(fd) | Stream::Tls { fd, .. } => (fd, unread),
    }
}
