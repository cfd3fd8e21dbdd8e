//! TLS as libpq's `sslmode` defines it. The mode `require` encrypts without authenticating the server. `verify-ca`
//! requires a certificate from a trusted authority. `verify-full` also requires that the certificate contains the right
//! host name. Source: PostgreSQL 18 documentation, 32.19.

use std::{path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{
        CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
    },
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime, pem::PemObject};

use crate::{Error, Result};

/// TLS settings of a connection.
#[derive(Debug, Clone, Copy)]
pub struct TlsSettings<'a> {
    pub mode: &'a str,
    /// The name that must be in the server's certificate.
    pub host: &'a str,
    /// PEM file of trusted roots. If None, the roots of the system are used.
    pub roots: Option<&'a str>,
    /// PEM files of the client's certificate and key.
    pub identity: Option<(&'a str, &'a str)>,
    /// Whether the host name is sent (server name indication).
    pub sni: bool,
    pub names: SettingNames,
}

/// Names of the settings, as users write them.
#[derive(Debug, Clone, Copy)]
pub struct SettingNames {
    pub mode: &'static str,
    pub roots: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Disable,
    /// Uses TLS only if the server refuses a plain connection.
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    /// Parses the mode. As in libpq, `require` with a root certificate means `verify-ca`.
    pub fn of(settings: &TlsSettings) -> Result<Self> {
        match (settings.mode, settings.roots) {
            ("disable", _) => Ok(Self::Disable),
            ("allow", _) => Ok(Self::Allow),
            ("prefer", _) => Ok(Self::Prefer),
            ("require", None) => Ok(Self::Require),
            ("require", Some(_)) | ("verify-ca", _) => Ok(Self::VerifyCa),
            ("verify-full", _) => Ok(Self::VerifyFull),
            (other, _) => Err(Error::input(format!("{} {other}", settings.names.mode), "unknown TLS mode")
                .hint("known: disable, allow, prefer, require, verify-ca, verify-full")),
        }
    }

    pub fn verifies(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyFull)
    }
}

/// Creates the TLS configuration for all sockets of a connection. The configuration is created only once, because
/// reading the system's roots takes milliseconds.
pub(super) fn client_config(settings: &TlsSettings, mode: Mode, protocol: Option<&[u8]>) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let roots = if mode.verifies() { roots(settings)? } else { Vec::new() };
    let verifier = Verifier::new(mode, roots, &provider, settings.names)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::failure("TLS", error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match settings.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates("sslcert", certificate)?;
            let subject = || format!("sslkey {key}");
            let private = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                Error::input(subject(), format!("cannot be read: {error}")).hint("use an unencrypted key in PEM format")
            })?;
            builder
                .with_client_auth_cert(chain, private)
                .map_err(|error| Error::input(subject(), format!("cannot be used with {certificate}: {error}")))?
        }
    };
    config.enable_sni = settings.sni;
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    // Session tickets are not used. PostgreSQL issues none, and every connection should cost as much as the first one.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

pub(super) fn client(config: &Arc<ClientConfig>, host: &str) -> Result<ClientConnection> {
    let unusable = |cause: String| Error::input(format!("host {host}"), cause);
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| unusable("the name cannot appear in a certificate, so TLS cannot be used with it".to_owned()))?;
    ClientConnection::new(config.clone(), name).map_err(|error| unusable(format!("TLS cannot be set up: {error}")))
}

/// Returns the trusted roots from a file. Returns the roots of the system if no file is given or the file is libpq's
/// value `system`.
fn roots(settings: &TlsSettings) -> Result<Vec<CertificateDer<'static>>> {
    let word = settings.names.roots;
    let Some(file) = settings.roots.filter(|&file| file != "system") else {
        let found = rustls_native_certs::load_native_certs().certs;
        return if found.is_empty() {
            Err(Error::input("trusted certificates", "this machine has none")
                .hint(format!("set {word} to a file, or install the system's package of CA certificates")))
        } else {
            Ok(found)
        };
    };
    certificates(word, file)
}

