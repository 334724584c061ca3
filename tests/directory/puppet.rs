//! Processes that do to locks of a directory what they are told, with the rights and the descriptors that they are
//! told. Leases that they give away last for an hour.

use std::path::Path;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
pub(crate) use support::puppet::Puppet;

use super::url;

pub(crate) fn puppet(directory: &Path) -> Puppet {
    puppet_as(None, directory)
}

pub(crate) fn puppet_as(uid: Option<u32>, directory: &Path) -> Puppet {
    Puppet::start_as(uid, &url(directory))
}

/// Leaves it no new descriptors.
pub(crate) fn exhaust(puppet: &Puppet) {
    limit(puppet, Resource::Nofile, Some(4));
}

/// Gives them back.
pub(crate) fn recover(puppet: &Puppet) {
    limit(
        puppet,
        Resource::Nofile,
        getrlimit(Resource::Nofile).current,
    );
}

/// How long a file may be that it writes.
pub(crate) fn limit_file_size(puppet: &Puppet, current: Option<u64>) {
    limit(puppet, Resource::Fsize, current);
}

fn limit(puppet: &Puppet, what: Resource, current: Option<u64>) {
    let limit = getrlimit(what);
    let pid = Pid::from_raw(puppet.pid().cast_signed());
    prlimit(pid, what, Rlimit { current, ..limit }).unwrap();
}
