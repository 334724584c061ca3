//! The rules, asked as the model of the scripts is.

use std::collections::BTreeSet;
use std::time::Duration;

use crosslock_protocol::server::{
    Call, Mode, Names, Release as ReleaseCall, Ticks, Token as ModelToken,
};

use super::rules::{Entry, EntryState, NameState, PresenceId, Table, Values};
use super::{Answer, Change, Outcome, Release, Request};
use crate::base::claim::{self, Claim, Prefer, Stored};
use crate::base::clock::BootInstant;
use crate::base::error::Result;
use crate::base::name::{Key, Namespace};
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};

/// Some names, by the rules.
pub(crate) struct Subject {
    keys: Vec<Key>,
    table: Table,
    now: BootInstant,
    as_in: Place,
}

/// How an engine that follows the rules keeps a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    /// All is written down and read again after each call.
    File,
    /// Waiters are given their leases, too, before they ask for them.
    GivingFile,
}

/// What is seen of a name: who has it, in no order, and who waits: the others in their order, and those that read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) holders: Vec<u8>,
    pub(crate) is_kept: bool,
    pub(crate) queue: Vec<u8>,
    pub(crate) readers: Vec<u8>,
}

/// An owner's claim.
#[derive(Clone, Copy, Debug)]
struct Ask {
    owner: u8,
    names: Names,
    mode: Mode,
    ttl: Ticks,
}

/// What an owner was told of its lease: the token by the model, and that by the rules.
pub(crate) type Told = Option<(ModelToken, u64)>;

/// So many permits there are, when it is asked how many are free.
pub(crate) const OF: u32 = 8;

/// What the model and the rules answer alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Granted,
    Taken,
    Broken,
    Done,
    No,
    /// So many permits.
    Free(u32),
    /// So many leases.
    Broke(usize),
}

impl Said {
    pub(crate) fn done(is_done: bool) -> Self {
        if is_done { Said::Done } else { Said::No }
    }
}

/// The last token by the rules that was used under a lease, as a call tells it by the model's.
pub(crate) fn last_used(call: Call, told: Told) -> u64 {
    let after = match call {
        Call::Release(ask) => ask.counter_after,
        Call::Downgrade { counter_after, .. } => counter_after,
        Call::Adopt(ask) => ask.counter_after,
        _ => 0,
    };
    told.map_or(0, |(token, its)| {
        let used = after - token - 1;
        its + used.unsigned_abs() / 2 * 2
    })
}

fn ticks(count: Ticks) -> Duration {
    Duration::from_secs(count.unsigned_abs().into())
}

fn claim(keys: &[Key], mode: Mode) -> Claim {
    let (mode, prefer) = match mode {
        Mode::Exclusive => (claim::Mode::Exclusive, Prefer::Fair),
        Mode::Writer => (claim::Mode::Exclusive, Prefer::Writers),
        Mode::Read => (claim::Mode::Shared, Prefer::Fair),
        Mode::EagerRead => (claim::Mode::Shared, Prefer::Readers),
        Mode::Permits { count, of } => {
            let (count, of) = (count.into(), of.into());
            (claim::Mode::Permits { count, of }, Prefer::Fair)
        }
    };
    let (key, names) = match keys {
        [key] => (key.clone(), Vec::new()),
        keys => (Key::of_all(keys), keys.to_vec()),
    };
    Claim {
        key,
        names: names.into(),
        mode,
        prefer,
        has_value: false,
    }
}

/// Nobody stores anything.
struct NoValues;

impl Values for NoValues {
    fn load(&self, _key: &Key) -> Result<Stored> {
        Ok(None)
    }

