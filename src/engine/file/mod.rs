//! Locks in a directory of this host, whose leases end with their processes.
//!
//! Who holds a name, and who waits for it, stands in its file, by the rules that memory follows. The file is locked
//! only while it is changed. Each owner has a presence, a FIFO, by which it is told, and by which others know that its
//! process lives.
//!
//! It uses `base`, the seam, `engine::rules` and `engine::url`. What always holds here: a name's file is changed only
//! while it is locked, and as a whole; what a file says of an owner counts while its presence is open, and while the
//! file is at its path.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Weak};
use std::{
    collections::BTreeSet, ffi::OsString, fs::File, os::unix::ffi::OsStringExt, path::PathBuf,
    slice,
};

use self::dir::{Dir, Root, is_exhausted};
use self::files::{DISK, Files, RIGHTS};
use self::section::{LockMode, file_name, key_of, read_unlocked};
use self::{change::Names, create::open_to_read, wait::FileWait, watch::FileWatch};
use super::rules::{Broken, Entry, Table, Values};
use super::url::{Parts, decoded_bytes, invalid_url};
use super::{
    Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait, Watch, denied,
};
use crate::base::{
    BootClock, BootInstant, Clock, Deadline, Error, Finding, Holder, Inspection, Key, LostReason,
    Namespace, Options, Owner, Result, Stored,
};
#[cfg(feature = "delay")]
use crate::base::{Mode, TaskAnswer, TaskCall};

mod change;
mod create;
mod dir;
mod files;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
#[cfg(feature = "delay")]
mod journal;
mod page;
mod platform;
mod presence;
#[cfg(feature = "delay")]
mod queue;
mod section;
#[cfg(feature = "delay")]
mod step;
#[cfg(test)]
mod tests;
mod text;
mod upkeep;
mod wait;
mod watch;

/// One file a name, with who holds it and who waits.
#[derive(Debug)]
pub(crate) struct FileEngine {
    files: Arc<Files>,
}

impl FileEngine {
    pub(crate) fn open(url: &str, rest: &str) -> Result<Self> {
        let private = rest.is_empty();
        let directory = if private {
            // A fixed place, whatever the environment says: a cron job and a shell of one user have to meet.
            format!("/tmp/crosslock-{}", rustix::process::geteuid()).into()
        } else {
            directory_of(url)?
        };
        let endpoint = format!("file://{}", directory.display());
        let root = Root::new(directory, private);
        let found = match root.find() {
            // Whatever needs it first opens it: a descriptor may be free by then.
            Err(e) if is_exhausted(&e) => Ok(None),
            found => found,
        };
        match found {
            Ok(Some(found)) => {
                if let Err(e) = upkeep::sweep(&found) {
                    log::debug!("can't remove the files of ended processes in {endpoint}: {e}");
                }
                let files = Files::open(root, endpoint);
                Ok(FileEngine { files })
            }
            Ok(None) => {
                let files = Files::open(root, endpoint);
                files.root.let_make();
                Ok(FileEngine { files })
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(denied(None, &endpoint, RIGHTS, e))
            }
            Err(e) => {
                let reason = format!(
                    "{}: {e}: use the path of a directory",
                    root.path().display()
                );
                Err(invalid_url(url, &reason))
            }
        }
    }

