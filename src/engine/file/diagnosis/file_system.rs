//! On what a directory lies, and whether there is room.

use std::io;
use std::path::Path;

use rustix::fs::StatVfs;

use crate::base::diagnosis::Finding;

const CHECK: &str = "file system";

/// What file systems are to a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "only Linux tells the kind by a number")
)]
enum Kind {
    Local(&'static str),
    /// It is gone after a reboot.
    InMemory(&'static str),
    /// Of a container, which shares it with no other.
    Layer(&'static str),
    /// Other hosts, or a program, have a say.
    Network(&'static str),
    Unknown,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn kind(directory: &Path) -> io::Result<Finding> {
    // The type of this field is another on each architecture.
    let number = i128::from(rustix::fs::statfs(directory)?.f_type) & 0xffff_ffff;
    Ok(judged(kind_of(number)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn kind(_directory: &Path) -> io::Result<Finding> {
    Ok(judged(Kind::Unknown))
}

/// By the numbers of statfs(2).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn kind_of(number: i128) -> Kind {
    match number {
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
        _ => Kind::Unknown,
    }
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
        Kind::Unknown => Finding::unknown(
            CHECK,
            "of a kind that isn't known here",
            "see that it is on a local disk: on a network file system two may hold a lock",
        ),
    }
}

pub(super) fn space(directory: &Path) -> io::Result<Finding> {
    Ok(room(&rustix::fs::statvfs(directory)?))
}

/// A lock takes a file of one block.
fn room(found: &StatVfs) -> Finding {
    const CHECK: &str = "space";
    const LEAST: u64 = 1 << 20;
    const FEWEST: u64 = 100;
    let bytes = found.f_bavail.saturating_mul(found.f_frsize);
    // Some file systems have no number of files.
    let files = Some(found.f_favail).filter(|_| found.f_files > 0);
    let mut text = format!("{} MiB free", bytes >> 20);
    if let Some(files) = files {
        text += &format!(", and room for {files} files");
    }
    if bytes >= LEAST && files.is_none_or(|files| files >= FEWEST) {
        return Finding::fine(CHECK, text);
    }
    Finding::weak(
        CHECK,
        text,
        "a new lock needs a file: without room it fails",
        "make room, or use another disk",
    )
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
            (Kind::Unknown, "unknown"),
        ] {
            assert_eq!(judged(kind).verdict.to_string(), verdict);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_system_of_proc_is_none_of_those() {
        assert_eq!(
            kind(Path::new("/proc")).unwrap().verdict.to_string(),
            "unknown"
        );
        assert_eq!(kind_of(0x6969), Kind::Network("nfs"));
    }

    #[test]
    fn full_disk_is_weak() {
        let mut found = rustix::fs::statvfs("/").unwrap();
        (found.f_frsize, found.f_bavail) = (4096, 1 << 20);
        (found.f_files, found.f_favail) = (1000, 500);
        assert_eq!(room(&found).verdict.to_string(), "fine");
        found.f_favail = 5;
        assert_eq!(room(&found).verdict.to_string(), "weak");
        found.f_files = 0;
        assert_eq!(room(&found).verdict.to_string(), "fine");
        found.f_bavail = 0;
        assert_eq!(room(&found).verdict.to_string(), "weak");
    }
}
