//! A part as the scripts have it, in as far as a course depends on it: a holder, a counter and a queue, and time.

use super::super::Said;
use crate::base::token::Token;

/// How long leases last.
pub(super) const TTL: u64 = 400;
/// Within which time a waiter asks again.
pub(super) const HEARTBEAT: u64 = TTL / 3;

#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Ask {
        enters: bool,
    },
    Raise(Token),
    Renew,
    /// With the last token that was used, if it is known.
    Release(Option<u64>),
}

#[derive(Debug, Default)]
pub(super) struct Part {
    holder: Option<(u32, u64)>,
    counter: u64,
    /// Owners, and when their heartbeats are overdue.
    queue: Vec<(u32, u64)>,
    broken: Vec<u32>,
    /// By how much its clock is ahead.
    ahead: u64,
    /// The last token that was raised here, and its owner.
    raised: Option<(u32, u64)>,
    /// Who was granted it and not told yet.
    pub(super) told: Vec<(u32, Token)>,
}

impl Part {
    pub(super) fn new(ahead: u64) -> Self {
        Part {
            ahead,
            ..Part::default()
        }
    }

    pub(super) fn carry_out(&mut self, owner: u32, command: Command, now: u64) -> Said {
        self.look(now);
        let is_holder = self.holder.is_some_and(|(holder, _)| holder == owner);
        let kept = match is_holder {
            true => Said::Done,
            false => Said::Broken,
        };
        match command {
            Command::Ask { enters } => return self.ask(owner, enters, now),
            Command::Release(last_used) => {
                self.release(owner, last_used, now);
                return Said::Done;
            }
            Command::Raise(token) if is_holder && self.counter > token.number => {
                return Said::Broken;
            }
            Command::Raise(token) if is_holder => self.raise(owner, token),
            _ => {}
        }
        if is_holder {
            self.holder = Some((owner, now + TTL));
        }
        kept
    }

    /// Ends the lease of its holder.
    pub(super) fn break_it(&mut self, now: u64) {
        self.look(now);
        if let Some((holder, _)) = self.holder.take() {
            self.broken.push(holder);
            self.counter = Token::next(self.counter, 0).number;
            self.hand_off(now);
        }
    }

    pub(super) fn has_broken(&self, owner: u32) -> bool {
        self.broken.contains(&owner)
    }

    /// Whether it has something of an owner.
    pub(super) fn knows(&self, owner: u32) -> bool {
        let holds = self.holder.is_some_and(|(holder, _)| holder == owner);
        holds || self.queue.iter().any(|(waiter, _)| *waiter == owner)
    }

    fn look(&mut self, now: u64) {
        self.holder = self.holder.filter(|(_, ends)| *ends > now);
    }

    fn ask(&mut self, owner: u32, enters: bool, now: u64) -> Said {
        if self.broken.contains(&owner) {
            return Said::Broken;
        }
        self.queue
            .iter_mut()
            .filter(|(waiter, _)| *waiter == owner)
            .for_each(|(_, overdue)| *overdue = now + 1);
        self.hand_off(now);
        match &mut self.holder {
            None => {
                self.grant(owner, now);
            }
            Some((holder, ends)) if *holder == owner => *ends = now + TTL,
            Some(_) => {
                self.wait(owner, enters, now);
                return Said::Taken;
            }
        }
        Said::Granted(Token::from_number(self.counter))
    }

    fn wait(&mut self, owner: u32, enters: bool, now: u64) {
        let overdue = now + 2 * HEARTBEAT;
        match self.queue.iter().position(|(waiter, _)| *waiter == owner) {
            Some(at) if enters => self.queue[at].1 = overdue,
            Some(at) => drop(self.queue.remove(at)),
            None if enters => self.queue.push((owner, overdue)),
            None => {}
        }
    }

    fn raise(&mut self, owner: u32, token: Token) {
        if let Some((other, before)) = self.raised.filter(|(other, _)| *other != owner) {
            let number = token.number;
            assert!(
                number > before,
                "{owner} has {number}, and {other} had {before}"
            );
        }
        self.counter = token.number;
        self.raised = Some((owner, token.number));
    }

    fn release(&mut self, owner: u32, last_used: Option<u64>, now: u64) {
        self.queue.retain(|(waiter, _)| *waiter != owner);
        if self.holder.is_some_and(|(holder, _)| holder == owner) {
            self.holder = None;
            self.counter = match last_used {
                Some(last_used) => Token::released(last_used).max(self.counter),
                None if self.counter % 4 == 1 => self.counter + 1,
                None => self.counter,
            };
        }
        self.hand_off(now);
    }

    fn hand_off(&mut self, now: u64) {
        self.queue.retain(|(_, overdue)| *overdue > now);
        if self.holder.is_none() && !self.queue.is_empty() {
            let (owner, _) = self.queue.remove(0);
            let token = self.grant(owner, now);
            self.told.push((owner, token));
        }
    }

    fn grant(&mut self, owner: u32, now: u64) -> Token {
        let token = Token::next(self.counter, now + self.ahead);
        self.counter = token.number;
        self.holder = Some((owner, now + TTL));
        token
    }
}
