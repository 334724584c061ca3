//! What stands for encryption in a build without it: types of which there are no values.

use std::io;
use std::path::{Path, PathBuf};

use super::socket::Socket;
use crate::base::{Error, Result};

#[derive(Debug)]
pub(crate) enum Trust {}

/// The files with our own certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnCertificate {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

#[derive(Debug)]
pub(crate) enum TlsConfig {}

#[derive(Debug)]
pub(crate) enum Session {}

#[derive(Clone, Debug)]
pub(super) enum SharedSession {}

impl Trust {
    pub(crate) fn new(
        _ca: Option<&Path>,
        _own: Option<&OwnCertificate>,
        shown: &str,
    ) -> Result<Self> {
        let what =
            format!("{shown} in this build, which has no TLS: enable crosslock's feature `tls`");
        Err(Error::Unsupported { what })
    }

    pub(crate) fn after_fork(&self) -> Self {
        match *self {}
    }

    pub(crate) fn in_server(&self, _host: &str) -> io::Result<TlsConfig> {
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

impl SharedSession {
    pub(super) fn encrypt(&self, _plain: &[u8]) -> io::Result<Vec<u8>> {
        match *self {}
    }

    pub(super) fn decrypt(&self, _encrypted: &[u8], _plain: &mut Vec<u8>) -> io::Result<()> {
        match *self {}
    }
}

impl Session {
    pub(super) fn shared(self) -> SharedSession {
        match self {}
    }

    pub(super) fn over<'a>(&'a mut self, _socket: &'a mut Socket) -> &'a mut Socket {
        match *self {}
    }
}