    /// Others wait for what a holder does.
    fn change_urgently<T>(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
        change: impl FnOnce(&mut Names<'_>) -> Result<T>,
    ) -> Result<T> {
        let when = (LockMode::Urgent, deadline);
        self.files.change(request.claim.keys(), when, change)
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let owner = request.owner;
        let Some(presence) = self.files.presences.of(owner) else {
            return Ok(Outcome::NOT_OWNER);
        };
        let changed = self.change_urgently(request, deadline, |names| {
            names.table.set_presence(owner, Some(presence.id()));
            let released = names.change(request, release)?;
            if released == Outcome::BROKEN {
                names.table.remove_broken(owner);
            }
            Ok((released, names.table.mentions(owner)))
        });
        if changed.as_ref().is_err_and(|e| !e.may_pass()) {
            // Nobody tries it again.
            self.files.presences.close(owner);
        }
        let (released, stays) = changed?;
        if !stays {
            self.files.presences.give_back(owner);
        }
        Ok(released)
    }

    fn adopt(
        &self,
        request: Request<'_>,
        from: &Owner,
        adopt: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let when = (LockMode::Urgent, deadline);
        let adopted = self.files.change_by_presence(request, when, |names| {
            names.end_those_gone(&names.table.presences_of(from))?;
            names.change(request, adopt)
        })?;
        if adopted.is_done() {
            self.files.presences.give_back(from);
        }
        Ok(adopted)
    }

    /// Whether the lease is the owner's, and whether others can see that its owner lives.
    fn verify(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
        let Some(presence) = self.files.presences.of(request.owner) else {
            return Ok(Outcome::NOT_OWNER);
        };
        let is_there = presence.is_at_its_path();
        if !is_there.map_err(|e| self.files.error(request.key(), e))? {
            return Ok(Outcome::NOT_OWNER);
        }
        if let Err(e) = presence.touch() {
            log::debug!("can't update the time of a presence file: {e}");
        }
        self.change_urgently(request, deadline, |names| {
            names.change(request, Change::Verify)
        })
    }

    /// The lease lasts for a ttl from now on, whether this process lives or not: its owner has no presence any more.
    fn give_away(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
        self.change_urgently(request, deadline, |names| {
            names.give_away(request);
            Ok(())
        })?;
        self.files.presences.give_back(request.owner);
        Ok(Outcome::DONE)
    }

    /// The directory as it is now, and the file of a name in it.
    fn find(&self, key: &Key) -> io::Result<Option<(Arc<Dir>, File)>> {
        let Some(root) = self.files.root.find()? else {
            return Ok(None);
        };
        let file = open_to_read(&root, &file_name(key))?;
        Ok(file.map(|file| (root, file)))
    }

    /// A name as its file says, without those that are gone.
    fn look(&self, key: &Key) -> Result<(Table, BootInstant)> {
        let (now, error) = (BootClock.now(), |e| self.files.error(key, e));
        let Some((root, file)) = self.find(key).map_err(error)? else {
            return Ok((Table::default(), now));
        };
        let written = read_unlocked(&file).map_err(error)?;
        let written = written.ok_or_else(|| self.files.no_state(key))?;
        let presences = written.name.entries.iter();
        let presences: Vec<_> = presences.filter_map(|one| one.presence).collect();
        let mut table = written.table(key);
        let mut gone = BTreeSet::new();
        for presence in presences {
            let is_gone = match presence::is_gone(&root, presence) {
                // Of one that only others may open nothing is known.
                Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(false),
                looked => looked,
            };
            if is_gone.map_err(error)? {
                gone.insert(presence);
            }
        }
        table.at(now).end(&gone);
        Ok((table, now))
    }
}

impl Engine for FileEngine {
    fn endpoint(&self) -> &str {
        &self.files.endpoint
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            shards: u16::from(cfg!(feature = "delay")),
            leases_expire: false,
            ..Capabilities::default()
        }
    }

