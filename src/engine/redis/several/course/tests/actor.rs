//! One process of the model: it takes its parts by a course, again and again, one command a step.

use super::super::{Course, End, Kept, Said, Step};
use super::part::{Command, HEARTBEAT, Part, Reply, TTL};
use crate::base::random::Random;
use crate::base::token::Token;

#[derive(Debug)]
pub(super) struct Actor {
    /// Its parts, in the order of its course.
    pub(super) parts: Vec<usize>,
    pub(super) owner: u32,
    course: Course,
    doing: Doing,
    /// How often it still wants them.
    wants: u32,
    /// Whether it waits until it has them all.
    is_patient: bool,
    /// Whether this question is that of a waiter.
    may_wait: bool,
    /// It doesn't run before.
    pub(super) stalled_until: u64,
    pub(super) has_crashed: bool,
}

#[derive(Debug)]
enum Doing {
    /// It asks again then.
    Waits(u64),
    /// What is still to be sent of a step, what was answered, and when the step began.
    Sends(Vec<(usize, Command)>, Heard, u64),
    /// Until when its lease is valid.
    Holds(Token, u64),
    /// What isn't released yet.
    Leaves(Vec<usize>, Option<u64>),
}

/// The worst answer to what was sent of a step.
#[derive(Clone, Copy, Debug)]
enum Heard {
    Said(Said),
    Kept(Kept),
    Released { are_all_answered: bool },
}

impl Heard {
    fn and(self, reply: Option<Reply>) -> Self {
        match (self, reply) {
            (Heard::Said(_), Some(Reply::Said(said))) => Heard::Said(said),
            (Heard::Said(_), _) => Heard::Said(Said::Unanswered),
            (Heard::Kept(Kept::NotAll), _) => self,
            (Heard::Kept(Kept::All), Some(Reply::Kept(kept))) => Heard::Kept(kept),
            (Heard::Kept(_), Some(Reply::Kept(Kept::NotAll))) => Heard::Kept(Kept::NotAll),
            (Heard::Kept(_), _) => Heard::Kept(Kept::Unanswered),
            (Heard::Released { are_all_answered }, reply) => Heard::Released {
                are_all_answered: are_all_answered && reply.is_some(),
            },
        }
    }
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    /// Carried out, and nobody hears of it.
    Unheard,
    /// Answered, and another copy is on its way for so long.
    Twice(u64),
    /// Not sent.
    Unsent,
    /// On its way for so long.
    Late(u64),
}

/// A command that is on its way, and when it arrives.
pub(super) type Late = (u64, usize, u32, Command);

