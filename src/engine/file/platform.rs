//! What systems answer in their own way about files. It uses no other module.

use std::os::fd::AsFd;
use std::{fs, io, path::Path};

use rustix::fs::{AtFlags, OFlags, statat};
#[cfg(not(target_vendor = "apple"))]
use rustix::fs::{Mode, mkfifoat};

/// What is in a directory can be used, and not what it says is in it: that needs other rights.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) const TO_FIND: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) const TO_FIND: OFlags = OFlags::RDONLY;

/// The device and the number of a file.
///
/// Since Linux 6.13 a file whose times were asked for has its next write note a time of its own, which takes longer
/// than the write: here nobody asks for them.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn id_at(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<(u64, u64)> {
    use rustix::fs::{StatxFlags, makedev, statx};
    use rustix::io::Errno;
    match statx(&dir, path, flags, StatxFlags::INO) {
        // Containers may forbid the call.
        Err(Errno::NOSYS | Errno::PERM) => id_by_stat(dir, path, flags),
        found => {
            let found = found?;
            let device = makedev(found.stx_dev_major, found.stx_dev_minor);
            Ok((device, found.stx_ino))
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn id_at(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<(u64, u64)> {
    id_by_stat(dir, path, flags)
}

#[allow(clippy::cast_sign_loss, reason = "it is the same number each time")]
fn id_by_stat(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<(u64, u64)> {
    let found = statat(dir, path, flags)?;
    // Their types are others on each system.
    Ok((found.st_dev as u64, found.st_ino as u64))
}

/// The number by which statfs(2) tells the kind of a file system.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn file_system(directory: impl AsFd) -> io::Result<Option<i128>> {
    // The type of this field is another on each architecture.
    let number = i128::from(rustix::fs::fstatfs(directory)?.f_type) & 0xffff_ffff;
    Ok(Some(number))
}

/// Other systems tell it by no number.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn file_system(_directory: impl AsFd) -> io::Result<Option<i128>> {
    Ok(None)
}

/// Makes a FIFO, which isn't open yet. `path` is the path of `dir`.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn make_fifo(dir: impl AsFd, _path: &Path, name: &str) -> io::Result<()> {
    Ok(mkfifoat(dir, name, Mode::RUSR | Mode::WUSR)?)
}

/// Makes a FIFO, which isn't open yet. `path` may lead to another directory by now: then what is made isn't found in
/// `dir`.
#[cfg(target_vendor = "apple")]
pub(super) fn make_fifo(_dir: impl AsFd, path: &Path, name: &str) -> io::Result<()> {
    use nix::sys::stat::Mode;
    let path = path.join(name);
    Ok(nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?)
}

/// A text that is another after each boot of the host. It is empty where no file tells it: on macOS.
pub(super) fn boot_id() -> Vec<u8> {
    fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
