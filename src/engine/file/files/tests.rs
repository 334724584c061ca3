use super::*;
use std::fs;

fn root(directory: &tempfile::TempDir) -> Root {
    Root::new(directory.path().to_owned(), false)
}

fn count(root: &Root) -> usize {
    fs::read_dir(root.path()).unwrap().count()
}

fn take(presences: &OwnPresences, owner: &Owner, directory: &Root) -> (Arc<Presence>, bool) {
    let is_new = presences.take(owner, directory).unwrap();
    (presences.of(owner).unwrap(), is_new)
}

#[test]
fn owner_keeps_its_presence_and_leaves_it_to_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let (presences, path) = (OwnPresences::default(), &root(&directory));
    let [first, second, third] = [(); 3].map(|()| Owner::new());
    let (presence, is_new) = take(&presences, &first, path);
    let (again, is_new_again) = take(&presences, &first, path);
    assert!(is_new && !is_new_again && presence.id() == again.id());
    let (other, _) = take(&presences, &second, path);
    assert!(other.id() != presence.id() && count(path) == 2);
    presences.give_back(&first);
    assert!(presences.of(&first).is_none() && presences.of(&second).is_some());
    let (next, is_new) = take(&presences, &third, path);
    assert!(is_new && next.id() == presence.id() && count(path) == 2);
    // One that is closed is gone, and nobody has it.
    drop((presence, again, next));
    presences.close(&third);
    presences.give_back(&third);
    assert!(presences.of(&third).is_none() && count(path) == 1);
}

#[test]
fn only_some_presences_rest() {
    let directory = tempfile::tempdir().unwrap();
    let (presences, path) = (OwnPresences::default(), &root(&directory));
    let owners: Vec<_> = (0..2 * MOST_RESTING).map(|_| Owner::new()).collect();
    for owner in &owners {
        presences.take(owner, path).unwrap();
    }
    assert_eq!(count(path), owners.len());
    for owner in &owners {
        presences.give_back(owner);
    }
    assert_eq!(count(path), MOST_RESTING);
    drop(presences);
    assert_eq!(count(path), 0);
}
