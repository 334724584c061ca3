//! On which kind of file system a directory lies: whether other hosts have a say there.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod numbers;

use std::io;

use crate::base::diagnosis::Finding;
use crate::engine::file::dir::Dir;

const CHECK: &str = "file system";

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn kind(directory: &Dir) -> io::Result<Finding> {
    Ok(numbers::finding(directory)?.unwrap_or_else(unknown))
}

/// Other systems tell it by no number.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn kind(_directory: &Dir) -> io::Result<Finding> {
    Ok(unknown())
}

fn unknown() -> Finding {
    Finding::unknown(
        CHECK,
        "of a kind that isn't known here",
        "see that it is on a local disk: on a network file system two may hold a lock",
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_system_of_proc_is_not_known() {
        assert_eq!(
            kind(&Dir::at("/proc".as_ref()).unwrap())
                .unwrap()
                .verdict
                .to_string(),
            "unknown"
        );
    }
}
