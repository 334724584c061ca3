//! Locks in a directory of this host, released by the kernel when a process dies.
//!
//! There is nothing to renew, and a lease doesn't end by itself. A waiter blocks in the kernel, which promises no order
//! between processes; where it may not block for as long as it takes, it asks with pauses.
//!
//! It uses `base`, the seam and `engine::url`. What always holds here: a file is read and written only while it is locked,
//! and a lock counts only if its file is still at its path.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use self::content::{write_counter, write_kept};
use self::directory::{directory_of, make, make_private, private_directory};
use self::files::{Files, HeldFiles, Locked, Locking, RIGHTS};
use self::kept::KeptUntil;
use self::name::value_name;
use super::url::invalid_url;
use super::{
    Answer, Capabilities, Engine, Grant, Pace, Release, Released, Renewed, Request, StoreAnswer,
    Unanswered, Values, Wait, denied,
};
use crate::base::clock::{Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::{Error, Result};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::token::{HAND_OVERS, Token};
use crate::base::value::Stored;

mod content;
mod create;
mod diagnosis;
mod directory;
mod files;
mod kept;
mod name;

/// One file a name, locked while its lease lasts, holding the counter of its fencing tokens.
#[derive(Debug)]
pub(crate) struct FileEngine {
    files: Arc<Files>,
    clock: Arc<dyn Clock>,
    /// Whether a waiter may block in the kernel: not where leases end by the caller's options.
    may_block: bool,
}

impl FileEngine {
    pub(crate) fn open(
        url: &str,
        rest: &str,
        options: &Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let private = rest.is_empty();
        let directory = if private {
            private_directory()
        } else {
            directory_of(url)?
        };
        let place = format!("file://{}", directory.display());
        let checked = if private {
            make_private(&directory)
        } else {
            make(&directory)
        };
        match checked {
            Ok(()) => Ok(FileEngine {
                files: Arc::new(Files {
                    directory,
                    place,
                    held: Mutex::default(),
                }),
                clock,
                may_block: !options.leases_end(),
            }),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(denied(None, &place, RIGHTS, e))
            }
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                Err(denied(None, &place, RIGHTS, e))
            }
            Err(e) => {
                let reason = format!("{}: {e}: name a directory", directory.display());
                Err(invalid_url(url, &reason))
            }
        }
    }
}

impl Engine for FileEngine {
    fn place(&self) -> &str {
        &self.files.place
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            shared: false,
            permits: false,
            several_names: true,
            leases_expire: false,
            hand_overs: HAND_OVERS,
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(FileWait {
            files: self.files.clone(),
            clock: self.clock.clone(),
            may_block: self.may_block,
            found: Found::Unknown,
        })
    }

    /// There is nothing to renew: the kernel keeps the lock for as long as the process lives.
    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed> {
        self.is_owner(request, deadline)
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        _deadline: &Deadline,
    ) -> Result<Released> {
        let held = self.files.held.lock().remove(request.owner);
        let Some(held) = held else {
            return Ok(Released::NotOwner);
        };
        let kept = held.are_kept();
        let stored = match release.value {
            Some(value) if kept => self.files.replace(request.key(), value),
            _ => Ok(()),
        };
        let counter = release.ending.counter();
        let counter = counter.unwrap_or_else(|| called_back(held.token));
        let until = (!release.keep.is_zero()).then(|| KeptUntil::since_now(release.keep));
        let mut written = Ok(());
        for Locked { file, .. } in &held.files {
            written = written.and(match &until {
                Some(until) => write_kept(file, counter, until),
                None => write_counter(file, counter),
            });
        }
        drop(held);
        stored?;
        written.map_err(|e| self.files.error(request.key(), e))?;
        Ok(if kept {
            Released::Done
        } else {
            Released::NotOwner
        })
    }

    fn is_owner(&self, request: Request<'_>, _deadline: &Deadline) -> Result<Renewed> {
        let ours = self.files.held.lock();
        Ok(Renewed::of(
            ours.get(request.owner).is_some_and(HeldFiles::are_kept),
        ))
    }

    fn lock_files(&self, owner: &Owner) -> io::Result<Vec<File>> {
        let ours = self.files.held.lock();
        let files = ours.get(owner).map_or(&[][..], |held| &held.files);
        files.iter().map(|locked| locked.file.try_clone()).collect()
    }

    fn values(&self) -> Result<&dyn Values> {
        Ok(self)
    }

    fn diagnose(
        &self,
        _namespace: &Namespace,
        _options: &Options,
        _deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        let directory = &self.files.directory;
        diagnosis::diagnose(directory)
            .map_err(|e| Error::engine(None, &self.files.place, files::DISK, e))
    }

    /// A child has copies of its parent's files, and nothing to do with them.
    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        Some(Arc::new(FileEngine {
            files: Arc::new(Files {
                directory: self.files.directory.clone(),
                place: self.files.place.clone(),
                held: Mutex::default(),
            }),
            clock: self.clock.clone(),
            may_block: self.may_block,
        }))
    }

    /// The counter stays odd: the next holder sees that this one never released.
    fn forget(&self, owner: &Owner) {
        self.files.held.lock().remove(owner);
    }
}

