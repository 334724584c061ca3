//! Encryption, with rustls and its ring provider.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::{fs, sync::Arc};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore,
    client::Resumption,
};

use super::socket::Socket;
use crate::base::{Error, Result, sys::sync::Mutex};

/// Whom to trust.
#[derive(Debug)]
pub(crate) struct Trust {
    config: Arc<ClientConfig>,
    /// The scheme of URLs without TLS, for errors.
    plain: Arc<str>,
}

/// The files with our own certificate and its key, by which a server knows us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnCertificate {
    /// It, and those that lead to one that the server trusts.
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

/// Whom to trust, and the name that the server has to prove.
#[derive(Debug)]
pub(crate) struct TlsConfig {
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
    plain: Arc<str>,
}

/// An encrypted session, without the socket that it runs over.
#[derive(Debug)]
pub(crate) struct Session(Box<ClientConnection>);

/// The same for two threads, of which one reads and one writes.
#[derive(Clone, Debug)]
pub(super) struct SharedSession(Arc<Mutex<Box<ClientConnection>>>);

const CERTIFICATE: &str = "the certificates of this system, or the file of `ca`";

impl Trust {
    /// Trusts the certificates in the file `ca`, or the system's, and shows our `own` to a server that asks for it.
    /// In errors the server is `shown`.
    pub(crate) fn new(
        ca: Option<&Path>,
        own: Option<&OwnCertificate>,
        shown: &str,
    ) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidUrl {
            url: shown.to_owned(),
            reason,
        };
        let roots = match ca {
            Some(file) => roots_in(file)
                .map_err(|e| invalid(format!("ca={}: {e}: give a PEM file", file.display())))?,
            None => roots_of_system().map_err(|e| Error::engine(None, shown, CERTIFICATE, e))?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::engine(None, shown, CERTIFICATE, e))?
            .with_root_certificates(roots);
        let config = match own {
            Some(own) => {
                let (chain, key) = own.read().map_err(invalid)?;
                let named = |e| invalid(format!("cert={}: {e}", own.chain.display()));
                config.with_client_auth_cert(chain, key).map_err(named)?
            }
            None => config.with_no_client_auth(),
        };
        Ok(Trust {
            config: Arc::new(config),
            plain: plain_scheme(shown).into(),
        })
    }

    /// The same for a child that was forked off: another thread of its parent may have locked the cache of sessions.
    pub(crate) fn after_fork(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::default();
        Trust {
            config: Arc::new(config),
            plain: self.plain.clone(),
        }
    }

    /// For the server of that name or address.
    pub(crate) fn in_server(&self, host: &str) -> io::Result<TlsConfig> {
        let server = ServerName::try_from(host.to_owned()).map_err(|e| {
            let text = format!("{host} can't be the name in a certificate: {e}");
            io::Error::new(ErrorKind::InvalidData, text)
        })?;
        Ok(TlsConfig {
            config: self.config.clone(),
            server,
            plain: self.plain.clone(),
        })
    }
}

impl OwnCertificate {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain = certificates_in(&self.chain)
            .map_err(|e| format!("cert={}: {e}: give a PEM file", self.chain.display()))?;
        let key = fs::read(&self.key).and_then(|pem| {
            PrivateKeyDer::from_pem_slice(&pem).map_err(|_| io::Error::other("it contains no key"))
        });
        let key = key.map_err(|e| format!("key={}: {e}: give a PEM file", self.key.display()))?;
        Ok((chain, key))
    }
}

impl TlsConfig {
    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self, trust: &Trust) -> Self {
        TlsConfig {
            config: trust.config.clone(),
            server: self.server.clone(),
            plain: self.plain.clone(),
        }
    }

    /// Shakes hands, by the deadline that the socket has.
    pub(super) fn shake_hands(&self, socket: &mut Socket) -> io::Result<Session> {
        let client = ClientConnection::new(self.config.clone(), self.server.clone());
        let mut client = Box::new(client.map_err(io::Error::other)?);
        let done = shake_hands(&mut client, socket);
        done.map_err(|error| explained(error, &self.plain))?;
        Ok(Session(client))
    }
}

impl Session {
    /// Its plain text, which goes over `socket` encrypted.
    pub(super) fn over<'a>(&'a mut self, socket: &'a mut Socket) -> impl Read + Write {
        rustls::Stream::new(&mut *self.0, socket)
    }

    pub(super) fn shared(mut self) -> SharedSession {
        // What is written is taken out at once.
        self.0.set_buffer_limit(None);
        SharedSession(Arc::new(Mutex::new(self.0)))
    }
}