/// Reads the certificates of a PEM file. `word` is the name of the setting, as users write it.
fn certificates(word: &str, file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let subject = || format!("{word} {file}");
    let found: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(Path::new(file)).and_then(Iterator::collect);
    match found {
        Err(error) => Err(Error::input(subject(), format!("cannot be read: {error}"))),
        Ok(found) if found.is_empty() => Err(Error::input(subject(), "contains no certificate in PEM format")),
        Ok(found) => Ok(found),
    }
}

/// A version 1 certificate, which webpki cannot read. `openssl x509 -req` without extensions creates such certificates,
/// as in PostgreSQL's documentation (18.9.5). Only the key of the certificate is used, for the handshake's signature.
/// Nothing else is verified.
#[derive(Debug, thiserror::Error)]
#[error("it is of version 1")]
pub(super) struct Version1;

/// Whether TLS failed because of the server's certificate.
pub(super) fn is_about_certificate(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(_))
}

fn of_version_1() -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(Version1))).into()
}

/// Returns the public key of a version 1 certificate, as SubjectPublicKeyInfo.
/// TBSCertificate ::= SEQUENCE { serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo }.
/// In other versions the version number comes first (RFC 5280, 4.1).
fn version_1_key(certificate: &[u8]) -> Option<SubjectPublicKeyInfoDer<'_>> {
    const INTEGER: u8 = 0x02;
    let (certificate, _) = der_value(certificate, SEQUENCE)?;
    let (to_be_signed, _) = der_value(certificate, SEQUENCE)?;
    let (_, mut rest) = der_value(to_be_signed, INTEGER)?;
    for _ in ["signature", "issuer", "validity", "subject"] {
        (_, rest) = der_value(rest, SEQUENCE)?;
    }
    let (_, behind) = der_value(rest, SEQUENCE)?;
    Some(SubjectPublicKeyInfoDer::from(&rest[..rest.len() - behind.len()]))
}

