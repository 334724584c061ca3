//! A directory in whose place another is for a while.

use super::*;

/// A process that has its directory at a path, where another is put for a while.
struct Swapped {
    ours: Place,
    others: Files,
}

impl Swapped {
    fn new() -> Self {
        let mut ours = Place::new();
        let path = ours.directory.path().join("locks");
        std::fs::create_dir(&path).unwrap();
        let files = || Files::of(Root::new(path.clone(), false), "file:".into());
        ours.files = files();
        let others = files();
        Swapped { ours, others }
    }

    /// Another directory is where that of the locks was, and is used.
    fn use_another(&self) {
        let [path, away, other] =
            ["locks", "away", "other"].map(|name| self.ours.directory.path().join(name));
        std::fs::rename(&path, &away).unwrap();
        std::fs::create_dir(&path).unwrap();
        let claim = Claim::exclusive("x", "elsewhere");
        let owner = self.ours.has(&claim);
        assert_eq!(self.ours.release(&claim, &owner), Outcome::DONE);
        std::fs::rename(&path, &other).unwrap();
        std::fs::rename(&away, &path).unwrap();
    }

    fn others_try(&self, claim: &Claim, owner: &Owner) -> Answer {
        let manner = Manner {
            waits: false,
            looks: true,
            lock_mode: LockMode::Patient,
        };
        let asked = self
            .others
            .acquire(request(claim, owner), manner, &deadline());
        asked.unwrap().0
    }
}

#[test]
fn holder_is_not_looked_for_in_a_directory_that_is_not_there_any_more() {
    let (place, claim) = (Swapped::new(), claim());
    let holder = Owner::new();
    let asked = place.others_try(&claim, &holder);
    assert!(matches!(asked, Answer::Granted(_)));
    let waiter = place.ours.waits(&claim);
    place.use_another();
    let asked = place.ours.ask(&claim, &waiter);
    assert!(matches!(asked, Answer::Taken { .. }), "two have it");
}

#[test]
fn holder_has_no_presence_in_a_directory_that_is_not_there_any_more() {
    let (place, claim) = (Swapped::new(), claim());
    let before = place.ours.has(&claim);
    assert_eq!(place.ours.release(&claim, &before), Outcome::DONE);
    place.use_another();
    place.ours.has(&claim);
    let asked = place.others_try(&claim, &Owner::new());
    assert!(matches!(asked, Answer::Taken { .. }), "two have it");
}
