//! What stands for encryption in a build without it: types of which there are no values.

use std::io;
use std::path::{Path, PathBuf};

use super::socket::Socket;
use crate::base::error::{Error, Result};

#[derive(Debug)]
pub(in crate::engine) enum Trust {}

/// The files with our own certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct OwnCertificate {
    pub(in crate::engine) chain: PathBuf,
    pub(in crate::engine) key: PathBuf,
}

#[derive(Debug)]
pub(in crate::engine) enum TlsConfig {}

#[derive(Debug)]
pub(in crate::engine) enum Session {}

#[cfg(feature = "zookeeper")]
#[derive(Clone, Debug)]
pub(super) enum SharedSession {}

impl Trust {
    pub(in crate::engine) fn new(
        _ca: Option<&Path>,
        _own: Option<&OwnCertificate>,
        shown: &str,
    ) -> Result<Self> {
        let what = format!("{shown} (this build has no TLS): enable crosslock's feature `tls`");
        Err(Error::Unsupported { what })
    }

    pub(in crate::engine) fn after_fork(&self) -> Self {
        match *self {}
    }

    pub(in crate::engine) fn in_server(&self, _host: &str) -> io::Result<TlsConfig> {
        match *self {}
    }
}

impl TlsConfig {
    pub(super) fn after_fork(&self, _trust: &Trust) -> Self {
        match *self {}
    }

    pub(super) fn shake_hands(&self, _socket: &mut Socket) -> io::Result<Session> {
        match *self {}
    }
}

#[cfg(feature = "zookeeper")]
impl SharedSession {
    pub(super) fn encrypt(&self, _plain: &[u8]) -> io::Result<Vec<u8>> {
        match *self {}
    }

    pub(super) fn decrypt(&self, _encrypted: &[u8], _plain: &mut Vec<u8>) -> io::Result<()> {
        match *self {}
    }
}

impl Session {
    #[cfg(feature = "zookeeper")]
    pub(super) fn shared(self) -> SharedSession {
        match self {}
    }

    pub(super) fn over<'a>(&'a mut self, _socket: &'a mut Socket) -> &'a mut Socket {
        match *self {}
    }
}