impl Actor {
    pub(super) fn new(parts: Vec<usize>, owner: u32, wants: u32, is_patient: bool) -> Self {
        Actor {
            course: Course::new(parts.len()),
            parts,
            owner,
            doing: Doing::Waits(0),
            wants,
            is_patient,
            may_wait: is_patient,
            stalled_until: 0,
            has_crashed: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.has_crashed || self.wants == 0
    }

    /// Whether there is something to do at that time.
    pub(super) fn is_ready(&self, now: u64) -> bool {
        let is_awake = !self.is_done() && self.stalled_until <= now;
        is_awake && !matches!(self.doing, Doing::Waits(until) if until > now)
    }

    /// Whether it has a valid lease of a part.
    pub(super) fn holds(&self, part: usize, now: u64) -> bool {
        let is_valid = matches!(self.doing, Doing::Holds(_, until) if until > now);
        is_valid && self.parts.contains(&part)
    }

    pub(super) fn hear(&mut self, owner: u32, part: usize, token: Token) {
        let at = self.course.waits_at();
        let is_there = at.is_some_and(|at| self.parts[at] == part);
        if self.owner == owner
            && is_there
            && let Doing::Waits(until) = &mut self.doing
        {
            self.course.granted(token);
            *until = 0;
        }
    }

    /// Does one thing. Gives the command that is late.
    pub(super) fn step(
        &mut self,
        all: &mut [Part],
        now: u64,
        random: &mut Random,
        mut fate: impl FnMut(&mut Random) -> Fate,
    ) -> Option<Late> {
        match &mut self.doing {
            Doing::Waits(_) if !self.is_patient && random.u32(..40) == 0 => self.leave(None),
            Doing::Waits(_) => {
                self.may_wait = self.is_patient || random.u32(..5) > 0;
                self.course.begin();
                self.go_on(now);
            }
            Doing::Sends(todo, ..) => {
                let (at, command) = todo.swap_remove(random.usize(..todo.len()));
                let fate = fate(random);
                // Its answer may make another of this one.
                let owner = self.owner;
                self.send(at, command, fate, all, now);
                if let Fate::Late(by) | Fate::Twice(by) = fate {
                    return Some((now + by, self.parts[at], owner, command));
                }
            }
            Doing::Holds(token, until) => {
                let token = *token;
                if *until <= now || random.u32(..8) == 0 {
                    self.leave(Some(token.number));
                } else if random.bool() {
                    self.renew(token, all, now);
                }
            }
            Doing::Leaves(left, last_used) => match left.pop() {
                None => self.begin_anew(),
                Some(part) => {
                    let release = Command::Release(*last_used);
                    match fate(random) {
                        Fate::Answered => drop(all[part].carry_out(self.owner, release, now)),
                        // It is tried again until there is an answer.
                        _ => left.push(part),
                    }
                }
            },
        }
        None
    }

    fn leave(&mut self, last_used: Option<u64>) {
        self.doing = Doing::Leaves(self.parts.clone(), last_used);
    }

    fn begin_anew(&mut self) {
        self.wants -= 1;
        self.become_another();
    }

    fn become_another(&mut self) {
        // No two actors ever have the same.
        self.owner += 100;
        self.course = Course::new(self.parts.len());
        self.doing = Doing::Waits(0);
    }

    fn renew(&mut self, token: Token, all: &mut [Part], now: u64) {
        let mut is_kept = true;
        for part in &self.parts {
            let reply = all[*part].carry_out(self.owner, Command::Renew, now);
            is_kept &= matches!(reply, Reply::Kept(Kept::All));
        }
        match is_kept {
            true => self.doing = Doing::Holds(token, now + TTL),
            false => self.leave(Some(token.number)),
        }
    }

    fn send(&mut self, at: usize, command: Command, fate: Fate, all: &mut [Part], now: u64) {
        let part = &mut all[self.parts[at]];
        let reply = match fate {
            Fate::Answered | Fate::Twice(_) => Some(part.carry_out(self.owner, command, now)),
            Fate::Unheard => {
                part.carry_out(self.owner, command, now);
                None
            }
            Fate::Unsent | Fate::Late(_) => None,
        };
        let Doing::Sends(todo, heard, began) = &mut self.doing else {
            return;
        };
        *heard = heard.and(reply);
        if !todo.is_empty() {
            return;
        }
        let (heard, began) = (*heard, *began);
        let end = match heard {
            Heard::Said(said) => self.course.said(said, self.may_wait),
            Heard::Kept(kept) => self.course.kept(kept),
            Heard::Released { are_all_answered } => Some(self.course.released(are_all_answered)),
        };
        match end {
            Some(end) => self.end(end, began, now),
            None => self.go_on(now),
        }
    }

    /// Takes the next step of its course.
    fn go_on(&mut self, now: u64) {
        let to = |count, command| (0..count).map(|at| (at, command)).collect();
        let (todo, heard): (Vec<_>, _) = match self.course.next() {
            Step::Renew(count) => (to(count, Command::Renew), Heard::Kept(Kept::All)),
            Step::Ask(at) => {
                let enters = self.may_wait;
                let ask = Command::Ask { enters };
                (vec![(at, ask)], Heard::Said(Said::Unanswered))
            }
            Step::Raise(token) => {
                let count = self.parts.len();
                (to(count, Command::Raise(token)), Heard::Kept(Kept::All))
            }
            Step::Release(count) => {
                let are_all_answered = true;
                let heard = Heard::Released { are_all_answered };
                (to(count, Command::Release(None)), heard)
            }
        };
        if todo.is_empty() {
            // It was broken at its first part.
            let end = self.course.released(true);
            return self.end(end, now, now);
        }
        self.doing = Doing::Sends(todo, heard, now);
    }

    fn end(&mut self, end: End, began: u64, now: u64) {
        match end {
            End::Granted(token) => self.doing = Doing::Holds(token, began + TTL),
            End::Taken => self.doing = Doing::Waits(now + HEARTBEAT),
            End::Broken => self.become_another(),
            End::Unanswered => self.doing = Doing::Waits(now + HEARTBEAT / 4),
        }
    }
}
