//! Authentication: a simple bind, or SASL with EXTERNAL, PLAIN (RFC 4616) or SCRAM-SHA-256 (RFC 5802, 7677).

use std::num::NonZeroU32;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

use super::ber::{self, Malformed, tag};
use super::connect::{Fault, Ldap};
use super::message::{self, Done, code, done, op};
use crate::wire::LdapConnection;
use crate::wire::{channel::Channel, security::Security};
use crate::{Error, Result};

/// Maximum number of SCRAM iterations. More would take longer than a second, so a server could keep the client busy
/// with them. OWASP's Password Storage Cheat Sheet recommends 600,000.
const MAX_ROUNDS: u32 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mechanism {
    Anonymous,
    Simple,
    External,
    Plain,
    Scram,
}

impl Mechanism {
    pub fn of(connection: &LdapConnection) -> Result<Self> {
        match connection.mechanism.as_str() {
            "simple" if connection.user.is_empty() => Ok(Self::Anonymous),
            "simple" => Ok(Self::Simple),
            "EXTERNAL" => Ok(Self::External),
            "PLAIN" => Ok(Self::Plain),
            SCRAM => Ok(Self::Scram),
            other => Err(Error::input(format!("mechanism {other}"), "unknown bind mechanism")
                .hint("known: simple, EXTERNAL, PLAIN, SCRAM-SHA-256")),
        }
    }

    /// Whether the bind contains the password itself.
    fn sends_password(self) -> bool {
        matches!(self, Self::Simple | Self::Plain)
    }
}

const WAY_OUT: &str = "use tls=verify-full, ldaps:// or mechanism=SCRAM-SHA-256; tls=require accepts any certificate, and \
                       tls=disable sends the password in the clear";

const SCRAM: &str = "SCRAM-SHA-256";

/// The bind request of the connection's own user. This request is sent again after a bind as another user.
#[derive(Debug)]
pub struct OwnBind {
    value: Vec<u8>,
    /// Whether the connection's own user is anonymous. In this case the bind as the own user need not succeed, because
    /// a failed bind also makes the connection anonymous (RFC 4513, 4).
    anonymous: bool,
}

impl OwnBind {
    /// Prepares the bind.
    ///
    /// # Errors
    /// Input: the mechanism takes more than one message.
    pub fn of(connection: &LdapConnection) -> Result<Self> {
        let user = connection.user.as_bytes();
        let password = connection.password.as_deref().unwrap_or_default().as_bytes();
        let mechanism = Mechanism::of(connection)?;
        let value = match mechanism {
            Mechanism::Anonymous => bind_value(b"", |out| ber::octets(out, 0x80, b"")),
            Mechanism::Simple => bind_value(user, |out| ber::octets(out, 0x80, password)),
            Mechanism::External => sasl_value("EXTERNAL", Some(b"")),
            Mechanism::Plain => sasl_value("PLAIN", Some(&plain(user, password))),
            Mechanism::Scram => {
                let cause = "the clients bind as other users and then as their own user again, which must take only one message";
                return Err(Error::input(format!("mechanism {SCRAM}"), cause).hint("use mechanism=simple or PLAIN"));
            }
        };
        Ok(Self { value, anonymous: mechanism == Mechanism::Anonymous })
    }

    /// Appends the request of the bind.
    pub fn request(&self, id: i32, out: &mut Vec<u8>) {
        message::request(out, id, op::BIND, &self.value);
    }

    /// Returns an error unless the connection is bound as its own user again.
    pub fn answered(&self, done: &Done) -> std::result::Result<(), String> {
        if done.code == code::SUCCESS || self.anonymous {
            return Ok(());
        }
        Err(format!("the connection cannot be bound as its own user again: {done}"))
    }
}

fn plain(user: &[u8], password: &[u8]) -> Vec<u8> {
    [b"\0", user, b"\0", password].concat()
}

fn bind_value(dn: &[u8], credentials: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut value = vec![tag::INTEGER, 1, 3];
    ber::octets(&mut value, tag::OCTETS, dn);
    credentials(&mut value);
    value
}

