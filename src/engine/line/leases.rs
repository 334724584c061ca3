//! What becomes of a lease: it is verified, stored with, released, made one that reads, and passed on.

use std::time::Duration;

use super::store::{Entry, Line, LineStore, Who};
use super::{order::passed_on, wait::until_answered};
use crate::base::{BootInstant, Deadline, Ending, Error, Mode, Owner, Result, Token};
use crate::engine::{Done, Failed, Gone, Outcome, Release, Request};

/// What leases ask of a store, besides.
pub(crate) trait LineLeases: LineStore {
    /// Finds whether the owner has its entries, and since when they are proven to last. One that has lost them is
    /// told why.
    fn prove(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome>;

    /// The owner's entries, of each name, as the servers have them now.
    fn own(&self, request: Request<'_>, deadline: &Deadline) -> Result<Vec<OwnSnapshot>>;

    /// Changes entries: all or none, and only if they are as they were found, or as their owner has written them.
    /// Without an answer it is asked again.
    fn commit(
        &self,
        request: Request<'_>,
        commit: &Commit<'_>,
        deadline: &Deadline,
    ) -> Result<Committed>;

    /// The whole lines of these names, of owners that pass leases on.
    fn lines(&self, request: Request<'_>, deadline: &Deadline) -> Result<Vec<Line>>;

    /// An earlier request, whose answer was lost, has made these entries the owner's: it has them from now on. False
    /// if it can't.
    fn resume(&self, request: Request<'_>, entries: &[Entry], deadline: &Deadline) -> Result<bool>;

    /// The owner's lease is to be adopted. A store that ends leases itself keeps it for a ttl from now.
    fn give_away(&self, _request: Request<'_>) {}
}

/// What is done at once to entries of one owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit<'a> {
    /// The entries as they were found, with the place of their name in the request: those of other names are left
    /// alone. `None`: those of all names, as the owner has written them.
    pub(crate) found: Option<&'a [(usize, Entry)]>,
    pub(crate) entries: Write,
    /// Whether what told that the owner was let in alone goes: then nobody is told that it never released the lock.
    pub(crate) is_clean: bool,
    /// The value is stored with it, for the first of these names.
    pub(crate) value: Option<&'a [u8]>,
}

/// What becomes of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// They stay as they are.
    Nothing,
    Leave,
    /// They stay for so long without an owner.
    Keep(Duration),
    /// They are the request's owner's from now on, who holds in that way, at the same place, with that token.
    Become {
        mode: Mode,
        token: u64,
    },
}

/// What came of a commit.
#[derive(Debug)]
pub(crate) enum Committed {
    Done {
        /// It was asked more than once.
        is_repeated: bool,
        /// If that is known by it: the entries last from then on.
        since: Option<BootInstant>,
    },
    /// Nothing was done, at least by the last request.
    Refused {
        /// Of each name of the commit. Empty: not the entries are the reason, and it may be tried again.
        found: Vec<OwnSnapshot>,
        is_repeated: bool,
    },
}

/// What is there of an owner in one line.
#[derive(Clone, Debug)]
pub(crate) struct OwnSnapshot {
    /// Its entry, if it is that of the lease which the request is about: one that a late request has put again isn't.
    pub(crate) own: Option<Entry>,
    /// Whether somebody broke its lock.
    pub(crate) is_broken: bool,
}

/// What it may take to end what would end by itself.
const ENDING: Duration = Duration::from_millis(60);

pub(super) fn verify(
    store: &impl LineLeases,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<Outcome> {
    let found = store.own(request, deadline)?;
    let outcome = if found.iter().all(|one| one.own.is_some()) {
        Outcome::DONE
    } else if found.iter().any(|one| one.is_broken) {
        Outcome::BROKEN
    } else {
        Outcome::NOT_OWNER
    };
    if !outcome.is_done() && !request.claim.is_multi() {
        // Of several names it may have others, which its release gives up.
        store.discard(request, &deadline.within(ENDING));
    }
    Ok(outcome)
}

pub(super) fn store(
    store: &impl LineLeases,
    request: Request<'_>,
    value: &[u8],
    deadline: &Deadline,
) -> Result<Outcome> {
    let mut was_repeated = false;
    let mut left: Option<Vec<(usize, Entry)>> = None;
    loop {
        let commit = Commit {
            found: left.as_deref(),
            entries: Write::Nothing,
            is_clean: false,
            value: Some(value),
        };
        match store.commit(request, &commit, deadline)? {
            Committed::Done { is_repeated, .. } => {
                return Ok(match is_repeated || was_repeated {
                    true => Outcome::DONE_AGAIN,
                    false => Outcome::DONE,
                });
            }
            Committed::Refused { found, is_repeated } => {
                was_repeated |= is_repeated;
                let entries = still_own(found, left.as_deref());
                if entries.len() < request.claim.keys().len() {
                    return Ok(Outcome::NOT_OWNER);
                }
                left = Some(entries);
            }
        }
    }
}

/// Those that are still the owner's, of the names that a commit was about.
fn still_own(found: Vec<OwnSnapshot>, before: Option<&[(usize, Entry)]>) -> Vec<(usize, Entry)> {
    let name = |at: usize| before.map_or(at, |before| before[at].0);
    let own = found.into_iter().enumerate();
    own.filter_map(|(at, found)| Some((name(at), found.own?)))
        .collect()
}

/// Ends a lease. Entries that aren't as their owner has written them, such as those of a downgrade without an answer,
/// are released as they are found; of several names those are released that are left.
pub(super) fn release(
    store: &impl LineLeases,
    request: Request<'_>,
    release: Release<'_>,
    deadline: &Deadline,
) -> Result<Outcome> {
    if release.ending == Ending::Unknown {
        leave_for_good(store, request, deadline)?;
        return Ok(Outcome::DONE);
    }
    let released = release_all(store, request, release, deadline)?;
    if released.is_done() {
        store.retire(request, deadline);
    } else {
        store.discard(request, deadline);
    }
    Ok(released)
}

fn release_all(
    store: &impl LineLeases,
    request: Request<'_>,
    release: Release<'_>,
    deadline: &Deadline,
) -> Result<Outcome> {
    let (mut end, mut was_repeated) = (Outcome::DONE, false);
    let mut left: Option<Vec<(usize, Entry)>> = None;
    loop {
        let commit = Commit {
            found: left.as_deref(),
            entries: match release.keep {
                Duration::ZERO => Write::Leave,
                keep => Write::Keep(keep),
            },
            // After a panic the next is told.
            is_clean: matches!(release.ending, Ending::Clean { .. }),
            value: release.value,
        };
        let (found, is_repeated) = match store.commit(request, &commit, deadline)? {
            Committed::Done { .. } => return Ok(end),
            Committed::Refused { found, is_repeated } => (found, is_repeated),
        };
        was_repeated |= is_repeated;
        if end.is_done() {
            end = why_not(&found, was_repeated);
        }
        let entries = still_own(found, left.as_deref());
        if entries.is_empty() {
            return Ok(end);
        }
        left = Some(entries);
    }
}

/// What a release comes to that found this.
fn why_not(found: &[OwnSnapshot], was_repeated: bool) -> Outcome {
    if found.iter().any(|one| one.is_broken) {
        Outcome::BROKEN
    } else if found.iter().all(|one| one.own.is_some()) {
        // It is all there, and was written otherwise.
        Outcome::DONE
    } else if was_repeated {
        Outcome::Gone(Gone::Repeated)
    } else {
        Outcome::NOT_OWNER
    }
}

/// Gives up what an owner has that doesn't know what that is.
fn leave_for_good(
    store: &impl LineLeases,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<()> {
    if store.has_inflight(request) {
        // Once before its entries are gone: whoever is let in then isn't to find that it was.
        let _ = store.leave(request, deadline);
        // What comes late is refused from now on, and can't undo the rest.
        store.settle(request, deadline);
    }
    until_answered(deadline, || store.leave(request, deadline))?;
    store.retire(request, deadline);
    Ok(())
}

/// An owner that has the name alone goes on as one that reads, at the same place. The lease is proved anew.
pub(super) fn downgrade(
    store: &impl LineLeases,
    request: Request<'_>,
    (last_used, value): (u64, Option<&[u8]>),
    deadline: &Deadline,
) -> Result<Outcome> {
    let mut token = next_token(store, request, last_used)?;
    let commit = Commit {
        found: None,
        entries: Write::Become {
            mode: Mode::Shared,
            token: token.number,
        },
        is_clean: true,
        value,
    };
    if let Committed::Refused { found, .. } = store.commit(request, &commit, deadline)? {
        // Perhaps it was carried out before, without an answer.
        let entries: Vec<_> = still_own(found, None)
            .into_iter()
            .map(|one| one.1)
            .collect();
        let Some(earlier) = downgraded(&entries, request) else {
            return Ok(Outcome::NOT_OWNER);
        };
        if !store.resume(request, &entries, deadline)? {
            return Ok(Outcome::NOT_OWNER);
        }
        token = Token::from_number(earlier);
    }
    proved(store, request, token, deadline)
}

/// The token by which the owner has all names already, to read.
fn downgraded(entries: &[Entry], request: Request<'_>) -> Option<u64> {
    let is_all = entries.len() == request.claim.keys().len();
    let tokens = entries.iter().map(|entry| match entry.mode {
        Mode::Shared => entry.token,
        Mode::Exclusive | Mode::Permits { .. } | Mode::Task => None,
    });
    let tokens = tokens.collect::<Option<Vec<_>>>().filter(|_| is_all)?;
    tokens.into_iter().max()
}

/// The lease with that token, if it lasts.
fn proved(
    store: &impl LineLeases,
    request: Request<'_>,
    token: Token,
    deadline: &Deadline,
) -> Result<Outcome> {
    let prove = || store.prove(request, deadline).map_err(Failed::unsent);
    Ok(match until_answered(deadline, prove)?.0 {
        Outcome::Done(done) => Outcome::Done(Done {
            token: Some(token),
            ..done
        }),
        Outcome::Gone(_) => Outcome::NOT_OWNER,
    })
}

/// The lease with that token, which lasts from then on.
fn lasting(token: Token, since: BootInstant) -> Outcome {
    Outcome::Done(Done {
        token: Some(token),
        since: Some(since),
        ..Done::default()
    })
}

/// The token of a lease that goes on for another holder.
fn next_token(store: &impl LineLeases, request: Request<'_>, last_used: u64) -> Result<Token> {
    passed_on(last_used).ok_or_else(|| {
        let (name, cause) = (
            request.key().name(),
            "it was handed over too often: release it and lock it again",
        );
        Error::engine(
            Some(name),
            store.endpoint(),
            "how often it is handed over",
            cause,
        )
    })
}

/// The lease goes on for the request's owner: its entries stay where they are.
pub(super) fn adopt(
    store: &impl LineLeases,
    request: Request<'_>,
    (from, last_used): (&Owner, u64),
    deadline: &Deadline,
) -> Result<Outcome> {
    let token = next_token(store, request, last_used)?;
    loop {
        let lines = store.lines(request, deadline)?;
        if let Some((earlier, entries)) = adopted(&lines, request.owner) {
            // An answer to this was lost.
            if !store.resume(request, &entries, deadline)? {
                return Ok(Outcome::NOT_OWNER);
            }
            return proved(store, request, Token::from_number(earlier), deadline);
        }
        let is_so = |(_, entry): &(usize, Entry)| entry.mode == request.claim.mode;
        let entries = entries_of(&lines, from).filter(|all| all.iter().all(is_so));
        let Some(entries) = entries else {
            store.retire(request, deadline);
            return Ok(Outcome::NOT_OWNER);
        };
        let commit = Commit {
            found: Some(&entries),
            entries: Write::Become {
                mode: request.claim.mode,
                token: token.number,
            },
            is_clean: false,
            value: None,
        };
        // If it is refused, another has changed it meanwhile, an answer was lost, or the lease is gone.
        if let Committed::Done { since, .. } = store.commit(request, &commit, deadline)? {
            return match since {
                Some(since) => Ok(lasting(token, since)),
                None => proved(store, request, token, deadline),
            };
        }
    }
}

/// The token by which the owner has all names already, and its entries.
fn adopted(lines: &[Line], owner: &Owner) -> Option<(u64, Vec<Entry>)> {
    let entries: Vec<_> = entries_of(lines, owner)?
        .into_iter()
        .map(|one| one.1)
        .collect();
    let tokens: Option<Vec<_>> = entries.iter().map(|entry| entry.token).collect();
    Some((tokens?.into_iter().max()?, entries))
}

/// The entries of an owner that has one in each line, with the place of that line. A look may have shown its uuid
/// alone.
fn entries_of(lines: &[Line], owner: &Owner) -> Option<Vec<(usize, Entry)>> {
    let found = lines.iter().map(|line| {
        let (_, entry) = line.find(owner)?;
        let who = Who::Owner(owner.clone());
        Some(Entry {
            who,
            ..entry.clone()
        })
    });
    let found: Option<Vec<_>> = found.collect();
    Some(found?.into_iter().enumerate().collect())
}
