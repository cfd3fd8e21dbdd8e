//! The steps of an LDAP connection: TLS and bind.

use std::{convert::Infallible, path::PathBuf};

use super::{
    auth::{self, Mechanism},
    ber::{self, Malformed},
    message::{self, Done, Message, code, done, op},
};
use crate::wire::{
    LdapConnection,
    address::Address,
    channel::Channel,
    connector::{self, Attempt},
    fault,
    protocol::{ErrorCodes, ProtocolNames, ServerProtocol, Target, TlsAnswer},
    security::Security,
    tls::{SettingNames, TlsSettings},
};
use crate::{Kind, Result};

/// LDAP version 3. The counter of a channel is the message ID of the last request.
#[derive(Debug, Clone, Copy)]
pub struct Ldap;

pub(super) type Fault = fault::Fault<Ldap>;
type Connector = connector::Connector<Ldap>;

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl ServerProtocol for Ldap {
    const NAMES: ProtocolNames = ProtocolNames {
        server: "directory server",
        products: "a directory server",
        place: "host and port, or the path of its socket",
        no_tls: "install a certificate on the server, or use tls=disable",
    };

    type Settings = LdapConnection;
    type Message<'a> = Message<'a>;
    type Counter = i32;
    type Malformed = Malformed;
    type ServerError = Done;
    type Greeting = ();
    type State = ();
    type CancelKey = Infallible;

    fn check(settings: &LdapConnection) -> Result<()> {
        Mechanism::of(settings).map(drop)
    }

    fn target(settings: &LdapConnection) -> Target<'_> {
        let LdapConnection { socket, host, port, .. } = settings;
        let address = match socket {
            Some(path) => Address::Unix(PathBuf::from(path)),
            None => Address::Tcp { host: host.clone(), port: *port },
        };
        let names = SettingNames { mode: "tls", roots: "tls_ca" };
        let roots = settings.tls_ca.as_deref();
        let tls = TlsSettings { mode: &settings.tls, host, roots, identity: None, sni: true, names };
        Target { address, tls, relay: settings.relay.as_ref(), timeout_s: settings.connect_timeout_s }
    }

    fn wait_for_answer(connector: &Connector, attempt: &Attempt) -> std::result::Result<(), Fault> {
        if connector.settings.ldaps {
            return Self::connect(connector, attempt).map(drop);
        }
        connector.reach(attempt)?.ask_for_tls().map(drop)
    }

    /// Returns the next message. Returns an error for a notice of disconnection.
    fn next_message<'a>(_: &mut i32, input: &mut &'a [u8]) -> std::result::Result<Option<Message<'a>>, Fault> {
        match message::next(input)? {
            Some(message) if message.id == 0 => Err(Fault::Server(Box::new(done(message.body)?))),
            found => Ok(found),
        }
    }

    fn greeting(_: &Connector, _: &mut Channel<Self>) -> std::result::Result<(), Fault> {
        Ok(())
    }

    fn request_tls(
        connector: &Connector,
        channel: &mut Channel<Self>,
        (): &(),
    ) -> std::result::Result<TlsAnswer, Fault> {
        if connector.settings.ldaps {
            return Ok(TlsAnswer::Accepted);
        }
        let done = channel.ask_for_tls()?;
        if done.code == code::SUCCESS { Ok(TlsAnswer::Accepted) } else { Ok(TlsAnswer::Refused(format!(": {done}"))) }
    }

    fn log_in(
        connector: &Connector,
        channel: &mut Channel<Self>,
        (): (),
        security: Security,
    ) -> std::result::Result<(), Fault> {
        let settings = &connector.settings;
        let least = if settings.password_in_clear { Security::Plain } else { Security::least(connector.mode) };
        auth::authenticate(channel, settings, Mechanism::of(settings)?, security, least)
    }

    fn cancel_key((): &()) -> Option<Infallible> {
        None
    }

    fn cancel(_: &Connector, _: &Attempt, key: &Infallible) -> std::result::Result<(), Fault> {
        match *key {}
    }

    fn codes(error: &Done) -> ErrorCodes<'_> {
        ErrorCodes { sqlstate: "", number: u16::try_from(error.code).unwrap_or(0) }
    }

    fn admission(error: &Done) -> (Kind, &str) {
        match error.code {
            code::INVALID_CREDENTIALS => (Kind::Input, "correct DN and password in the DSN"),
            code::CONFIDENTIALITY_REQUIRED | 8 => (Kind::Input, "use TLS (tls=require, or ldaps://)"),
            7 => (Kind::Input, "choose another mechanism: simple, EXTERNAL, PLAIN or SCRAM-SHA-256"),
            48 | 53 => (Kind::Input, "bind as an entry that has a password, or allow anonymous clients on the server"),
            34 => (Kind::Input, "write the user as a DN, such as cn=admin,dc=example,dc=com"),
            code::BUSY | 52 => (Kind::Failure, "wait and try again, or use fewer clients"),
            _ => (Kind::Failure, ""),
        }
    }

    fn user(settings: &LdapConnection) -> String {
        match settings.user.as_str() {
            "" => String::new(),
            user => format!(", user {user}"),
        }
    }
}

impl Channel<Ldap> {
    /// Returns a message ID for the next request.
    pub(super) fn next_id(&mut self) -> i32 {
        self.counter = self.counter.checked_add(1).unwrap_or(1);
        self.counter
    }

    /// Sends the output and waits for its answer, a single message with the tag `answer`.
    pub(super) fn ask(&mut self, answer: u8) -> std::result::Result<Vec<u8>, Fault> {
        self.flush()?;
        let id = self.counter;
        let message = self.next()?;
        if message.id != id || message.tag != answer {
            return Err(Malformed::Invalid.into());
        }
        Ok(message.body.to_vec())
    }

    /// Requests StartTLS (RFC 4511, 4.14). Returns the server's answer.
    fn ask_for_tls(&mut self) -> std::result::Result<Done, Fault> {
        let id = self.next_id();
        let mut value = Vec::new();
        ber::octets(&mut value, 0x80, b"1.3.6.1.4.1.1466.20037");
        message::request(&mut self.output, id, op::EXTENDED, &value);
        let body = self.ask(op::EXTENDED_ANSWER)?;
        // Bytes that arrived before TLS started may be forged, so they must not be read as an answer under TLS.
        if !self.unread().is_empty() {
            return Err(Malformed::Invalid.into());
        }
        Ok(done(&body)?)
    }
}
