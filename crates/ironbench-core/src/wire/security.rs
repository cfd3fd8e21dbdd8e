//! Decides which secret may be sent over which channel, for all protocols.
//!
//! A proof of the password by challenge-response may be sent over any channel. Such methods are SCRAM, MD5,
//! `mysql_native_password`, `caching_sha2_password` and Ed25519.
//!
//! Other methods send the password itself: PostgreSQL's `password`, the full authentication of `caching_sha2_password`,
//! and LDAP's simple bind and PLAIN. The password may be sent only over a trusted channel. Trusted channels are TLS
//! with a verified certificate, a Unix socket, and loopback, where only local programs can listen.
//!
//! The user may accept less. With `require`, any certificate is sufficient. Protocols that support plain TCP have a
//! setting that accepts plain TCP.

use super::{address::Endpoint, tls::Mode};
use crate::{Error, Result};

/// How well a channel protects a secret, in increasing order of protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Security {
    /// Plain TCP.
    Plain,
    /// The channel is encrypted with an unverified certificate, so the peer may be an attacker.
    UnverifiedTls,
    /// The channel is verified TLS, a Unix socket or loopback.
    Trusted,
}

impl Security {
    /// Returns the security of a connection to `endpoint`. If `tls`, the connection is encrypted and its certificate
    /// was checked according to `mode`.
    pub(super) fn of(endpoint: &Endpoint, tls: bool, mode: Mode) -> Self {
        if endpoint.is_local() || (tls && mode.verifies()) {
            Self::Trusted
        } else if tls {
            Self::UnverifiedTls
        } else {
            Self::Plain
        }
    }

    /// Returns the minimum security for sending the password itself. With `require`, the user accepts any certificate.
    pub fn least(mode: Mode) -> Self {
        if mode == Mode::Require { Self::UnverifiedTls } else { Self::Trusted }
    }

    /// Refuses to send the password itself over an insecure channel. `way_out` names the settings that make the channel
    /// secure, or that allow it although it is insecure.
    ///
    /// # Errors
    /// Input: the channel is less secure than `least`.
    pub fn may_carry_password(self, least: Self, way_out: &str) -> Result<()> {
        if self >= least {
            return Ok(());
        }
        let channel = match self {
            Self::Plain => "an unencrypted connection",
            Self::UnverifiedTls | Self::Trusted => "TLS with an unverified certificate",
        };
        let cause = format!("the password itself would be sent over {channel}");
        Err(Error::input("authentication", cause).hint(way_out))
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::SocketAddrUnix;

    use super::*;

    fn tcp(address: &str) -> Endpoint {
        Endpoint::Tcp(address.parse().unwrap())
    }

    #[test]
    fn unix_sockets_loopback_and_verified_tls_are_trusted() {
        let unix = Endpoint::Unix(SocketAddrUnix::new("/run/s").unwrap());
        for local in [unix, tcp("127.0.0.1:1"), tcp("127.1.2.3:1"), tcp("[::1]:1"), tcp("[::ffff:127.0.0.1]:1")] {
            assert_eq!(Security::of(&local, false, Mode::Disable), Security::Trusted);
        }
        for remote in [tcp("192.0.2.1:1"), tcp("[2001:db8::1]:1"), tcp("0.0.0.0:1")] {
            for mode in [Mode::VerifyCa, Mode::VerifyFull] {
                assert_eq!(Security::of(&remote, true, mode), Security::Trusted);
                assert_eq!(Security::of(&remote, false, mode), Security::Plain);
            }
            for mode in [Mode::Allow, Mode::Prefer, Mode::Require] {
                assert_eq!(Security::of(&remote, true, mode), Security::UnverifiedTls);
                assert_eq!(Security::of(&remote, false, mode), Security::Plain);
            }
        }
    }

    #[test]
    fn only_require_accepts_a_certificate_that_is_not_verified() {
        for mode in [Mode::Disable, Mode::Allow, Mode::Prefer, Mode::VerifyCa, Mode::VerifyFull] {
            assert!(Security::UnverifiedTls.may_carry_password(Security::least(mode), "").is_err());
        }
        assert!(Security::UnverifiedTls.may_carry_password(Security::least(Mode::Require), "").is_ok());
        assert!(Security::Plain.may_carry_password(Security::least(Mode::Require), "").is_err());
    }
}
