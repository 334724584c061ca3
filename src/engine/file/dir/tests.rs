use super::*;

#[test]
fn file_is_the_same_whichever_call_tells() {
    let dir = tempfile::tempdir().unwrap();
    let [path, other, link] = ["a", "b", "c"].map(|name| dir.path().join(name));
    fs::write(&path, "").unwrap();
    fs::write(&other, "").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let identity = Identity::of(&fs::metadata(&path).unwrap());
    let itself = AtFlags::SYMLINK_NOFOLLOW;
    assert_eq!(by_stat(CWD, &path, itself).unwrap(), identity);
    assert_eq!(identity_at(CWD, &path, itself).unwrap(), identity);
    assert!(identity.is_at(&path).unwrap() && identity.is_reached_by(&link).unwrap());
    let opened = File::open(dir.path()).unwrap();
    assert!(identity.is_in(&opened, "a".as_ref()).unwrap());
    assert!(!identity.is_in(&opened, "c".as_ref()).unwrap());
    for elsewhere in [&other, &link, &path.join("below"), &dir.path().join("d")] {
        assert!(!identity.is_at(elsewhere).unwrap(), "{elsewhere:?}");
    }
}