fn sasl_value(mechanism: &str, credentials: Option<&[u8]>) -> Vec<u8> {
    bind_value(b"", |out| {
        ber::nested(out, 0xa3, |out| {
            ber::octets(out, tag::OCTETS, mechanism.as_bytes());
            if let Some(credentials) = credentials {
                ber::octets(out, tag::OCTETS, credentials);
            }
        });
    })
}

pub(super) fn authenticate(
    channel: &mut Channel<Ldap>,
    connection: &LdapConnection,
    mechanism: Mechanism,
    security: Security,
    least: Security,
) -> std::result::Result<(), Fault> {
    let user = connection.user.as_bytes();
    let password = connection.password.as_deref().unwrap_or_default().as_bytes();
    if mechanism.sends_password() {
        security.may_carry_password(least, WAY_OUT)?;
    }
    match mechanism {
        Mechanism::Anonymous => Ok(()),
        Mechanism::Simple => {
            // An empty password would bind anonymously, and look like success (RFC 4513, 5.1.2).
            if password.is_empty() {
                return Err(Error::input(format!("user {}", connection.user), "no password was given")
                    .hint("set it in the DSN or in LDAP_PASSWORD, or remove the user")
                    .into());
            }
            bound(&bind(channel, &bind_value(user, |out| ber::octets(out, 0x80, password)))?)
        }
        Mechanism::External => bound(&sasl(channel, "EXTERNAL", Some(b""))?),
        Mechanism::Plain => bound(&sasl(channel, "PLAIN", Some(&plain(user, password)))?),
        Mechanism::Scram => scram(channel, &connection.user, password),
    }
}

fn bind(channel: &mut Channel<Ldap>, value: &[u8]) -> std::result::Result<Vec<u8>, Fault> {
    let id = channel.next_id();
    message::request(&mut channel.output, id, op::BIND, value);
    channel.ask(op::BOUND)
}

fn sasl(
    channel: &mut Channel<Ldap>,
    mechanism: &str,
    credentials: Option<&[u8]>,
) -> std::result::Result<Vec<u8>, Fault> {
    bind(channel, &sasl_value(mechanism, credentials))
}

fn bound(body: &[u8]) -> std::result::Result<(), Fault> {
    let done = done(body)?;
    if done.code == code::SUCCESS { Ok(()) } else { Err(Fault::Server(Box::new(done))) }
}

fn scram(channel: &mut Channel<Ldap>, user: &str, password: &[u8]) -> std::result::Result<(), Fault> {
    let mut nonce = [0; 18];
    let no_random = |_| Error::failure("SCRAM", "the system provides no random numbers");
    SystemRandom::new().fill(&mut nonce).map_err(no_random)?;
    let nonce = BASE64.encode(nonce);
    let exchange = Scram::new(user, password, &nonce);
    let body = sasl(channel, SCRAM, Some(exchange.first().as_bytes()))?;
    let done = done(&body)?;
    if done.code != code::SASL_BIND_IN_PROGRESS {
        return Err(Fault::Server(Box::new(done)));
    }
    let challenge = message::sasl_credentials(&body)?;
    let (last, signature) = exchange.answer(&challenge)?;
    let mut body = sasl(channel, SCRAM, Some(last.as_bytes()))?;
    let said = message::sasl_credentials(&body)?;
    let proven = format!("v={}", BASE64.encode(signature));
    let code = message::code_of(&body)?;
    if !matches!(code, code::SUCCESS | code::SASL_BIND_IN_PROGRESS) {
        return bound(&body);
    }
    // A server may skip its half of SCRAM. The server has then not proved that it knows the password, and may be an
    // impostor.
    if said.split(|byte| *byte == b',').next() != Some(proven.as_bytes()) {
        return Err(unproven().into());
    }
    if code == code::SASL_BIND_IN_PROGRESS {
        body = sasl(channel, SCRAM, Some(b""))?;
    }
    bound(&body)
}

struct Scram<'a> {
    user: String,
    password: &'a [u8],
    nonce: &'a str,
}

impl<'a> Scram<'a> {
    fn new(user: &str, password: &'a [u8], nonce: &'a str) -> Self {
        Self { user: user.replace('=', "=3D").replace(',', "=2C"), password, nonce }
    }

    fn bare(&self) -> String {
        format!("n={},r={}", self.user, self.nonce)
    }

    /// Returns the client's first message, without channel binding.
    fn first(&self) -> String {
        format!("n,,{}", self.bare())
    }

