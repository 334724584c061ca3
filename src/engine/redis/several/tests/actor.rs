//! One process of the model: it takes its parts by a course, again and again, one command a step.

use super::super::{Course, Said, Step};
use super::part::{Command, HEARTBEAT, Part, TTL};
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
    /// What is still to be sent of a step, the worst answer to what was sent, and when the step began.
    Sends(Step, Vec<(usize, Command)>, Said, u64),
    /// Until when its lease is valid.
    Holds(Token, u64),
    /// What isn't released yet.
    Leaves(Vec<usize>, Option<u64>),
}

/// The worse of two answers to a step. A lease that is lost is over, whatever the others say.
fn worse(step: Step, one: Said, reply: Option<Said>) -> Said {
    match (step, one, reply.unwrap_or(Said::Failed)) {
        (Step::Ask(_), _, said) | (_, Said::Done, said) => said,
        (_, Said::Broken, _) | (_, _, Said::Broken) => Said::Broken,
        (_, one, _) => one,
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
            Doing::Sends(_, todo, ..) => {
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
            is_kept &= reply == Said::Done;
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
        let Doing::Sends(step, todo, worst, began) = &mut self.doing else {
            return;
        };
        *worst = worse(*step, *worst, reply);
        if !todo.is_empty() {
            return;
        }
        let (step, said, began) = (*step, *worst, *began);
        match self.course.said(step, said, self.may_wait) {
            Some(end) => self.end(end, began, now),
            None => self.go_on(now),
        }
    }

    /// Takes the next step of its course.
    fn go_on(&mut self, now: u64) {
        let to = |count, command| (0..count).map(|at| (at, command)).collect();
        let step = self.course.next();
        let todo: Vec<_> = match step {
            Step::Renew(count) => to(count, Command::Renew),
            Step::Ask(at) => {
                let enters = self.may_wait;
                vec![(at, Command::Ask { enters })]
            }
            Step::Raise(token) => to(self.parts.len(), Command::Raise(token)),
            Step::Release(count) => to(count, Command::Release(None)),
        };
        if todo.is_empty() {
            // It was broken at its first part.
            let end = self.course.said(step, Said::Done, self.may_wait);
            return self.end(end.expect("it has nothing to release"), now, now);
        }
        self.doing = Doing::Sends(step, todo, Said::Done, now);
    }

    fn end(&mut self, end: Said, began: u64, now: u64) {
        match end {
            Said::Granted(token) => self.doing = Doing::Holds(token, began + TTL),
            Said::Taken => self.doing = Doing::Waits(now + HEARTBEAT),
            Said::Broken => self.become_another(),
            Said::Done | Said::Failed => self.doing = Doing::Waits(now + HEARTBEAT / 4),
        }
    }
}
