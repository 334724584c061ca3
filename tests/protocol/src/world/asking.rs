//! A client that wants a lock: what `src/asker.rs` does.

use super::{Body, EVERY, Lease, News, PROMISE, Packet, Phase, Reply, Seen, TRIES, TTL, World};
use crate::mutant::Mutant;
use crate::server::{Acquire, Call, Ear, Mode, Release, Ticks, Token, Wait};
use crate::setup::{Patience, Setup};

/// How far apart the owners of one acquisition are.
const ANOTHER: u8 = 64;

impl World {
    pub(super) fn begin(&mut self, setup: &Setup, client: usize) {
        let one = &mut self.clients[client];
        one.owner = Setup::owner(client, one.step);
        (one.seen, one.news) = (None, None);
        self.judge.watches[client] = Default::default();
        match self.want(setup, client).patience {
            Patience::Adopt => self.adopt(setup, client),
            patience => self.ask(setup, client, patience != Patience::Try),
        }
    }

    /// Without waiting it leaves the line if it is in it.
    pub(super) fn ask(&mut self, setup: &Setup, client: usize, waits: bool) {
        let (want, owner) = (self.want(setup, client), self.clients[client].owner);
        // A connection that the server doesn't know to be gone, its client doesn't know to be gone either.
        let inbox = (self.ears[client] != Ear::Gone).then(|| Self::inbox(client));
        let wait = waits.then_some(Wait {
            promise: PROMISE,
            inbox,
        });
        self.clients[client].phase = Phase::Asking { waits, age: 0 };
        self.request(
            client,
            Call::Acquire(Acquire {
                owner,
                ttl: TTL,
                mode: want.mode,
                wait,
                valued: false,
            }),
        );
    }

    /// Its question wasn't answered in time.
    pub(super) fn ask_again(&mut self, setup: &Setup, client: usize, waits: bool) {
        self.close(setup, client);
        if setup.is(Mutant::NewOwnerOnRetry) {
            self.take_another_owner(client);
        }
        self.ask(setup, client, waits);
    }

    fn take_another_owner(&mut self, client: usize) {
        self.clients[client].owner = (self.clients[client].owner + ANOTHER) % (3 * ANOTHER);
    }

    /// Its lease was broken before it knew that it had it: it begins anew, by another owner, as if it had just come.
    fn begin_anew(&mut self, setup: &Setup, client: usize, waits: bool) {
        self.judge_finish(setup, client, false);
        self.take_another_owner(client);
        self.clients[client].seen = None;
        self.stop_hearing(client);
        self.judge.watches[client] = Default::default();
        self.ask(setup, client, waits);
    }

    pub(super) fn answered(&mut self, setup: &Setup, packet: Packet, reply: Reply) {
        let client = usize::from(packet.client);
        let phase = self.clients[client].phase;
        match (phase, reply) {
            (Phase::Asking { age, waits }, Reply::Granted(token)) => {
                let from_reply = setup.is(Mutant::ValidityFromReply);
                let valid = if from_reply { TTL } else { TTL - age };
                if valid > 0 {
                    self.hold(setup, client, token, valid, age);
                } else {
                    // Asked again at once, the same owner gets a new lease.
                    self.ask(setup, client, waits);
                }
            }
            (Phase::Adopting { .. }, Reply::Adopted(0)) => self.finish(setup, client, false),
            (Phase::Adopting { age }, Reply::Adopted(token)) => {
                if age < TTL {
                    self.hold(setup, client, token, TTL - age, age);
                } else {
                    self.adopt(setup, client);
                }
            }
            (Phase::Asking { age, waits }, Reply::Taken { counter }) => {
                self.clients[client].seen = Some(Seen { age, counter });
                if waits {
                    self.clients[client].phase = Phase::Waiting { due: EVERY };
                    self.look_at_news(setup, client);
                } else {
                    self.finish(setup, client, false);
                }
            }
            (Phase::Asking { .. }, Reply::Broken) if setup.is(Mutant::BrokenKeepTheirOwner) => {
                self.clients[client].phase = Phase::Waiting { due: EVERY };
            }
            (Phase::Asking { waits, .. }, Reply::Broken) => self.begin_anew(setup, client, waits),
            (Phase::GivingUp { .. }, Reply::Released(_)) => self.finish(setup, client, false),
            _ => self.answered_holder(setup, client, reply),
        }
    }

