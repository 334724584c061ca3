//! What processes that are gone have left.

use std::time::Duration;

use support::{RawSession, eventually};

use crate::{PATIENCE, locker, setup};

const CONTAINER: i32 = 4;
const EPHEMERAL_SEQUENTIAL: i32 = 3;
const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";

/// Makes the node of a name.
fn name(session: &mut RawSession, name: &str) -> String {
    let path = format!("/locks/ns/{name}");
    for path in ["/locks", "/locks/ns", &path] {
        let _ = session.create(path, "", CONTAINER);
    }
    path
}

/// Makes a place in a name's line that was to be kept for so long, and returns its path.
fn kept(session: &mut RawSession, name: &str, keep: Duration) -> String {
    let path = format!("{name}/kx-{UUID}-lock-0000000007");
    session
        .create(&path, &keep.as_millis().to_string(), 0)
        .unwrap()
}

#[test]
fn places_that_nobody_keeps_any_more_are_deleted_with_their_names() {
    // Names without nodes in them are looked for each second.
    let setup = setup().property("znode.container.checkIntervalMs", "1000");
    let server = setup.start();
    let mut session = server.session();
    let (moment, day) = (Duration::from_millis(1), Duration::from_secs(24 * 3600));
    let [once, later, curators] = ["once", "later", "curators"].map(|one| name(&mut session, one));
    let over = [&once, &curators].map(|name| kept(&mut session, name, moment));
    let kept = kept(&mut session, &later, day);
    // It would wait for the place in front of it.
    let curator = format!("{curators}/_c_{UUID}-lock-");
    let curator = session.create(&curator, "", EPHEMERAL_SEQUENTIAL).unwrap();
    let held = format!("{once}/held");
    let young = [held.clone(), format!("{later}/b-{UUID}")];
    for path in &young {
        session.create(path, UUID, 0).unwrap();
    }
    let lock = locker(&server);
    lock.lock("a").unwrap().unlock().unwrap();
    for path in &over {
        assert!(eventually(PATIENCE, || !session.exists(path)), "{path}");
    }
    for path in young.iter().chain([&kept, &curator]) {
        assert!(session.exists(path), "{path}");
    }
    session.delete(&held).unwrap();
    assert!(eventually(PATIENCE, || !session.exists(&once)));
    session.close();
}
