//! What an owner does about what it has seen of its lines.

use super::{EtcdWait, Next, State};
use crate::base::clock::Deadline;
use crate::engine::etcd::blocker::Blocker;
use crate::engine::etcd::client::failure::Failure;
use crate::engine::etcd::commands::{Entry, Seen};
use crate::engine::etcd::keys::Keys;
use crate::engine::etcd::place::Line;
use crate::engine::line::{self, Standing};
use crate::engine::{Answer, Request, Unanswered};

impl EtcdWait {
    /// Decides by what was seen.
    pub(super) fn saw(
        &mut self,
        request: Request<'_>,
        seen: &Seen,
        waits: bool,
        deadline: &Deadline,
    ) -> Result<Next, Unanswered<Failure>> {
        let places = seen.standings(request.owner).flatten().count();
        self.confirm(request, seen.by);
        if seen.is_broken {
            self.go_out(request, deadline)?;
            return Ok(Next::Answer(Answer::Broken));
        }
        if self.commands.distrusts_lease(request.owner, seen) {
            self.go_out(request, deadline)?;
            return Ok(Next::Ask);
        }
        if let Some(created) = seen.created(request.owner) {
            self.state = State::InLine(created);
            if seen.is_short {
                self.has_missed = true;
                return Ok(Next::Ask);
            }
            return self.saw_itself(request, seen, waits, deadline);
        }
        if places > 0 {
            // Somebody has deleted a key: the others are of no use.
            self.go_out(request, deadline)?;
            return Ok(Next::Ask);
        }
        match self.state {
            State::Out if self.could_enter(request, seen) => {
                self.fits_at = Some(seen.revision);
                Ok(Next::Ask)
            }
            State::Out => {
                self.commands.retire(request.owner, deadline);
                Ok(Next::Answer(taken(request, seen, false)))
            }
            State::InLine(_) => {
                self.commands.drop_lease(request.owner, deadline);
                self.state = State::Out;
                Ok(Next::Ask)
            }
            State::Unclear | State::Leaving => {
                self.state = State::Out;
                Ok(Next::Ask)
            }
        }
    }

    /// It has all its places.
    fn saw_itself(
        &mut self,
        request: Request<'_>,
        seen: &Seen,
        waits: bool,
        deadline: &Deadline,
    ) -> Result<Next, Unanswered<Failure>> {
        self.blocker = self.blocker_in(request, seen);
        self.has_changed = false;
        Ok(match (&self.blocker, self.state) {
            (None, State::InLine(created)) if !request.claim.is_exclusive() => {
                let grant = Entry {
                    created,
                    abandoned: seen.has_entered,
                    value: seen.value.clone(),
                };
                self.granted(request, grant, deadline)?
            }
            (None, _) => Next::Ask,
            (Some(_), _) if waits => Next::Answer(taken(request, seen, true)),
            (Some(_), _) => {
                self.go_out(request, deadline)?;
                Next::Answer(taken(request, seen, false))
            }
        })
    }

    /// Whether it would hold the name together with those in line, if it came now.
    fn could_enter(&self, request: Request<'_>, seen: &Seen) -> bool {
        let mode = request.claim.mode;
        let fits = |modes: &[_]| line::standing(modes, mode) == Standing::Holds;
        !request.claim.is_exclusive() && seen.lines.iter().all(|line| fits(&line.modes()))
    }

    /// What stands in the way of the owner, in the first of the names that it can't hold yet.
    fn blocker_in(&self, request: Request<'_>, seen: &Seen) -> Option<Blocker> {
        let keys = self.commands.keys(request.claim);
        let lines = seen.lines.iter().zip(&keys);
        let mut standings = lines.zip(seen.standings(request.owner));
        let blocker = |((line, keys), standing): ((&Line, &Keys), _)| {
            let (at, standing) = standing?;
            Blocker::of(line, (at, standing), keys, seen.revision)
        };
        standings.find_map(blocker)
    }
}

fn taken(request: Request<'_>, seen: &Seen, is_queued: bool) -> Answer {
    let is_wanted = is_queued && seen.is_whole && log::log_enabled!(log::Level::Debug);
    let mut holders = seen.lines.iter().filter_map(|line| line.holders().next());
    let holder = holders.find_map(|place| place.owner().filter(|owner| *owner != request.owner));
    Answer::Taken {
        is_queued,
        holder: holder
            .filter(|_| is_wanted)
            .map(|owner| owner.holder().to_owned()),
    }
}
