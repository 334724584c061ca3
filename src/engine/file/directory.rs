//! Which directory a URL names.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::base::error::Result;
use crate::engine::url::invalid_url;
use crate::engine::url::parts::{Parts, decoded_bytes};

/// A fixed place, whatever the environment says: a cron job and a shell of one user have to meet.
pub(super) fn private_directory() -> PathBuf {
    format!("/tmp/crosslock-{}", rustix::process::geteuid()).into()
}

pub(super) fn directory_of(url: &str) -> Result<PathBuf> {
    understand(url).map_err(|reason| invalid_url(url, &reason))
}

fn understand(url: &str) -> Result<PathBuf, String> {
    let parts = Parts::of(url)?;
    if !parts.path.starts_with('/') && parts.authority.is_none() {
        return Err("a directory is named by its whole path: file:///dir".into());
    }
    if !parts.authority.is_none_or(is_this_host) {
        return Err("locks live on this host: use file:///dir, with three slashes".into());
    }
    if parts.query.is_some() {
        return Err("a directory's ? is written %3F".into());
    }
    let directory = PathBuf::from(OsString::from_vec(decoded_bytes(parts.path)?));
    if directory.file_name().is_none() {
        return Err("it names no directory: use file:///dir, or file: for a private one".into());
    }
    Ok(directory)
}

/// RFC 8089 has both.
fn is_this_host(authority: &str) -> bool {
    authority.is_empty() || authority.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use std::path::Path;

    #[test]
    fn directory_is_the_path_of_the_url() {
        for (url, directory) in [
            ("file:///a/b", "/a/b"),
            ("file:/a/b/", "/a/b/"),
            ("FILE://LocalHost/a", "/a"),
            ("file:////a", "//a"),
            ("file:///a%20b%3F/ü", "/a b?/ü"),
        ] {
            assert_eq!(directory_of(url).unwrap(), Path::new(directory), "{url}");
        }
        let raw = directory_of("file:///%ff").unwrap();
        assert_eq!(raw.into_os_string().into_vec(), b"/\xff");
    }

    #[test]
    fn url_that_names_no_directory_is_told_what_would() {
        for (url, advice) in [
            ("file:a", "file:///dir"),
            ("file://host/a", "three slashes"),
            ("file://a", "three slashes"),
            ("file:///", "file: for a private one"),
            ("file://", "file: for a private one"),
            ("file:///..", "file: for a private one"),
            ("file:///a?b", "%3F"),
            ("file:///a#b", "%23"),
            ("file:///a%b", "%25"),
            ("file:///a\nb", "%xx"),
            ("file:///a ", "space"),
        ] {
            match directory_of(url) {
                Err(Error::InvalidUrl { reason, .. }) => {
                    assert!(reason.contains(advice), "{url}: {reason}");
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}