    /// Returns the client's last message. Also returns the signature with which the server must prove that it knows the
    /// password.
    fn answer(&self, challenge: &[u8]) -> std::result::Result<(String, Vec<u8>), Fault> {
        let challenge = std::str::from_utf8(challenge).map_err(|_| Malformed::Invalid)?;
        let field = |name: &str| challenge.split(',').find_map(|field| field.strip_prefix(name));
        let nonce = field("r=").filter(|nonce| nonce.starts_with(self.nonce)).ok_or(Malformed::Invalid)?;
        let salt = field("s=").and_then(|text| BASE64.decode(text).ok()).ok_or(Malformed::Invalid)?;
        let rounds = field("i=").and_then(|text| text.parse().ok()).filter(|rounds| *rounds <= MAX_ROUNDS);
        let rounds = rounds.and_then(NonZeroU32::new).ok_or(Malformed::Invalid)?;
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, self.password, &mut salted);
        let sign = |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let last = format!("c=biws,r={nonce}");
        let all = format!("{},{challenge},{last}", self.bare());
        let signature = sign(stored_key.as_ref(), all.as_bytes());
        let proof: Vec<u8> = client_key.as_ref().iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        let server_key = sign(&salted, b"Server Key");
        let server = sign(server_key.as_ref(), all.as_bytes()).as_ref().to_vec();
        Ok((format!("{last},p={}", BASE64.encode(proof)), server))
    }
}

fn unproven() -> Error {
    Error::failure("SCRAM authentication", "the server did not prove that it knows the password")
        .hint("this may not be the server that it claims to be")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::wire::pipe::Pipe;

    /// Returns what the client sends when it binds at a server that accepts any bind.
    fn sent_to_bind(mechanism: &str, security: Security, least: Security) -> Vec<u8> {
        let text = format!(
            r#"{{"host": "h", "port": 1, "ldaps": false, "tls": "prefer", "mechanism": "{mechanism}", "user": "cn=u",
                "password": "secret"}}"#
        );
        let connection: LdapConnection = serde_json::from_str(&text).unwrap();
        let (client, mut server) = UnixStream::pair().unwrap();
        server.write_all(&[0x30, 12, 2, 1, 1, op::BOUND, 7, 10, 1, 0, 4, 0, 4, 0]).unwrap();
        let mut channel = Channel::new(Pipe::new(client.into(), None));
        let mechanism = Mechanism::of(&connection).unwrap();
        let entered = authenticate(&mut channel, &connection, mechanism, security, least).is_ok();
        let mut sent = vec![0; 256];
        server.set_nonblocking(true).unwrap();
        let read = server.read(&mut sent).unwrap_or(0);
        sent.truncate(read);
        assert_eq!(entered, !sent.is_empty());
        sent
    }

    #[test]
    fn a_bind_with_the_password_itself_needs_a_channel_that_is_secure_enough() {
        let levels = [Security::Plain, Security::UnverifiedTls, Security::Trusted];
        for mechanism in ["simple", "PLAIN"] {
            for security in levels {
                for least in levels {
                    let sent = sent_to_bind(mechanism, security, least);
                    let has_password = sent.windows(6).any(|bytes| bytes == b"secret");
                    assert_eq!(has_password, security >= least, "{mechanism} {security:?} {least:?}");
                }
            }
        }
    }

    /// The example of RFC 7677, section 3.
    #[test]
    fn scram_gives_the_proof_of_the_standards_example() {
        let exchange = Scram::new("user", b"pencil", "rOprNGfwEbeRWgbNEkqO");
        assert_eq!(exchange.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let Ok((last, server)) = exchange.answer(challenge) else { panic!("refused") };
        assert!(last.ends_with("p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), "{last}");
        assert_eq!(BASE64.encode(server), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_challenge_that_is_not_ours_is_refused() {
        let exchange = Scram::new("user", b"pencil", "ours");
        for challenge in
            ["r=theirs,s=AAAA,i=4096", "r=oursmore,s=AAAA,i=0", "r=oursmore,i=4096", "r=oursmore,s=AAAA,i=1000001"]
        {
            assert!(exchange.answer(challenge.as_bytes()).is_err(), "{challenge}");
        }
    }
}
