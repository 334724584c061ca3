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
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
    assert_eq!(mode(&closed), 0o555);
    set_mode(dir.path(), 0o755);
}

#[test]
fn file_where_the_directory_should_be_is_an_invalid_url_and_left_as_it_is() {
    let dir = temp_dir();
    let file = dir.path().join("file");
    fs::write(&file, "precious").unwrap();
    for place in [file.clone(), file.join("below")] {
        match Locker::open(&file_url(&place)) {
            Err(error @ Error::InvalidUrl { .. }) => {
                let text = error.to_string();
                assert!(text.contains(place.to_str().unwrap()), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

#[test]
fn directory_of_a_user_is_private() {
    let Some(stranger) = Stranger::new() else {
        return;
    };
    // It is that which is meant where the environment doesn't name another.
    for url in [&[(URL, "file:")][..], &[]] {
        assert_says(&stranger.opens(url), "Ok", "");
        assert_eq!(mode(&stranger.directory) & 0o777, 0o700);
        assert_eq!(fs::read_dir(&stranger.directory).unwrap().count(), 1);
    }
}

#[test]
fn directory_of_a_user_that_others_may_enter_is_denied() {
    let Some(stranger) = Stranger::new() else {
        return;
    };
    let directory = stranger.directory.to_str().unwrap();
    stranger.opens(&[(URL, "file:")]);
    let before = fs::read_dir(directory).unwrap().count();
    for open in [0o755, 0o710, 0o702, 0o1777] {
        set_mode(directory, open);
        let said = stranger.opens(&[(URL, "file:")]);
        assert_says(&said, "Denied", directory);
        assert_eq!(mode(directory), open, "it was changed");
        assert_eq!(fs::read_dir(directory).unwrap().count(), before);
    }
}

#[test]
fn directory_of_another_user_is_denied() {
    let Some(stranger) = Stranger::new() else {
        return;
    };
    let directory = stranger.directory.to_str().unwrap();
    // Ours, where the stranger's should be; even open to all it isn't the stranger's.
    for mode in [0o700, 0o777] {
        let _ = fs::create_dir(directory);
        set_mode(directory, mode);
        let said = stranger.opens(&[(URL, "file:")]);
        assert_says(&said, "Denied", directory);
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
    }
}

#[test]
fn link_in_place_of_a_users_directory_is_refused() {
    let Some(stranger) = Stranger::new() else {
        return;
    };
    let elsewhere = temp_dir();
    symlink(elsewhere.path(), &stranger.directory).unwrap();
    chown(&elsewhere, Some(stranger.uid), None).unwrap();
    let said = stranger.opens(&[(URL, "file:")]);
    assert_ne!(said, ["Ok"]);
    assert!(
        said[0].contains(stranger.directory.to_str().unwrap()),
        "{said:?}"
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn environment_can_name_a_directory() {
    let dir = temp_dir();
    let url = file_url(&dir);
    let said = run_as(None, "opens", &[("CROSSLOCK_URL", &url)]);
    assert_says(&said, "Ok", "");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

#[test]
fn directory_for_all_is_shared_by_users() {
    let dir = temp_dir();
    set_mode(&dir, 0o777);
    // Each makes the file once, and the other uses it.
    for first_is_a_stranger in [false, true] {
        let place = dir.path().join(first_is_a_stranger.to_string());
        fs::create_dir(&place).unwrap();
        set_mode(&place, 0o777);
        let url = file_url(&place);
        let Some(stranger) = Stranger::new() else {
            return;
        };
        let strangers = || run_as(Some(stranger.uid), "opens", &[(URL, &url)]);
        let ours = || Locker::open(&url).unwrap().lock("a").unwrap().unlock();
        if first_is_a_stranger {
            assert_says(&strangers(), "Ok", "");
            ours().unwrap();
        } else {
            ours().unwrap();
            assert_says(&strangers(), "Ok", "");
        }
    }
}
