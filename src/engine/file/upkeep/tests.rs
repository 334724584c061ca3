use super::*;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

#[test]
fn directory_for_everybody_is_weak() {
    let directory = tempfile::tempdir().unwrap();
    for (mode, verdict) in [
        (0o700, "fine"),
        (0o2770, "fine"),
        (0o755, "fine"),
        (0o777, "weak"),
        (0o1777, "weak"),
    ] {
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let found = fs::metadata(directory.path()).unwrap();
        let shared = rights(directory.path(), false, &found);
        assert_eq!(shared.verdict.to_string(), verdict, "{mode:o}");
        let of_one_user = rights(directory.path(), true, &found);
        assert!(of_one_user.found.contains("file:///var/lock/"));
    }
}

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

#[cfg(feature = "delay")]
#[test]
fn delay_queue_that_is_idle_and_empty_is_removed() {
    use std::time::SystemTime;
    let directory = tempfile::tempdir().unwrap();
    let head = |finished: &str| {
        let head = r#"{"format":"crosslock tasks 1","clock":{"boot":"-","ahead":0},"last":0,"tasks":{"tasks":{},"#;
        let rest = r#""due":{},"running":{},"ends":{},"buried":{},"line":[],"token":0,"finished":"#;
        format!("{head}{rest}{{{finished}}}}}}}\n")
    };
    let day = Duration::from_micros(IDLE_MICROS);
    for (name, text, age) in [
        ("x+used.tasks", head("\"a\":9"), 2 * day),
        ("x+new.tasks", head(""), Duration::ZERO),
        ("x+idle.tasks", head(""), 2 * day),
        ("x+other.tasks", "mine\n".to_owned(), 2 * day),
    ] {
        let file = File::create(directory.path().join(name)).unwrap();
        io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    sweep(&Dir::at(directory.path()).unwrap()).unwrap();
    let names = fs::read_dir(directory.path()).unwrap();
    let mut left: Vec<_> = names.map(|one| one.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["x+new.tasks", "x+other.tasks", "x+used.tasks"]);
}