    /// A grant reached the inbox. Only the first of what there is to be heard stays.
    pub(super) fn granted(&mut self, setup: &Setup, packet: Packet, token: Token) {
        let client = usize::from(packet.client);
        let one = &mut self.clients[client];
        let wants = matches!(one.phase, Phase::Asking { .. } | Phase::Waiting { .. });
        if !wants || one.owner != packet.owner {
            return;
        }
        let news = if token == 0 {
            News::Ask
        } else {
            News::Granted(token)
        };
        one.news.get_or_insert(news);
        self.look_at_news(setup, client);
    }

    pub(super) fn look_at_news(&mut self, setup: &Setup, client: usize) {
        let Phase::Waiting { .. } = self.clients[client].phase else {
            return;
        };
        let (news, seen) = (self.clients[client].news.take(), self.clients[client].seen);
        let has_many = self.want(setup, client).names.count > 1;
        match (news, seen) {
            (None, _) => return,
            (Some(News::Granted(token)), Some(seen)) if !has_many => {
                let valid = TTL - seen.age;
                let is_fresh = 2 * valid >= TTL;
                let unchecked = setup.is(Mutant::GrantNotChecked);
                if unchecked || (token > seen.counter && is_fresh) {
                    let valid = if unchecked { TTL } else { valid };
                    self.hold(setup, client, token, valid, seen.age);
                    return;
                }
            }
            _ => {}
        }
        self.clients[client].phase = Phase::Waiting { due: 0 };
    }

    /// It has the lock: the question that its lease counts from is so old.
    fn hold(&mut self, setup: &Setup, client: usize, token: Token, valid: Ticks, age: Ticks) {
        let mode = self.want(setup, client).mode.held();
        self.clients[client].phase = Phase::Holding(Lease {
            token,
            mode,
            valid,
            due: (EVERY - age).max(0),
            renewing: None,
            refused: false,
            hand_overs: 0,
        });
        self.clients[client].seen = None;
        self.stop_hearing(client);
        self.judge_guard(setup, client, false);
    }

    /// It doesn't wait any longer, and can't know what it was granted.
    pub(super) fn give_up(&mut self, setup: &Setup, client: usize) {
        self.close(setup, client);
        if setup.is(Mutant::NothingIsTakenBack) {
            self.finish(setup, client, false);
            return;
        }
        let mode = self.want(setup, client).mode.held();
        self.take_back(setup, client, mode, 0);
    }

    pub(super) fn take_back(&mut self, setup: &Setup, client: usize, mode: Mode, tries: u8) {
        self.close(setup, client);
        if tries == TRIES {
            self.finish(setup, client, true);
            return;
        }
        let owner = self.clients[client].owner;
        self.clients[client].seen = None;
        self.stop_hearing(client);
        self.clients[client].phase = Phase::GivingUp {
            age: 0,
            tries,
            mode,
        };
        self.request(client, Call::Release(Release::unknown(owner, mode)));
    }

    /// An acquisition is over. `left`: what it had is left to its ttl.
    pub(super) fn finish(&mut self, setup: &Setup, client: usize, left: bool) {
        self.judge_finish(setup, client, left);
        self.leave_acquisition(client);
    }

    pub(super) fn leave_acquisition(&mut self, client: usize) {
        let one = &mut self.clients[client];
        one.step += 1;
        one.phase = Phase::Idle;
        one.seen = None;
        self.stop_hearing(client);
        let is_told = |packet: &Packet| matches!(packet.body, Body::Revoked(_));
        self.wire
            .retain(|packet| usize::from(packet.client) != client || !is_told(packet));
    }
}
