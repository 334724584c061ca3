//! Which owner of this process has which presence.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::presence::Presence;
use super::root::Root;
use crate::base::owner::Owner;
use crate::base::sys::sync::Mutex;
use crate::base::sys::time;
use crate::engine::rules::PresenceId;

/// Which owner of this process has which presence. One that nobody has rests, and is the next one's: it is made once, and
/// not for each lock.
#[derive(Debug, Default)]
pub(super) struct OwnPresences(Mutex<Presences>);

#[derive(Debug, Default)]
struct Presences {
    of: HashMap<Owner, Known>,
    resting: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    presence: Arc<Presence>,
    /// When it was last found at its path; `None` when that must be looked at, because the directory may be another one.
    seen: Option<Instant>,
    /// Whether others have copies of it, which keep it open.
    is_copied: bool,
}

/// More that rest are closed.
const MOST_RESTING: usize = 16;

/// What removes old files from a directory for temporary ones leaves those that are younger than days.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl OwnPresences {
    /// Gives an owner one, unless it has one, and says whether it has it from now on.
    pub(super) fn take(&self, owner: &Owner, root: &Root) -> io::Result<bool> {
        let mut presences = self.0.lock();
        if let Some(known) = presences.of.get_mut(owner) {
            // It asks again: somebody may have removed it meanwhile.
            known.seen = None;
            return Ok(false);
        }
        let known = match rested(&mut presences.resting) {
            Some(known) => known,
            None => {
                // Those who have a file locked need the presences, too.
                drop(presences);
                let made = Known::make(root)?;
                presences = self.0.lock();
                made
            }
        };
        presences.of.insert(owner.clone(), known);
        Ok(true)
    }

    /// That of an owner as others find it: another one, should it have been removed, with its directory or alone. For who has
    /// the owner's names locked.
    pub(super) fn found(&self, owner: &Owner, root: &Root) -> io::Result<PresenceId> {
        let mut presences = self.0.lock();
        let known = presences.of.get_mut(owner).ok_or(ErrorKind::NotFound)?;
        if known.seen.is_none() {
            if !known.presence.is_at_its_path()? {
                *known = Known::make(root)?;
            }
            known.seen = Some(time::now());
        }
        Ok(known.presence.id())
    }

    /// The directory is another than before, or a file was opened, and it may be: it was made anew at the same path, or one
    /// that was there is back.
    pub(super) fn look_again(&self) {
        let mut presences = self.0.lock();
        let Presences { of, resting } = &mut *presences;
        for known in of.values_mut().chain(resting) {
            known.seen = None;
        }
    }

    pub(super) fn of(&self, owner: &Owner) -> Option<Arc<Presence>> {
        let presences = self.0.lock();
        presences.of.get(owner).map(|known| known.presence.clone())
    }

    /// A copy of an owner's, by which others keep it open. Nobody else gets that presence later.
    pub(super) fn copy(&self, owner: &Owner) -> io::Result<Option<File>> {
        let mut presences = self.0.lock();
        let Some(known) = presences.of.get_mut(owner) else {
            return Ok(None);
        };
        known.is_copied = true;
        known.presence.file().try_clone().map(Some)
    }

    /// Takes it from an owner that stands in no file any more.
    pub(super) fn give_back(&self, owner: &Owner) {
        let mut presences = self.0.lock();
        let Some(known) = presences.of.remove(owner) else {
            return;
        };
        if presences.resting.len() < MOST_RESTING && !known.is_copied {
            presences.resting.push(known);
        }
    }

    /// Closes those that nobody has.
    pub(super) fn close_resting(&self) {
        let resting = std::mem::take(&mut self.0.lock().resting);
        drop(resting);
    }

    /// Closes it, by which all that its owner has in any file is over.
    pub(super) fn close(&self, owner: &Owner) {
        let presence = self.0.lock().of.remove(owner);
        drop(presence);
    }
}

impl Known {
    fn make(root: &Root) -> io::Result<Self> {
        Ok(Known {
            presence: Arc::new(Presence::make(&root.get_or_make()?)?),
            seen: Some(time::now()),
            is_copied: false,
        })
    }
}

fn rested(resting: &mut Vec<Known>) -> Option<Known> {
    while let Some(known) = resting.pop() {
        if known
            .seen
            .is_some_and(|seen| time::since(seen) < LOOK_EVERY)
        {
            return Some(known);
        }
        if stays(&known.presence) {
            let seen = Some(time::now());
            return Some(Known { seen, ..known });
        }
    }
    None
}

/// Whether others find it, and go on finding it.
fn stays(presence: &Presence) -> bool {
    presence.is_at_its_path().unwrap_or(false) && presence.touch().is_ok()
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn presence_that_is_closed_is_gone_and_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let (presences, path) = (OwnPresences::default(), &root(&directory));
        let [first, second] = [(); 2].map(|()| Owner::new());
        let id = take(&presences, &first, path).0.id();
        presences.close(&first);
        assert!(presences.of(&first).is_none() && count(path) == 0);
        // Nobody has one.
        presences.close(&first);
        presences.give_back(&first);
        assert!(take(&presences, &second, path).0.id() != id);
    }

    #[test]
    fn presence_that_was_removed_while_it_rested_is_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let (presences, path) = (OwnPresences::default(), &root(&directory));
        let [first, second] = [(); 2].map(|()| Owner::new());
        let id = take(&presences, &first, path).0.id();
        presences.give_back(&first);
        let entry = fs::read_dir(path.path()).unwrap().next().unwrap();
        fs::remove_file(entry.unwrap().path()).unwrap();
        let long_ago = Instant::now().checked_sub(2 * LOOK_EVERY).unwrap();
        presences.0.lock().resting[0].seen = Some(long_ago);
        let (presence, _) = take(&presences, &second, path);
        assert!(presence.id() != id && stays(&presence));
    }

    /// Else one that is always in use would never be made to look new.
    #[test]
    fn presence_that_is_given_back_is_not_taken_for_seen() {
        let directory = tempfile::tempdir().unwrap();
        let (presences, path) = (OwnPresences::default(), &root(&directory));
        let [first, second] = [(); 2].map(|()| Owner::new());
        let id = take(&presences, &first, path).0.id();
        let long_ago = Instant::now().checked_sub(2 * LOOK_EVERY).unwrap();
        presences.0.lock().of.get_mut(&first).unwrap().seen = Some(long_ago);
        fs::remove_file(
            fs::read_dir(path.path())
                .unwrap()
                .next()
                .unwrap()
                .unwrap()
                .path(),
        )
        .unwrap();
        presences.give_back(&first);
        let (presence, _) = take(&presences, &second, path);
        assert!(presence.id() != id && stays(&presence));
    }
}
