//! Authentication: trust, clear-text and md5 passwords, and SCRAM-SHA-256 with channel binding.

use postgres_protocol::authentication::{
    md5_hash,
    sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256},
};

use super::{
    connect::{Fault, Postgres},
    protocol::{
        Malformed,
        backend::{server_error, tag},
        frontend,
    },
};
use crate::Error;
use crate::wire::PostgresConnection;
use crate::wire::{channel::Channel, protocol::ServerProtocol, security::Security, tls::Mode};

const WAY_OUT: &str = "use sslmode=verify-full, or scram-sha-256 for this user; sslmode=require accepts any certificate, and \
                       require_auth=password sends the password over any connection";

/// Codes of the Authentication messages (documentation, 54.7).
mod code {
    pub const OK: i32 = 0;
    pub const CLEARTEXT_PASSWORD: i32 = 3;
    pub const MD5_PASSWORD: i32 = 5;
    pub const SASL: i32 = 10;
    pub const SASL_CONTINUE: i32 = 11;
    pub const SASL_FINAL: i32 = 12;
}

/// Authenticates the client. `end_point` is the digest that binds SCRAM to the TLS connection, if known.
pub(super) fn authenticate(
    channel: &mut Channel<Postgres>,
    connection: &PostgresConnection,
    security: Security,
    end_point: Option<Vec<u8>>,
) -> Result<(), Fault> {
    let policy = Policy::of(connection);
    let least = if policy.accepts_by_name("password") {
        Security::Plain
    } else {
        Security::least(Mode::of(&Postgres::target(connection).tls)?)
    };
    let mut scram: Option<ScramSha256> = None;
    let (mut proven, mut method, mut bound) = (true, "none", false);
    let mut asked = false;
    loop {
        let message = channel.next()?;
        match message.tag {
            tag::AUTHENTICATION => {}
            tag::ERROR_RESPONSE => return Err(Fault::Server(Box::new(server_error(message.body)))),
            tag::NOTICE_RESPONSE | tag::NEGOTIATE_PROTOCOL_VERSION => continue,
            _ => return Err(Fault::Malformed(Malformed::Invalid)),
        }
        let (number, data) = message.body.split_first_chunk::<4>().ok_or(Malformed::Invalid)?;
        let data = data.to_vec();
        let number = i32::from_be_bytes(*number);
        if matches!(number, code::CLEARTEXT_PASSWORD | code::MD5_PASSWORD | code::SASL)
            && std::mem::replace(&mut asked, true)
        {
            // An honest server asks only once. A second request may come from an attacker who cannot use the proof, and
            // now wants another proof or the password.
            return Err(Fault::Malformed(Malformed::Invalid));
        }
        match number {
            // A server may skip its half of SCRAM. The server has then not proved that it knows the password, and may
            // be an impostor.
            code::OK if !proven => return Err(unproven().into()),
            code::OK => return policy.judge(method, bound),
            code::CLEARTEXT_PASSWORD => {
                method = "password";
                policy.judge(method, false)?;
                security.may_carry_password(least, WAY_OUT)?;
                frontend::password(&mut channel.output, password(connection)?);
            }
            code::MD5_PASSWORD => {
                method = "md5";
                policy.judge(method, false)?;
                let salt: [u8; 4] = data.as_slice().try_into().map_err(|_| Malformed::Invalid)?;
                let hash = md5_hash(connection.user.as_bytes(), password(connection)?, salt);
                frontend::password(&mut channel.output, hash.as_bytes());
            }
            code::SASL => {
                let digest = end_point.clone().filter(|_| connection.channel_binding != "disable");
                let (mechanism, binding) = choose(&data, channel.tls.is_some(), digest)?;
                (method, bound) = ("scram-sha-256", mechanism == SCRAM_SHA_256_PLUS);
                policy.judge(method, bound)?;
                let exchange = scram.insert(ScramSha256::new(password(connection)?, binding));
                frontend::sasl_initial_response(&mut channel.output, mechanism, exchange.message());
                proven = false;
            }
            code::SASL_CONTINUE => {
                let exchange = scram.as_mut().ok_or(Malformed::Invalid)?;
                exchange.update(&data).map_err(|error| refused(&error))?;
                frontend::sasl_response(&mut channel.output, exchange.message());
            }
            code::SASL_FINAL => {
                scram.as_mut().ok_or(Malformed::Invalid)?.finish(&data).map_err(|error| refused(&error))?;
                proven = true;
                continue;
            }
            other => return Err(unsupported(&format!("authentication method {other}")).into()),
        }
        channel.flush()?;
    }
}

