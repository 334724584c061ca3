//! Directories that aren't there, aren't ours, or may not be used.
//!
//! Tests with a [`Stranger`] need a user whose directory in /tmp is nobody's; without the right to become one there is
//! nothing that they may try.

#![cfg(feature = "file")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use crosslock::{Error, Locker};

use super::users::{Stranger, assert_says, run_as};
use super::*;

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn count(directory: impl AsRef<Path>) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn directory_without_rights_is_denied_and_left_as_it_is() {
    let dir = temp_dir();
    // Nobody may write here, but the super-user, as whom tests are sometimes run.
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    for path in [dir.path(), &closed] {
        set_mode(path, 0o555);
    }
    let stranger = Stranger::new().map(|stranger| stranger.uid);
    for place in [closed.clone(), closed.join("new"), closed.join("new/er")] {
        let said = run_as(stranger, "opens", &[(URL, &file_url(&place))]);
        assert_says(&said, "Denied", place.to_str().unwrap());
    }
    assert_eq!((count(&closed), mode(&closed)), (0, 0o555));
    set_mode(dir.path(), 0o755);
}

#[test]
fn file_where_the_directory_should_be_is_an_invalid_url_and_left_as_it_is() {
    let dir = temp_dir();
    let file = dir.path().join("file");
    fs::write(&file, "precious").unwrap();
    for place in [file.clone(), file.join("below")] {
        let error = Locker::open(&file_url(&place)).unwrap_err();
        assert!(matches!(error, Error::InvalidUrl { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(place.to_str().unwrap()), "{text}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(count(&dir), 1);
}

#[test]
fn directory_of_a_user_is_private_and_one_that_others_may_enter_is_denied() {
    let Some(stranger) = Stranger::new() else {
        return;
    };
    let directory = stranger.directory.to_str().unwrap();
    // It is that which is meant where the environment doesn't name another.
    for url in [&[(URL, "file:")][..], &[]] {
        assert_says(&stranger.opens(url), "Ok", "");
        assert_eq!((mode(directory) & 0o777, count(directory)), (0o700, 1));
    }
    for open in [0o755, 0o710, 0o702, 0o1777] {
        set_mode(directory, open);
        let said = stranger.opens(&[(URL, "file:")]);
        assert_says(&said, "Denied", directory);
        assert_eq!((mode(directory), count(directory)), (open, 1));
    }
}

/// Even open to all it isn't the user's, nor is what a link leads to.
#[test]
fn directory_of_another_user_is_denied_and_a_link_to_one() {
    let Some(stranger) = Stranger::new() else {
        return;
    };
    let directory = stranger.directory.to_str().unwrap();
    for mode in [0o700, 0o777] {
        let _ = fs::create_dir(directory);
        set_mode(directory, mode);
        let said = stranger.opens(&[(URL, "file:")]);
        assert_says(&said, "Denied", directory);
        assert_eq!(count(directory), 0);
    }
    fs::remove_dir(directory).unwrap();
    let elsewhere = temp_dir();
    symlink(elsewhere.path(), directory).unwrap();
    chown(&elsewhere, Some(stranger.uid), None).unwrap();
    let said = stranger.opens(&[(URL, "file:")]);
    assert_ne!(said, ["Ok"]);
    assert!(said[0].contains(directory), "{said:?}");
    assert_eq!(count(&elsewhere), 0);
}
