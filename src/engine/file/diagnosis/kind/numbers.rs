//! The kinds of file systems that Linux tells by a number, and what they are to a lock.

use std::io;

use super::CHECK;
use crate::base::diagnosis::Finding;
use crate::engine::file::dir::Dir;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Local(&'static str),
    /// It is gone after a reboot.
    InMemory(&'static str),
    /// Of a container, which shares it with no other.
    Layer(&'static str),
    /// Other hosts, or a program, have a say.
    Network(&'static str),
}

/// What there is to say; `None` of a kind that isn't known here.
pub(super) fn finding(directory: &Dir) -> io::Result<Option<Finding>> {
    // The type of this field is another on each architecture.
    let number = i128::from(rustix::fs::fstatfs(directory)?.f_type) & 0xffff_ffff;
    Ok(kind_of(number).map(judged))
}

/// By the numbers of statfs(2).
fn kind_of(number: i128) -> Option<Kind> {
    Some(match number {
        0xef53 => Kind::Local("ext4"),
        0x5846_5342 => Kind::Local("xfs"),
        0x9123_683e => Kind::Local("btrfs"),
        0x2fc1_2fc1 => Kind::Local("zfs"),
        0xf2f5_2010 => Kind::Local("f2fs"),
        0xca45_1a4e => Kind::Local("bcachefs"),
        0x0102_1994 => Kind::InMemory("tmpfs"),
        0x8584_58f6 => Kind::InMemory("ramfs"),
        0x794c_7630 => Kind::Layer("overlayfs"),
        0x6969 => Kind::Network("nfs"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Kind::Network("smb"),
        0x6573_5546 => Kind::Network("fuse"),
        0x0102_1997 => Kind::Network("9p"),
        0x00c3_6400 => Kind::Network("ceph"),
        0x5346_414f | 0x6b41_4653 => Kind::Network("afs"),
        0x7375_7245 => Kind::Network("coda"),
        0x0bd0_0bd0 => Kind::Network("lustre"),
        0x0116_1970 => Kind::Network("gfs2"),
        0x7461_636f => Kind::Network("ocfs2"),
        0x786f_4256 => Kind::Network("vboxsf"),
        _ => return None,
    })
}

fn judged(kind: Kind) -> Finding {
    match kind {
        Kind::Local(name) => Finding::fine(CHECK, format!("{name}, on this host")),
        Kind::InMemory(name) => Finding::fine(
            CHECK,
            format!("{name}: a reboot forgets the counters, and fencing tokens go on by the clock"),
        ),
        Kind::Layer(name) => Finding::fine(
            CHECK,
            format!("{name}: the layer of a container, which shares it with no other"),
        ),
        Kind::Network(name) => Finding::weak(
            CHECK,
            format!("{name}, where other hosts or another program have a say"),
            "two may hold a lock",
            "a directory on a local disk; or redis:// for several hosts",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_weak() {
        for (kind, verdict) in [
            (Kind::Local("ext4"), "fine"),
            (Kind::InMemory("tmpfs"), "fine"),
            (Kind::Layer("overlayfs"), "fine"),
            (Kind::Network("nfs"), "weak"),
        ] {
            assert_eq!(judged(kind).verdict.to_string(), verdict);
        }
        assert_eq!(kind_of(0x6969), Some(Kind::Network("nfs")));
        assert_eq!(kind_of(0x9fa0), None);
    }
}