impl Values for FileEngine {
    fn store(
        &self,
        request: Request<'_>,
        value: &[u8],
        deadline: &Deadline,
    ) -> Result<StoreAnswer> {
        if self.is_owner(request, deadline)? != Renewed::Done {
            return Ok(StoreAnswer::NotOwner);
        }
        self.files.replace(request.key(), value)?;
        Ok(StoreAnswer::Done)
    }

    fn load(&self, key: &Key, _deadline: &Deadline) -> Result<Stored> {
        self.files.load(key)
    }

    fn remove(&self, key: &Key, _deadline: &Deadline) -> Result<()> {
        match fs::remove_file(self.files.directory.join(value_name(key))) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(self.files.value_error(key, e)),
            _ => Ok(()),
        }
    }

    fn value_key(&self, key: &Key) -> String {
        let path = self.files.directory.join(value_name(key));
        path.display().to_string()
    }
}

/// How one owner waits.
struct FileWait {
    files: Arc<Files>,
    clock: Arc<dyn Clock>,
    may_block: bool,
    found: Found,
}

/// How the owner found the lock when it last asked.
enum Found {
    /// It hasn't asked.
    Unknown,
    /// Another holds it; or nobody does, and it stays taken for so much longer.
    Taken(Option<Duration>),
}

impl FileWait {
    /// Whether the next question blocks in the kernel. Not the first, so that the log can tell of the wait.
    fn blocks(&self, pace: &Pace<'_>) -> bool {
        self.may_block && pace.is_endless() && matches!(self.found, Found::Taken(_))
    }

    /// What an owner has that asks again.
    fn token(&self, request: Request<'_>) -> Option<Token> {
        let ours = self.files.held.lock();
        ours.get(request.owner).map(|held| held.token)
    }

    fn acquire(&mut self, request: Request<'_>, is_queued: bool, block: bool) -> Result<Answer> {
        if let Some(token) = self.token(request) {
            return self.granted(request, token);
        }
        let (files, contents) = match self.files.lock_free(request.claim, block)? {
            Locking::Free(files, contents) => (files, contents),
            Locking::Taken(remaining) => {
                self.found = Found::Taken(remaining);
                return Ok(Answer::Taken {
                    is_queued,
                    holder: None,
                });
            }
        };
        // Read first: what fails leaves the lock as it was.
        let value = self.files.value(request)?;
        let held = self.files.take(request.key(), files, &contents)?;
        let token = held.token;
        let mut ours = self.files.held.lock();
        ours.insert(request.owner.clone(), held);
        Ok(self.grant(token, value))
    }

    fn granted(&self, request: Request<'_>, token: Token) -> Result<Answer> {
        Ok(self.grant(token, self.files.value(request)?))
    }

    /// A lease that doesn't end has no beginning that matters, unless the caller's options end it.
    fn grant(&self, token: Token, value: Option<Stored>) -> Answer {
        Answer::Granted(Grant {
            token,
            value,
            since: self.clock.now(),
        })
    }
}

impl Wait for FileWait {
    /// What fails has taken nothing: the files are unlocked again.
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        _deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        // The kernel has the queue; it has the owner in it while a question blocks.
        let is_queued = pace.is_some();
        let block = pace.is_some_and(|pace| self.blocks(pace));
        let answer = self.acquire(request, is_queued, block);
        answer.map_err(Unanswered::unsent)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        if !self.blocks(pace) {
            let left = match self.found {
                Found::Taken(left) => left.unwrap_or(Duration::MAX),
                Found::Unknown => Duration::MAX,
            };
            let pause = pace.next_pause().min(request.ttl / 3);
            let pause = pause.min(left.saturating_add(ROUNDING));
            pace.until.sleep(pause);
        }
        None
    }
}

/// What the counter holds when an acquire is called back whose answer nobody has seen: if it found the lock
/// abandoned, the next one has to find that again.
fn called_back(token: Token) -> u64 {
    if token.abandoned {
        token.number
    } else {
        Token::released(token.number)
    }
}

/// The file holds whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::claim::Claim;
    use crate::base::clock::BootClock;

    #[test]
    fn file_removed_while_held_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().display());
        let rest = url.strip_prefix("file:").unwrap();
        let engine =
            FileEngine::open(&url, rest, &Options::default(), Arc::new(BootClock)).unwrap();
        let (claim, owner) = (Claim::exclusive("x", "y"), Owner::new());
        let request = Request {
            claim: &claim,
            owner: &owner,
            ttl: Duration::from_secs(1),
        };
        let answer = engine.new_wait().ask(request, None, &Deadline::NEVER);
        assert!(matches!(answer, Ok(Answer::Granted(_))));
        assert_eq!(
            engine.is_owner(request, &Deadline::NEVER).unwrap(),
            Renewed::Done
        );
        fs::remove_file(directory.path().join(name::file_name(&claim.key))).unwrap();
        assert_eq!(
            engine.is_owner(request, &Deadline::NEVER).unwrap(),
            Renewed::NotOwner
        );
        let released = engine
            .release(request, Release::UNKNOWN, &Deadline::NEVER)
            .unwrap();
        assert_eq!(released, Released::NotOwner);
    }

    #[test]
    fn abandonment_that_nobody_was_told_of_stays() {
        let token = Token::next(Token::next(0, 1_000).number, 0);
        assert!(Token::next(called_back(token), 0).abandoned);
        let token = Token::next(0, 1_000);
        assert!(!Token::next(called_back(token), 0).abandoned);
    }
}
