//! Which owner of this process has which door.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::root::Root;
use super::store::door::{Door, DoorId};
use crate::base::owner::Owner;
use crate::base::sync::Mutex;

/// Which owner of this process has which door. One that nobody has rests, and is the next one's: it is made once, and
/// not for each lock.
#[derive(Debug, Default)]
pub(super) struct OwnDoors(Mutex<Doors>);

#[derive(Debug, Default)]
struct Doors {
    of: HashMap<Owner, Known>,
    resting: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    door: Arc<Door>,
    /// When it was last found at its path; `None` when that must be looked at, because the directory may be another one.
    seen: Option<Instant>,
    /// Whether others have copies of it, which keep it open.
    is_copied: bool,
}

/// More that rest are closed.
const MOST_RESTING: usize = 16;

/// What removes old files from a directory for temporary ones leaves those that are younger than days.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl OwnDoors {
    /// Gives an owner one, unless it has one, and says whether it has it from now on.
    pub(super) fn take(&self, owner: &Owner, root: &Root) -> io::Result<bool> {
        let mut doors = self.0.lock();
        if let Some(known) = doors.of.get_mut(owner) {
            // It asks again: somebody may have removed it meanwhile.
            known.seen = None;
            return Ok(false);
        }
        let known = match rested(&mut doors.resting) {
            Some(known) => known,
            None => {
                // Those who have a file locked need the doors, too.
                drop(doors);
                let made = Known::make(root)?;
                doors = self.0.lock();
                made
            }
        };
        doors.of.insert(owner.clone(), known);
        Ok(true)
    }

    /// That of an owner as others find it: another one, should it have been removed, with its directory or alone. For who has
    /// the owner's names locked.
    pub(super) fn found(&self, owner: &Owner, root: &Root) -> io::Result<DoorId> {
        let mut doors = self.0.lock();
        let known = doors.of.get_mut(owner).ok_or(ErrorKind::NotFound)?;
        if known.seen.is_none() {
            if !known.door.is_at_its_path()? {
                *known = Known::make(root)?;
            }
            known.seen = Some(Instant::now());
        }
        Ok(known.door.id())
    }

    /// The directory is another than before, or a file was opened, and it may be: it was made anew at the same path, or one
    /// that was there is back.
    pub(super) fn look_again(&self) {
        let mut doors = self.0.lock();
        let Doors { of, resting } = &mut *doors;
        for known in of.values_mut().chain(resting) {
            known.seen = None;
        }
    }

    pub(super) fn of(&self, owner: &Owner) -> Option<Arc<Door>> {
        let doors = self.0.lock();
        doors.of.get(owner).map(|known| known.door.clone())
    }

    /// A copy of an owner's, by which others keep it open. Nobody else gets that door later.
    pub(super) fn copy(&self, owner: &Owner) -> io::Result<Option<File>> {
        let mut doors = self.0.lock();
        let Some(known) = doors.of.get_mut(owner) else {
            return Ok(None);
        };
        known.is_copied = true;
        known.door.file().try_clone().map(Some)
    }

    /// Takes it from an owner that stands in no file any more.
    pub(super) fn give_back(&self, owner: &Owner) {
        let mut doors = self.0.lock();
        let Some(known) = doors.of.remove(owner) else {
            return;
        };
        if doors.resting.len() < MOST_RESTING && !known.is_copied {
            doors.resting.push(known);
        }
    }

    /// Closes those that nobody has.
    pub(super) fn close_resting(&self) {
        let resting = std::mem::take(&mut self.0.lock().resting);
        drop(resting);
    }

    /// Closes it, by which all that its owner has in any file is over.
    pub(super) fn close(&self, owner: &Owner) {
        let door = self.0.lock().of.remove(owner);
        drop(door);
    }
}

impl Known {
    fn make(root: &Root) -> io::Result<Self> {
        Ok(Known {
            door: Arc::new(Door::make(&root.get_or_make()?)?),
            seen: Some(Instant::now()),
            is_copied: false,
        })
    }
}