    fn store(&mut self, _key: &Key, _value: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Subject {
    pub(crate) fn new(names: usize, as_in: Place) -> Self {
        let key = |name: usize| Key::new(&Namespace::default(), &name.to_string());
        Subject {
            keys: (0..names)
                .map(|name| key(name).expect("it is valid"))
                .collect(),
            table: Table::default(),
            now: BootInstant::START.plus(Duration::from_secs(1_000)),
            as_in,
        }
    }

    fn keys_of(&self, names: Names) -> &[Key] {
        let first = usize::from(names.first);
        &self.keys[first..first + usize::from(names.count)]
    }

    fn request<T>(
        &mut self,
        ask: Ask,
        call: impl FnOnce(&mut Table, Request<'_>) -> Result<T>,
    ) -> T {
        let (claim, owner) = (
            claim(self.keys_of(ask.names), ask.mode),
            numbered(ask.owner),
        );
        let ttl = ticks(ask.ttl);
        let request = Request {
            claim: &claim,
            owner: &owner,
            ttl,
            granted: None,
        };
        let table = self.table.at(self.now);
        table.set_presence(&owner, Some(presence_of(ask.owner)));
        let answer = call(table, request);
        self.write_down();
        answer.expect("nothing fails")
    }

    fn change(&mut self, ask: Ask, change: Change<'_>) -> Outcome {
        self.request(ask, |table, request| {
            table.change(request, change, &mut NoValues)
        })
    }

    /// Has the owner see the lease that it was given, and renew it: that is all that it does instead of asking.
    fn see(&mut self, ask: Ask) -> Option<Token> {
        let owner = numbered(ask.owner);
        let at = usize::from(ask.names.first);
        let entries = self.states().swap_remove(at).entries;
        let token = entries.iter().find_map(|one| match one.state {
            EntryState::Given(token) if one.is_of(&owner) => Some(token),
            _ => None,
        })?;
        self.table.get_mut(&self.keys[at])?.has_seen(token.number);
        self.renew(ask).is_done().then_some(token)
    }

    fn states(&self) -> Vec<NameState> {
        let states = self.keys.iter().map(|key| self.table.get(key));
        states
            .map(|state| state.cloned().unwrap_or_default())
            .collect()
    }

    fn write_down(&mut self) {
        if self.as_in == Place::Memory {
            return;
        }
        if self.gives() {
            let granted = self.table.take_granted().into_iter();
            // Who wants other names, too, asks for all of them.
            let alone = granted.filter(|one| {
                one.state
                    != EntryState::Waits {
                        first: false,
                        more: true,
                    }
            });
            for owner in alone.filter_map(|one| one.owner) {
                self.keys
                    .iter()
                    .for_each(|key| self.table.give(key, &owner));
            }
        }
        let (states, last_used) = (self.states(), self.table.last_used());
        self.table = Table::default();
        for (key, state) in self.keys.iter().zip(states) {
            self.table.put(key, state, last_used);
        }
    }

    /// Whether those that wait may get their tokens in another order than that in which they hear of them.
    pub(crate) fn gives(&self) -> bool {
        self.as_in == Place::GivingFile
    }

    /// Calls the rules as the model is called. Gives the token as well, if there is one.
    pub(crate) fn call(&mut self, names: Names, call: Call, told: Told) -> (Said, Option<u64>) {
        let (owner, mode, ttl) = call.asker().unwrap_or((0, Mode::Exclusive, 0));
        let ask = Ask {
            owner,
            names,
            mode,
            ttl,
        };
        let last_used = last_used(call, told);
        match call {
            Call::Acquire(one) => self.acquire(ask, one.wait.is_some()),
            Call::Renew(_) => match self.renew(ask) {
                Outcome::BROKEN => (Said::Broken, None),
                renewed => (Said::done(renewed.is_done()), None),
            },
            Call::Release(one) => (self.release(ask, one, told, last_used), None),
            Call::Downgrade { .. } => {
                let value = None;
                passed_on(self.change(ask, Change::Downgrade { last_used, value }))
            }
            Call::Adopt(one) => {
                let from = &numbered(one.from);
                passed_on(self.change(ask, Change::Adopt { from, last_used }))
            }
            Call::Permits => {
                let key = &self.keys_of(names)[0];
                (Said::Free(self.table.free_permits(key, OF, self.now)), None)
            }
            Call::Break => {
                let key = self.keys_of(names)[0].clone();
                let broken = self.table.at(self.now).break_lock(&key);
                self.write_down();
                (Said::Broke(broken.holders.len()), None)
            }
        }
    }

    fn acquire(&mut self, ask: Ask, waits: bool) -> (Said, Option<u64>) {
        if let Some(token) = self.see(ask) {
            return (Said::Granted, Some(token.number));
        }
        match self.request(ask, |table, request| table.ask(request, waits, &NoValues)) {
            Answer::Granted(grant) => (Said::Granted, Some(grant.token.number)),
            Answer::Taken { .. } => (Said::Taken, None),
            Answer::Broken => (Said::Broken, None),
        }
    }

    fn release(&mut self, ask: Ask, call: ReleaseCall, told: Told, last_used: u64) -> Said {
        let is_known = told.filter(|_| call.counter_after > 0);
        // After a panic the counter is one more.
        let ending = match is_known.map(|(token, _)| (call.counter_after - token) % 2) {
            None => Ending::Unknown,
            Some(0) => Ending::Panicked { last_used },
            Some(_) => Ending::Clean { last_used },
        };
        let release = Release {
            ending,
            keep: ticks(call.keep.unwrap_or(0)),
            ..Release::UNKNOWN
        };
        Said::done(self.change(ask, Change::Release(release)).is_done())
    }

    fn renew(&mut self, ask: Ask) -> Outcome {
        let change = match ask.ttl {
            0 => Change::Verify,
            _ => Change::Renew,
        };
        self.change(ask, change)
    }

    pub(crate) fn tick(&mut self) {
        self.now = self.now.plus(ticks(1));
    }

    /// The process of an owner has ended.
    pub(crate) fn die(&mut self, owner: u8) {
        let gone = BTreeSet::from([presence_of(owner)]);
        self.table.at(self.now).end(&gone);
        self.write_down();
    }

    /// Of each name, those to whom it was granted, and who don't know it.
    pub(crate) fn unaware(&self) -> Vec<Vec<u8>> {
        let is_one = |one: &&Entry| matches!(one.state, EntryState::Granted | EntryState::Given(_));
        let of_one = |entries: &Vec<Entry>| {
            let granted = entries.iter().filter(is_one);
            granted.filter_map(number).collect()
        };
        self.entries().iter().map(of_one).collect()
    }

    /// Of each name.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.entries()
            .iter()
            .map(|entries| Seen::of(entries))
            .collect()
    }

    fn entries(&self) -> Vec<Vec<Entry>> {
        let still = |one: &Entry| self.now < one.until;
        let states = self.states().into_iter();
        states
            .map(|state| state.entries.into_iter().filter(still).collect())
            .collect()
    }
}

impl Seen {
    fn of(entries: &[Entry]) -> Self {
        let mut seen = Seen::default();
        for entry in entries {
            let list = match (entry.state, entry.mode) {
                (EntryState::Kept, _) => {
                    seen.is_kept = true;
                    continue;
                }
                (EntryState::Broken, _) => continue,
                (EntryState::Waits { .. }, claim::Mode::Shared) => &mut seen.readers,
                (EntryState::Waits { .. }, _) => &mut seen.queue,
                _ => &mut seen.holders,
            };
            list.extend(number(entry));
        }
        seen.holders.sort_unstable();
        seen
    }

    /// Those that have it, and those that wait.
    pub(crate) fn all(&self) -> impl Iterator<Item = u8> {
        let lists = [&self.holders, &self.queue, &self.readers].into_iter();
        lists.flatten().copied()
    }
}

fn number(entry: &Entry) -> Option<u8> {
    entry.owner.as_ref().map(number_of)
}

fn passed_on(outcome: Outcome) -> (Said, Option<u64>) {
    match outcome {
        Outcome::Done(done) => (Said::Granted, done.token.map(|token| token.number)),
        Outcome::Gone(_) => (Said::No, None),
    }
}

fn presence_of(owner: u8) -> PresenceId {
    PresenceId(owner.into())
}

fn numbered(number: u8) -> Owner {
    Owner::from_text(&number.to_string())
}

fn number_of(owner: &Owner) -> u8 {
    owner.as_str().parse().expect("it is a number")
}
