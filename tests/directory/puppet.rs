//! A process that does to locks of a directory what it is told, as a user and with the descriptors that it is told.
//! Leases that it gives away last for an hour.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::url;

pub(crate) struct Puppet {
    puppet: support::puppet::Puppet,
    pub(crate) directory: PathBuf,
}

impl Puppet {
    pub(crate) fn start(directory: &Path) -> Self {
        Puppet::start_as(None, directory)
    }

    pub(crate) fn start_as(uid: Option<u32>, directory: &Path) -> Self {
        Puppet {
            puppet: support::puppet::Puppet::start_as(uid, &url(directory)),
            directory: directory.to_owned(),
        }
    }

    /// By a program that executes its arguments in its own place.
    pub(crate) fn start_under(program: &[&str], directory: &Path) -> Self {
        Puppet {
            puppet: support::puppet::Puppet::start_under(program, &url(directory)),
            directory: directory.to_owned(),
        }
    }

    /// Leaves it no new descriptors.
    pub(crate) fn exhaust(&self) {
        self.limit_descriptors(Some(4));
    }

    /// Gives them back.
    pub(crate) fn recover(&self) {
        self.limit_descriptors(getrlimit(Resource::Nofile).current);
    }

    fn limit_descriptors(&self, current: Option<u64>) {
        self.limit(Resource::Nofile, current);
    }

    /// How long a file may be that it writes.
    pub(crate) fn limit_file_size(&self, current: Option<u64>) {
        self.limit(Resource::Fsize, current);
    }

    fn limit(&self, what: Resource, current: Option<u64>) {
        let limit = getrlimit(what);
        let pid = Pid::from_raw(self.pid().cast_signed());
        prlimit(pid, what, Rlimit { current, ..limit }).unwrap();
    }
}

impl Deref for Puppet {
    type Target = support::puppet::Puppet;

    fn deref(&self) -> &Self::Target {
        &self.puppet
    }
}

impl DerefMut for Puppet {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.puppet
    }
}