/// Authentication methods that the user accepts: `require_auth` and `channel_binding` (libpq, 32.1.2).
struct Policy<'a> {
    methods: Vec<&'a str>,
    binding_required: bool,
}

impl<'a> Policy<'a> {
    fn of(connection: &'a PostgresConnection) -> Self {
        let methods = connection.require_auth.split(',').filter(|word| !word.is_empty()).collect();
        Self { methods, binding_required: connection.channel_binding == "require" }
    }

    /// Whether `require_auth` lists the method as accepted.
    fn accepts_by_name(&self, method: &str) -> bool {
        self.methods.contains(&method)
    }

    /// Rejects a server that uses an authentication method that the user does not accept. Must be called before
    /// anything that depends on the password is sent. `method` is libpq's name of the method. `bound` is true if SCRAM
    /// is bound to the TLS connection.
    fn judge(&self, method: &str, bound: bool) -> Result<(), Fault> {
        let listed = self.methods.iter().any(|word| word.trim_start_matches('!') == method);
        let excluding = self.methods.iter().any(|word| word.starts_with('!'));
        if !self.methods.is_empty() && listed == excluding {
            let cause = format!("the server requires {method}, which require_auth excludes");
            return Err(Error::input("authentication", cause)
                .hint("this may not be the server that it claims to be")
                .into());
        }
        if self.binding_required && !bound {
            let cause = format!("the server requires {method} without channel binding, but channel_binding=require");
            return Err(Error::input("authentication", cause)
                .hint("use scram-sha-256 over TLS for this user; otherwise this may not be the server that it claims to be")
                .into());
        }
        Ok(())
    }
}

/// Chooses the SCRAM variant. The client also states whether it uses channel binding. If it does not, it states whether
/// the server does not offer it or the client does not support it.
fn choose(offered: &[u8], over_tls: bool, end_point: Option<Vec<u8>>) -> Result<(&'static str, ChannelBinding), Fault> {
    let has = |name: &str| offered.split(|&byte| byte == 0).any(|mechanism| mechanism == name.as_bytes());
    match (has(SCRAM_SHA_256_PLUS), end_point) {
        (true, Some(digest)) if over_tls => Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(digest))),
        // The client supports channel binding, but the server has not offered it. The client's message says so. The
        // server compares this with its actual offer.
        (false, Some(_)) if over_tls && has(SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
        _ if has(SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
        _ => Err(unsupported("a SASL mechanism").into()),
    }
}

fn password(connection: &PostgresConnection) -> Result<&[u8], Error> {
    match connection.password.as_deref() {
        Some(password) if !password.is_empty() => Ok(password.as_bytes()),
        _ => Err(Error::input(
            format!("user {}", connection.user),
            format!("the server at {}:{} requires a password, but none was given", connection.host, connection.port),
        )
        .hint("set it in the DSN, in PGPASSWORD or in ~/.pgpass")),
    }
}

fn refused(error: &std::io::Error) -> Error {
    Error::failure("SCRAM authentication", format!("the server's answer is not valid: {error}"))
        .hint("correct the password; if it is correct, this may not be the server that it claims to be")
}

fn unproven() -> Error {
    Error::failure("SCRAM authentication", "the server did not prove that it knows the password")
        .hint("this may not be the server that it claims to be")
}

