use super::*;
use std::fs;

fn root(directory: &tempfile::TempDir) -> Root {
    Root::new(directory.path().to_owned(), false)
}

fn count(root: &Root) -> usize {
    fs::read_dir(root.path()).unwrap().count()
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