impl SharedSession {
    /// What is to be sent for that, in the order of the calls.
    pub(super) fn encrypt(&self, plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut client = self.0.lock();
        client.writer().write_all(plain)?;
        let mut encrypted = Vec::with_capacity(plain.len() + plain.len() / 64 + 256);
        while client.wants_write() {
            client.write_tls(&mut encrypted)?;
        }
        Ok(encrypted)
    }

    /// Takes what has come, and adds its plain text to `plain`.
    pub(super) fn decrypt(&self, mut encrypted: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        let mut client = self.0.lock();
        loop {
            let state = client.process_new_packets();
            let state = state.map_err(|e| match &e {
                rustls::Error::AlertReceived(alert) if wants_certificate(*alert) => {
                    io::Error::new(ErrorKind::InvalidData, format!("{e}: {OWN_CERTIFICATE}"))
                }
                _ => io::Error::new(ErrorKind::InvalidData, e),
            })?;
            let before = plain.len();
            plain.resize(before + state.plaintext_bytes_to_read(), 0);
            client.reader().read_exact(&mut plain[before..])?;
            if encrypted.is_empty() || state.peer_has_closed() {
                return Ok(());
            }
            client.read_tls(&mut encrypted)?;
        }
    }
}

fn shake_hands(client: &mut ClientConnection, socket: &mut (impl Read + Write)) -> io::Result<()> {
    while client.is_handshaking() {
        client.complete_io(socket).map_err(|e| match e.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => why_ended(e, client, socket),
            _ => e,
        })?;
    }
    Ok(())
}

/// A server that refuses a certificate says so and hangs up, maybe while the rest is still written: it is to be read.
fn why_ended(error: io::Error, client: &mut ClientConnection, socket: &mut impl Read) -> io::Error {
    while matches!(client.read_tls(socket), Ok(1..)) {
        if let Err(told) = client.process_new_packets() {
            return io::Error::new(ErrorKind::InvalidData, told);
        }
    }
    error
}

/// The scheme of the same URL without TLS: `redis+sentinel` for `rediss+sentinel://...`.
fn plain_scheme(url: &str) -> String {
    let scheme = url.split(':').next().unwrap_or_default();
    let (server, kind) = scheme.split_at(scheme.find('+').unwrap_or(scheme.len()));
    format!("{}{kind}", server.strip_suffix('s').unwrap_or(server))
}

fn explained(error: io::Error, plain: &str) -> io::Error {
    let no_tls = format!("if the port has no TLS, use {plain}://");
    let hint = match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(why)) => what_is_wrong(why),
        Some(rustls::Error::AlertReceived(alert)) if wants_certificate(*alert) => OWN_CERTIFICATE,
        Some(_) => &no_tls,
        // A server without TLS waits for the end of the line, or hangs up.
        None if error.kind() == ErrorKind::TimedOut => &no_tls,
        None if error.kind() == ErrorKind::UnexpectedEof => &no_tls,
        None if error.kind() == ErrorKind::ConnectionReset => &no_tls,
        None => return error,
    };
    io::Error::new(error.kind(), format!("{error}: {hint}"))
}

/// What helps where a server doesn't take our certificate, or wants one.
const OWN_CERTIFICATE: &str =
    "the server requires a client certificate that it trusts: use ?cert=FILE&key=FILE";

fn wants_certificate(alert: AlertDescription) -> bool {
    use AlertDescription as Is;
    matches!(
        alert,
        Is::NoCertificate
            | Is::BadCertificate
            | Is::UnsupportedCertificate
            | Is::CertificateRevoked
            | Is::CertificateExpired
            | Is::CertificateUnknown
            | Is::CertificateRequired
            | Is::UnknownCA
    )
}

fn what_is_wrong(why: &CertificateError) -> &'static str {
    use CertificateError as Is;
    match why {
        Is::NotValidForName | Is::NotValidForNameContext { .. } => {
            "it is for another name: use a host name in the certificate"
        }
        Is::Expired | Is::ExpiredContext { .. } => "it has expired: renew it",
        Is::NotValidYet | Is::NotValidYetContext { .. } => "it isn't valid yet: check the clocks",
        Is::UnknownIssuer | Is::BadSignature => {
            "it is self-signed, or its authority isn't trusted: pass the certificate or the authority with ?ca=FILE"
        }
        // The verifier has no other name for it.
        Is::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is self-signed as an authority, which a server can't use: give the server one with CA:FALSE"
        }
        _ => "give the server another certificate",
    }
}

fn roots_in(file: &Path) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_in(file)? {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    Ok(roots)
}

/// One at least.
fn certificates_in(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let pem = fs::read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found.map_err(io::Error::other)? {
        none if none.is_empty() => Err(io::Error::other("it contains no certificate")),
        found => Ok(found),
    }
}

fn roots_of_system() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(io::Error::other(
            "the system has no certificates: pass your own with ?ca=FILE",
        ));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests;
