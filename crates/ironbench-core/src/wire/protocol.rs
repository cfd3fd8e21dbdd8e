//! What differs between the protocols of servers, as traits and types. [`Connector`] opens the sessions of every
//! protocol.

use std::fmt::{Debug, Display};

use super::{
    address::Address,
    channel::Channel,
    connection::RelayAddress,
    connector::{Attempt, Connected, Connector},
    fault::Fault,
    security::Security,
    tls::TlsSettings,
};
use crate::{Kind, Result};

/// Names of a protocol and its servers in messages.
pub struct ProtocolNames {
    /// The kind of server. In messages, it precedes the address.
    pub server: &'static str,
    /// The programs that use the protocol.
    pub products: &'static str,
    /// How users write the server's address.
    pub place: &'static str,
    /// Hint for a server without the TLS that the user requires.
    pub no_tls: &'static str,
}

/// Address of a server, and settings of connections to it.
pub struct Target<'a> {
    pub address: Address,
    pub tls: TlsSettings<'a>,
    pub relay: Option<&'a RelayAddress>,
    /// Time limit in seconds for connecting, TLS and authentication together, per address.
    pub timeout_s: f64,
}

/// A server's answer to a request for TLS.
pub enum TlsAnswer {
    Accepted,
    /// The server does not support TLS. The text is a colon and the server's reason. The text is empty if the server
    /// gave no reason.
    Refused(String),
}

/// The codes of an error that a server sent. A code is empty or 0 if the protocol has no such code.
pub struct ErrorCodes<'a> {
    pub sqlstate: &'a str,
    pub number: u16,
}

/// The protocol of one kind of server. The methods are listed in the order in which a connection calls them.
pub trait ServerProtocol: Debug + Clone + Send + Sync + 'static {
    const NAMES: ProtocolNames;
    /// Protocol name in the TLS handshake (ALPN).
    const ALPN: Option<&'static [u8]> = None;

    type Settings: Debug + Clone + Send + Sync;
    type Message<'a>;
    /// Number of the last message. `()` in protocols that do not number messages.
    type Counter: Debug + Copy + Default + Send;
    /// A reason why received bytes are not a message.
    type Malformed: std::error::Error + Send + Sync + 'static;
    type ServerError: Debug + Display;
    /// The server's first message. `()` if the client sends first.
    type Greeting;
    /// State of a session on the client's side.
    type State: Debug + Send;
    /// The data that identify a session in a request to cancel its statement.
    type CancelKey: Clone + Send + Sync;

    /// Checks what can be checked without a network.
    fn check(settings: &Self::Settings) -> Result<()>;

    fn target(settings: &Self::Settings) -> Target<'_>;

    /// Connects at one address. Protocols override this method to make a second attempt, for example without TLS.
    fn connect(connector: &Connector<Self>, attempt: &Attempt) -> std::result::Result<Connected<Self>, Fault<Self>> {
        connector.start(attempt, connector.tls())
    }

    /// Waits until the server answers a new connection. A TCP connection is not enough, because the kernel also accepts
    /// it for a hung server.
    fn wait_for_answer(connector: &Connector<Self>, attempt: &Attempt) -> std::result::Result<(), Fault<Self>> {
        Self::connect(connector, attempt).map(drop)
    }

    /// Returns the next complete message and advances `input` past it. Returns None if `input` contains no complete
    /// message.
    fn next_message<'a>(
        counter: &mut Self::Counter,
        input: &mut &'a [u8],
    ) -> std::result::Result<Option<Self::Message<'a>>, Fault<Self>>;

    fn greeting(
        connector: &Connector<Self>,
        channel: &mut Channel<Self>,
    ) -> std::result::Result<Self::Greeting, Fault<Self>>;

    /// Requests TLS. If the server accepts, TLS starts with the next byte.
    fn request_tls(
        connector: &Connector<Self>,
        channel: &mut Channel<Self>,
        greeting: &Self::Greeting,
    ) -> std::result::Result<TlsAnswer, Fault<Self>>;

    /// Authenticates the client and prepares the session. `security` decides whether the password may be sent.
    fn log_in(
        connector: &Connector<Self>,
        channel: &mut Channel<Self>,
        greeting: Self::Greeting,
        security: Security,
    ) -> std::result::Result<Self::State, Fault<Self>>;

    /// Returns the key for cancelling the session's statement. Returns None if the protocol has no such request.
    fn cancel_key(state: &Self::State) -> Option<Self::CancelKey>;

    /// Cancels the statement of the session with `key` over a new connection.
    fn cancel(
        connector: &Connector<Self>,
        attempt: &Attempt,
        key: &Self::CancelKey,
    ) -> std::result::Result<(), Fault<Self>>;

    fn codes(error: &Self::ServerError) -> ErrorCodes<'_>;

    /// Returns the kind of error and a hint for a connection that the server refused.
    fn admission(error: &Self::ServerError) -> (Kind, &str);

    /// Returns the user for the message about a refused connection, such as `, user NAME`.
    fn user(settings: &Self::Settings) -> String;
}
