//! Locks in ZooKeeper.

use std::sync::Arc;

use super::{Engine, Release, Released, Renewed, Request, Wait, unsupported};
use crate::base::clock::{Clock, Deadline};
use crate::base::error::Result;
use crate::base::options::Options;

mod address;
mod client;

#[derive(Debug)]
pub(crate) enum ZooKeeperEngine {}

impl ZooKeeperEngine {
    pub(crate) fn open(url: &str, _options: &Options, _clock: Arc<dyn Clock>) -> Result<Self> {
        Err(unsupported(url, "locks"))
    }
}

impl Engine for ZooKeeperEngine {
    fn place(&self) -> &str {
        match *self {}
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        match *self {}
    }

    fn renew(&self, _: Request<'_>, _: &Deadline) -> Result<Renewed> {
        match *self {}
    }

    fn release(&self, _: Request<'_>, _: Release<'_>, _: &Deadline) -> Result<Released> {
        match *self {}
    }
}