#[derive(Debug)]
struct Verifier {
    mode: Mode,
    /// Verifier of the certificate chain, or None if the chain is not verified.
    chain: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(
        mode: Mode,
        roots: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
        names: SettingNames,
    ) -> Result<Self> {
        let chain = if mode.verifies() {
            let mut store = RootCertStore::empty();
            let (usable, _) = store.add_parsable_certificates(roots.iter().cloned());
            if usable == 0 {
                return Err(Error::input(names.roots, "contains no usable CA certificate"));
            }
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
            Some(builder.build().map_err(|error| Error::failure("TLS", error.to_string()))?)
        } else {
            None
        };
        Ok(Self { mode, chain, roots, provider: provider.clone() })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let trusted = Ok(ServerCertVerified::assertion());
        let Some(chain) = &self.chain else {
            return trusted;
        };
        if version_1_key(end_entity).is_some() {
            return Err(of_version_1());
        }
        // webpki checks the name last. An error that is not about the name is therefore about the chain.
        let error = match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Ok(_) => return trusted,
            Err(error) => error,
        };
        match error {
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) if self.mode == Mode::VerifyCa => trusted,
            // The certificate is self-signed, and the file of roots contains this certificate itself, as PostgreSQL's
            // documentation proposes (18.9.5). libpq accepts such a certificate. webpki rejects it, because it is the
            // certificate of an authority.
            rustls::Error::InvalidCertificate(CertificateError::Other(_))
                if self.roots.iter().any(|root| root.as_ref() == end_entity.as_ref()) =>
            {
                if self.mode == Mode::VerifyFull {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                trusted
            }
            error => Err(error),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        if version_1_key(certificate).is_some() {
            return Err(of_version_1());
        }
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let supported = &self.provider.signature_verification_algorithms;
        match version_1_key(certificate) {
            Some(key) => verify_tls13_signature_with_raw_key(message, &key, signature, supported),
            None => verify_tls13_signature(message, certificate, signature, supported),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns `tls-server-end-point` (RFC 5929), which binds SCRAM to the TLS connection. The value is a digest of the
/// server's certificate, computed with the hash function of the certificate's signature. SHA-256 replaces older hash
/// functions. Returns None for SHA-512 and unknown signatures. SCRAM then works without channel binding.
pub(super) fn server_end_point(tls: &ClientConnection) -> Option<Vec<u8>> {
    let certificate = tls.peer_certificates()?.first()?;
    let suite = match signature_hash(certificate)? {
        Hash::Sha256 => ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
        Hash::Sha384 => ring::cipher_suite::TLS13_AES_256_GCM_SHA384,
    };
    Some(suite.tls13()?.common.hash_provider.hash(certificate).as_ref().to_vec())
}

#[derive(Debug, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
}

/// Parses Certificate ::= SEQUENCE { tbsCertificate SEQUENCE,
/// signatureAlgorithm SEQUENCE { OID, … }, signature } (RFC 5280).
fn signature_hash(certificate: &[u8]) -> Option<Hash> {
    const OBJECT_IDENTIFIER: u8 = 0x06;
    /// Object identifier of RSA, 1.2.840.113549.1.1. A last number identifies the hash.
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    /// Object identifier of ECDSA with SHA-2, 1.2.840.10045.4.3.
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let (certificate, _) = der_value(certificate, SEQUENCE)?;
    let (_, rest) = der_value(certificate, SEQUENCE)?;
    let (algorithm, _) = der_value(rest, SEQUENCE)?;
    let (identifier, _) = der_value(algorithm, OBJECT_IDENTIFIER)?;
    let (last, family) = identifier.split_last()?;
    match (family, last) {
        // SHA-256 replaces MD5 and SHA-1 (RFC 5929, 4.1).
        (RSA, 4 | 5 | 11) | (ECDSA, 2) => Some(Hash::Sha256),
        (RSA, 12) | (ECDSA, 3) => Some(Hash::Sha384),
        _ => None,
    }
}

const SEQUENCE: u8 = 0x30;

/// Returns the value of a DER element with `tag`, and the bytes that follow the element.
fn der_value(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, short], rest) = input.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    if short < 0x80 {
        return rest.split_at_checked(short as usize);
    }
    let (digits, rest) = rest.split_at_checked((short & 0x7f) as usize)?;
    if digits.len() > 4 {
        return None;
    }
    rest.split_at_checked(digits.iter().fold(0, |length, &digit| length << 8 | digit as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tls");

    fn certificate(name: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(format!("{DIRECTORY}/{name}.crt")).unwrap()
    }

    #[test]
    fn the_hash_of_a_certificate_is_that_of_its_signature() {
        for name in ["root", "server", "self_signed"] {
            assert_eq!(signature_hash(&certificate(name)), Some(Hash::Sha256), "{name}");
        }
        let whole = certificate("server");
        for end in 0..whole.len() - 1 {
            // A truncated certificate has no hash and must not cause a panic.
            assert_eq!(signature_hash(&whole[..end]), None);
        }
    }

    #[test]
    fn a_certificate_of_version_1_gives_its_key_and_others_are_not_taken_for_one() {
        let whole = certificate("version_1");
        let key = version_1_key(&whole).unwrap();
        // The bytes are a point on P-256: a header and 65 bytes.
        assert_eq!((key.len(), key[0], key[26]), (91, SEQUENCE, 4));
        for name in ["root", "server", "self_signed"] {
            assert!(version_1_key(&certificate(name)).is_none(), "{name}");
        }
        for end in 0..whole.len() - 1 {
            assert!(version_1_key(&whole[..end]).is_none());
        }
    }

    #[test]
    fn require_with_a_root_is_verify_ca() {
        let names = SettingNames { mode: "sslmode", roots: "sslrootcert" };
        let settings = TlsSettings { mode: "require", host: "h", roots: Some("f"), identity: None, sni: true, names };
        assert_eq!(Mode::of(&settings).unwrap(), Mode::VerifyCa);
        assert_eq!(Mode::of(&TlsSettings { roots: None, ..settings }).unwrap(), Mode::Require);
    }
}