fn rested(resting: &mut Vec<Known>) -> Option<Known> {
    while let Some(known) = resting.pop() {
        if known.seen.is_some_and(|seen| seen.elapsed() < LOOK_EVERY) {
            return Some(known);
        }
        if stays(&known.door) {
            let seen = Some(Instant::now());
            return Some(Known { seen, ..known });
        }
    }
    None
}

/// Whether others find it, and go on finding it.
fn stays(door: &Door) -> bool {
    door.is_at_its_path().unwrap_or(false) && door.touch().is_ok()
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

    fn take(doors: &OwnDoors, owner: &Owner, directory: &Root) -> (Arc<Door>, bool) {
        let is_new = doors.take(owner, directory).unwrap();
        (doors.of(owner).unwrap(), is_new)
    }

    #[test]
    fn owner_keeps_its_door_and_leaves_it_to_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let (doors, path) = (OwnDoors::default(), &root(&directory));
        let [first, second, third] = [(); 3].map(|()| Owner::new());
        let (door, is_new) = take(&doors, &first, path);
        let (again, is_new_again) = take(&doors, &first, path);
        assert!(is_new && !is_new_again && door.id() == again.id());
        let (other, _) = take(&doors, &second, path);
        assert!(other.id() != door.id() && count(path) == 2);
        doors.give_back(&first);
        assert!(doors.of(&first).is_none() && doors.of(&second).is_some());
        let (next, is_new) = take(&doors, &third, path);
        assert!(is_new && next.id() == door.id() && count(path) == 2);
    }

    #[test]
    fn only_some_doors_rest() {
        let directory = tempfile::tempdir().unwrap();
        let (doors, path) = (OwnDoors::default(), &root(&directory));
        let owners: Vec<_> = (0..2 * MOST_RESTING).map(|_| Owner::new()).collect();
        for owner in &owners {
            doors.take(owner, path).unwrap();
        }
        assert_eq!(count(path), owners.len());
        for owner in &owners {
            doors.give_back(owner);
        }
        assert_eq!(count(path), MOST_RESTING);
        drop(doors);
        assert_eq!(count(path), 0);
    }

    #[test]
    fn door_that_is_closed_is_gone_and_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let (doors, path) = (OwnDoors::default(), &root(&directory));
        let [first, second] = [(); 2].map(|()| Owner::new());
        let id = take(&doors, &first, path).0.id();
        doors.close(&first);
        assert!(doors.of(&first).is_none() && count(path) == 0);
        // Nobody has one.
        doors.close(&first);
        doors.give_back(&first);
        assert!(take(&doors, &second, path).0.id() != id);
    }

    #[test]
    fn door_that_was_removed_while_it_rested_is_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let (doors, path) = (OwnDoors::default(), &root(&directory));
        let [first, second] = [(); 2].map(|()| Owner::new());
        let id = take(&doors, &first, path).0.id();
        doors.give_back(&first);
        let entry = fs::read_dir(path.path()).unwrap().next().unwrap();
        fs::remove_file(entry.unwrap().path()).unwrap();
        let long_ago = Instant::now().checked_sub(2 * LOOK_EVERY).unwrap();
        doors.0.lock().resting[0].seen = Some(long_ago);
        let (door, _) = take(&doors, &second, path);
        assert!(door.id() != id && stays(&door));
    }

    /// Else one that is always in use would never be made to look new.
    #[test]
    fn door_that_is_given_back_is_not_taken_for_seen() {
        let directory = tempfile::tempdir().unwrap();
        let (doors, path) = (OwnDoors::default(), &root(&directory));
        let [first, second] = [(); 2].map(|()| Owner::new());
        let id = take(&doors, &first, path).0.id();
        let long_ago = Instant::now().checked_sub(2 * LOOK_EVERY).unwrap();
        doors.0.lock().of.get_mut(&first).unwrap().seen = Some(long_ago);
        fs::remove_file(
            fs::read_dir(path.path())
                .unwrap()
                .next()
                .unwrap()
                .unwrap()
                .path(),
        )
        .unwrap();
        doors.give_back(&first);
        let (door, _) = take(&doors, &second, path);
        assert!(door.id() != id && stays(&door));
    }
}