    #[cfg(feature = "delay")]
    fn tasks(&self, key: &Key, call: TaskCall<'_>, deadline: &Deadline) -> Result<TaskAnswer> {
        self.files.call_tasks(key, call, deadline)
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(FileWait::new(self.files.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        #[cfg(feature = "delay")]
        if request.claim.mode == Mode::Task {
            return self.files.change_task(request, change, deadline);
        }
        match change {
            // A lease lasts for as long as the process lives, unless somebody breaks it.
            Change::Renew | Change::Verify => self.verify(request, deadline),
            Change::Release(_) => self.release(request, change, deadline),
            Change::Store(_) | Change::Downgrade { .. } => {
                self.change_urgently(request, deadline, |names| names.change(request, change))
            }
            Change::Adopt { from, .. } => self.adopt(request, from, change, deadline),
            Change::GiveAway => self.give_away(request, deadline),
        }
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.files.receivers.add(to);
    }

    fn lock_files(&self, owner: &Owner) -> io::Result<Vec<File>> {
        // Whoever has a copy of its presence keeps it open.
        let copy = self.files.presences.copy(owner)?;
        Ok(copy.into_iter().collect())
    }

    fn diagnose(&self, _of: (&Namespace, &Options), _deadline: &Deadline) -> Result<Vec<Finding>> {
        let found = self.files.root.get_or_make();
        let found = found.and_then(|found| upkeep::diagnose(&found, self.files.root.is_private()));
        found.map_err(|e| Error::engine(None, &self.files.endpoint, files::DISK, e))
    }

    /// A child has copies of its parent's files, and nothing to do with them.
    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let files = &self.files;
        Some(Arc::new(FileEngine {
            files: Files::open(files.root.anew(), files.endpoint.clone()),
        }))
    }

    /// Whoever waits finds that the owner is gone, and the next holder that it never released.
    fn abandon(&self, owner: &Owner) {
        self.files.presences.close(owner);
    }

    fn inspect(&self, key: &Key, _deadline: &Deadline) -> Result<Inspection> {
        let (table, now) = self.look(key)?;
        Ok(table.inspect(key, now))
    }

    /// All on one page.
    fn list(&self, of: (&Namespace, &str), _cursor: Cursor, _deadline: &Deadline) -> Result<Page> {
        let (namespace, prefix) = of;
        let paths = self.files.root.find().and_then(|root| match root {
            Some(root) => root.files_below(),
            None => Ok(Vec::new()),
        });
        let paths = paths.map_err(|e| Error::engine(None, &self.files.endpoint, DISK, e))?;
        let mut names = Vec::new();
        for path in paths {
            let key = key_of(namespace, &path);
            let Some(key) = key.filter(|key| key.name().starts_with(prefix)) else {
                continue;
            };
            match self.look(&key) {
                Ok((table, now)) => names.extend(table.list(namespace, prefix, now)),
                // What is no lock of ours isn't taken.
                Err(Error::Conflict { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Page { names, next: None })
    }

    /// For a name without a file none is made.
    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        let found = self.find(key).map_err(|e| self.files.error(key, e))?;
        if found.is_none() {
            return Ok(Vec::new());
        }
        let when = (LockMode::Urgent, deadline);
        let broken = self.files.change(slice::from_ref(key), when, |names| {
            let all = names.holders_of(key);
            let presences = all.iter().filter_map(|one| one.presence);
            let are_gone = names.end_those_gone(&presences.collect())?;
            let left = names.holders_of(key);
            let was_there = |one: &Entry| all.iter().any(|was| was.owner == one.owner);
            if are_gone && !left.iter().any(was_there) {
                // Nobody had it any more. Whom it was granted to just now keeps it.
                return Ok(Broken::default());
            }
            Ok(names.table.break_lock(key))
        })?;
        self.files
            .receivers
            .tell(&broken.owners, LostReason::Broken);
        Ok(broken.holders)
    }

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        (&*self.files).load(key)
    }

    fn watch(&self, key: &Key) -> Result<Box<dyn Watch>> {
        Ok(Box::new(FileWatch::new(&self.files, key)))
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        self.files.remove_value(key)
    }

    fn value_key(&self, key: &Key) -> String {
        self.files.value_path(key).display().to_string()
    }

    fn free_permits(&self, key: &Key, of: u32, _deadline: &Deadline) -> Result<u32> {
        let (table, now) = self.look(key)?;
        Ok(table.free_permits(key, of, now))
    }
}

fn directory_of(url: &str) -> Result<PathBuf> {
    understand(url).map_err(|reason| invalid_url(url, &reason))
}

fn understand(url: &str) -> Result<PathBuf, String> {
    let parts = Parts::of(url)?;
    if !parts.path.starts_with('/') && parts.authority.is_none() {
        return Err("the path of the directory must be absolute: use file:///dir".into());
    }
    if !parts.authority.is_none_or(is_this_host) {
        return Err("it names a host: use file:///dir, with three slashes".into());
    }
    if parts.query.is_some() {
        return Err("write a ? in the path as %3F".into());
    }
    let directory = PathBuf::from(OsString::from_vec(decoded_bytes(parts.path)?));
    if directory.file_name().is_none() {
        return Err("the directory is missing: use file:///dir, or file: for a private one".into());
    }
    Ok(directory)
}

/// RFC 8089 has both.
fn is_this_host(authority: &str) -> bool {
    authority.is_empty() || authority.eq_ignore_ascii_case("localhost")
}