fn unsupported(what: &str) -> Error {
    Error::input("authentication", format!("the server requires {what} that ironbench does not support"))
        .hint("allow scram-sha-256, md5, password or trust for this user in the server's pg_hba.conf")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::wire::pipe::Pipe;

    fn connection(more: &str) -> PostgresConnection {
        let text = format!(r#"{{"host": "h", "port": 1, "user": "u", "database": "d", "password": "secret" {more}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    /// Returns what the client sends to a server that asks for the password itself. The server accepts any password.
    fn asked_for_password(connection: &PostgresConnection, security: Security) -> Vec<u8> {
        let (client, mut server) = UnixStream::pair().unwrap();
        for number in [code::CLEARTEXT_PASSWORD, code::OK] {
            server.write_all(b"R\0\0\0\x08").unwrap();
            server.write_all(&number.to_be_bytes()).unwrap();
        }
        let mut channel = Channel::new(Pipe::new(client.into(), None));
        let entered = authenticate(&mut channel, connection, security, None).is_ok();
        drop(channel);
        let mut sent = Vec::new();
        server.read_to_end(&mut sent).unwrap();
        assert_eq!(entered, !sent.is_empty());
        sent
    }

    #[test]
    fn a_server_that_asks_twice_is_left() {
        let (client, mut server) = UnixStream::pair().unwrap();
        let request = [&b"R\0\0\0\x0c"[..], &code::MD5_PASSWORD.to_be_bytes(), b"salt"].concat();
        server.write_all(&[&request[..], &request].concat()).unwrap();
        let mut channel = Channel::new(Pipe::new(client.into(), None));
        assert!(authenticate(&mut channel, &connection(""), Security::Trusted, None).is_err());
        drop(channel);
        let mut sent = Vec::new();
        server.read_to_end(&mut sent).unwrap();
        assert_eq!(sent.len(), 1 + 4 + "md5".len() + 32 + 1);
    }

    #[test]
    fn the_password_itself_goes_over_a_trusted_channel_unless_the_user_accepts_another() {
        use Security::{Plain, Trusted, UnverifiedTls};
        let cases = [
            ("", vec![Trusted]),
            (r#", "sslmode": "allow""#, vec![Trusted]),
            (r#", "sslmode": "require""#, vec![UnverifiedTls, Trusted]),
            (r#", "require_auth": "!md5""#, vec![Trusted]),
            (r#", "require_auth": "scram-sha-256""#, vec![]),
            (r#", "require_auth": "password,scram-sha-256""#, vec![Plain, UnverifiedTls, Trusted]),
        ];
        for (more, accepted) in cases {
            for security in [Plain, UnverifiedTls, Trusted] {
                let expected = if accepted.contains(&security) { &b"p\0\0\0\x0bsecret\0"[..] } else { b"" };
                assert_eq!(asked_for_password(&connection(more), security), expected, "{more} {security:?}");
            }
        }
    }

    #[test]
    fn only_methods_that_the_user_accepts_are_answered() {
        let allowed = |require_auth: &str, binding: &str, method: &str, bound: bool| {
            let text = format!(
                r#"{{"host": "h", "port": 1, "user": "u", "database": "d", "require_auth": "{require_auth}",
                    "channel_binding": "{binding}"}}"#
            );
            let connection: PostgresConnection = serde_json::from_str(&text).unwrap();
            Policy::of(&connection).judge(method, bound).is_ok()
        };
        for method in ["none", "password", "md5", "scram-sha-256"] {
            assert!(allowed("", "prefer", method, false));
            assert!(!allowed("", "require", method, false));
            assert_eq!(
                allowed("scram-sha-256,md5", "prefer", method, false),
                matches!(method, "md5" | "scram-sha-256")
            );
            assert_eq!(allowed("!password,!none", "prefer", method, false), matches!(method, "md5" | "scram-sha-256"));
        }
        assert!(allowed("scram-sha-256", "require", "scram-sha-256", true));
    }

    #[test]
    fn scram_is_bound_to_tls_where_both_sides_can() {
        let both = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        let plain = b"SCRAM-SHA-256\0\0";
        let first = |offered: &[u8], over_tls, digest: Option<&[u8]>| {
            let (mechanism, binding) = choose(offered, over_tls, digest.map(<[u8]>::to_vec)).unwrap();
            let message = ScramSha256::new(b"secret", binding).message().to_vec();
            (mechanism, String::from_utf8(message).unwrap().split(",,").next().unwrap().to_owned())
        };
        let digest = Some(&b"digest"[..]);
        assert_eq!(first(both, true, digest), (SCRAM_SHA_256_PLUS, "p=tls-server-end-point".to_owned()));
        assert_eq!(first(both, true, None), (SCRAM_SHA_256, "n".to_owned()));
        assert_eq!(first(plain, true, digest), (SCRAM_SHA_256, "y".to_owned()));
        assert_eq!(first(plain, false, None), (SCRAM_SHA_256, "n".to_owned()));
        assert!(choose(b"SCRAM-SHA-512\0\0", false, None).is_err());
    }
}
