//! Which server of a set a connection is from, where all have the same address: its process has the socket open.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

#[derive(Debug)]
pub(super) struct Peers {
    /// 0 for one that hasn't been started.
    pids: Vec<AtomicU32>,
}

impl Peers {
    pub(super) fn of(servers: usize) -> Self {
        let pids = (0..servers).map(|_| AtomicU32::new(0)).collect();
        Self { pids }
    }

    /// Has connections of this process known as those of the server `index`.
    pub(super) fn started(&self, index: usize, pid: u32) {
        self.pids[index].store(pid, SeqCst);
    }

    pub(super) fn address(index: usize) -> Ipv4Addr {
        let last = u8::try_from(2 + index).expect("so many servers aren't started");
        Ipv4Addr::new(127, 0, 0, last)
    }

    /// Returns the address that stands for the server which has a connection from `peer` open, or that of this host for
    /// everyone else.
    pub(super) fn source(&self, peer: SocketAddr) -> Ipv4Addr {
        let index = inode(peer).and_then(|inode| self.owner(inode));
        index.map_or(Ipv4Addr::LOCALHOST, Self::address)
    }

    fn owner(&self, inode: u64) -> Option<usize> {
        let socket = format!("socket:[{inode}]");
        self.pids
            .iter()
            .position(|pid| has_open(pid.load(SeqCst), Path::new(&socket)))
    }
}

/// Returns the number of the socket that is bound to `addr`, and is no listener.
fn inode(addr: SocketAddr) -> Option<u64> {
    let SocketAddr::V4(addr) = addr else {
        return None;
    };
    let ip = u32::from_ne_bytes(addr.ip().octets());
    let local = format!("{ip:08X}:{:04X}", addr.port());
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let inode = fields.get(9)?.parse().ok()?;
        (fields[1] == local && inode != 0).then_some(inode)
    })
}

fn has_open(pid: u32, socket: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    files.is_ok_and(|files| {
        files
            .flatten()
            .any(|file| fs::read_link(file.path()).is_ok_and(|target| target == socket))
    })
}
