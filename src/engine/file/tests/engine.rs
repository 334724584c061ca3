//! URLs of directories.

use super::*;

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
