//! Tests of the engine, and what all tests of a directory use.

mod engine;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::change::Manner;
use super::*;
use crate::base::claim::Claim;
use crate::engine::{Answer, Release};

const TTL: Duration = Duration::from_secs(10);

/// Of an owner that waits if the lock is taken.
pub(super) const WAITS: Manner = Manner {
    waits: true,
    looks: true,
    lock_mode: LockMode::Patient,
};

/// Of one that doesn't.
pub(super) const TRIES: Manner = Manner {
    waits: false,
    ..WAITS
};

/// What one more process has open of a directory.
pub(super) fn files_of(directory: &Path) -> Arc<Files> {
    let root = Root::new(directory.to_owned(), false);
    Arc::new(Files::of(root, "file:".into()))
}

/// A directory, and what a process has open of it.
pub(super) struct Place {
    pub(super) directory: TempDir,
    pub(super) files: Arc<Files>,
}

impl Place {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = files_of(directory.path());
        Place { directory, files }
    }

    pub(super) fn engine(&self) -> FileEngine {
        let files = self.files.clone();
        FileEngine { files }
    }

    pub(super) fn ask(&self, claim: &Claim, owner: &Owner) -> Answer {
        let request = request(claim, owner);
        self.files.acquire(request, WAITS, &deadline()).unwrap().0
    }

    /// The owner of a new lease.
    pub(super) fn has(&self, claim: &Claim) -> Owner {
        let owner = Owner::new();
        assert!(matches!(self.ask(claim, &owner), Answer::Granted(_)));
        owner
    }

    pub(super) fn waits(&self, claim: &Claim) -> Owner {
        let owner = Owner::new();
        assert!(matches!(self.ask(claim, &owner), Answer::Taken { .. }));
        owner
    }

    pub(super) fn release(&self, claim: &Claim, owner: &Owner) -> Outcome {
        self.change(claim, owner, Change::Release(Release::UNKNOWN))
    }

    pub(super) fn change(&self, claim: &Claim, owner: &Owner, change: Change<'_>) -> Outcome {
        let request = request(claim, owner);
        let changed = self.engine().change(request, change, &deadline());
        changed.unwrap()
    }

    pub(super) fn path(&self, key: &Key) -> PathBuf {
        self.files.path(key)
    }
}

pub(super) fn deadline() -> Deadline {
    Deadline::after(TTL)
}

pub(super) fn request<'a>(claim: &'a Claim, owner: &'a Owner) -> Request<'a> {
    Request {
        claim,
        owner,
        ttl: TTL,
        granted: None,
    }
}

pub(super) fn claim() -> Claim {
    Claim::exclusive("x", "a")
}

pub(super) fn both() -> Claim {
    let names = ["a", "b"].map(|name| Claim::exclusive("x", name).key);
    Claim {
        names: names.into(),
        ..claim()
    }
}

pub(super) fn opened(path: &Path) -> Arc<Dir> {
    Arc::new(Dir::at(path).unwrap())
}

pub(super) fn temp_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}
