//! Random steps of several owners, and what always holds.

use super::*;
use crate::base::random::{Random, for_any};

const OWNERS: usize = 6;
const PERMITS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Try(usize),
    Wait(usize),
    Renew(usize),
    Release(usize),
    GiveUp(usize),
    Downgrade(usize),
    /// Milliseconds pass.
    Pass(u64),
    /// All that wait ask again.
    AskAgain,
}

fn any_step(random: &mut Random) -> Step {
    let one = random.usize(..OWNERS);
    match random.u32(..21) {
        0..3 => Step::Try(one),
        3..9 => Step::Wait(one),
        9..11 => Step::Renew(one),
        11..15 => Step::Release(one),
        15 => Step::GiveUp(one),
        16 => Step::Downgrade(one),
        17..19 => Step::Pass(random.u64(1..7_000)),
        _ => Step::AskAgain,
    }
}

fn any_mode(random: &mut Random) -> Mode {
    match random.u32(..8) {
        0..3 => WRITE,
        3..6 => READ,
        _ => permits(random.u32(1..=PERMITS), PERMITS),
    }
}

/// How each owner wants the one name, and who goes first.
fn any_claims(random: &mut Random) -> [(Mode, Prefer); OWNERS] {
    use Prefer::{Fair, Readers, Writers};
    let prefer = random.one_of(&[Fair, Fair, Fair, Readers, Writers]);
    [(); OWNERS].map(|()| (any_mode(random), prefer))
}

/// What an owner knows of itself.
struct Known {
    client: Client,
    /// Its last token while it may have a lease.
    token: Option<Token>,
    waits: bool,
}

struct Play {
    world: World,
    known: Vec<Known>,
    largest: u64,
}

impl Play {
    fn new(claims: [(Mode, Prefer); OWNERS]) -> Self {
        let known = claims.map(|(mode, prefer)| Known {
            client: Client::preferring(mode, prefer),
            token: None,
            waits: false,
        });
        Play {
            world: World::new(),
            known: known.into(),
            largest: 0,
        }
    }

    /// It starts anew as another owner: each is used for one acquisition.
    fn renamed(&mut self, one: usize) {
        let Known {
            client,
            token,
            waits,
        } = &mut self.known[one];
        (client.owner, *token, *waits) = (Owner::new(), None, false);
    }

    fn asks(&mut self, one: usize, waits: bool) {
        let known = &mut self.known[one];
        let had = known.token.filter(|_| self.world.is_owner(&known.client));
        let token = if waits {
            self.world.waits(&known.client)
        } else {
            self.world.tries(&known.client)
        };
        if token.is_none() || token != had {
            assert_eq!(had, None, "what it had it has");
            if let Some(token) = token {
                assert!(token.number > self.largest, "tokens increase");
                self.largest = token.number;
            }
        }
        (known.token, known.waits) = (token, waits && token.is_none());
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Try(one) => self.asks(one, false),
            Step::Wait(one) => self.asks(one, true),
            Step::Renew(one) => {
                let held = self.world.is_owner(&self.known[one].client);
                assert_eq!(self.world.renews(&self.known[one].client), held);
            }
            Step::Release(one) => {
                let Known { client, token, .. } = &self.known[one];
                if let Some(token) = token {
                    let held = self.world.is_owner(client);
                    assert_eq!(self.world.release(client, Some(token.number)), held);
                    self.renamed(one);
                }
            }
            Step::GiveUp(one) => {
                self.world.gives_up(&self.known[one].client);
                self.renamed(one);
            }
            Step::Downgrade(one) => self.downgrades(one),
            Step::Pass(millis) => self.world.passes(Duration::from_millis(millis)),
            Step::AskAgain => {
                for one in 0..OWNERS {
                    if self.known[one].waits {
                        self.asks(one, true);
                    }
                }
            }
        }
    }

    fn downgrades(&mut self, one: usize) {
        let Known { client, token, .. } = &self.known[one];
        let (WRITE, Some(token)) = (client.claim.mode, *token) else {
            return;
        };
        let held = self.world.is_owner(client);
        let reads = self.world.downgrades(client, token.number);
        assert_eq!(reads.is_some(), held);
        if let Some(reads) = reads {
            assert!(reads.number > self.largest);
            self.largest = reads.number;
            // From here on it is one that reads, for as long as it lives.
            self.known[one].client = client.reading();
            self.known[one].token = Some(reads);
        }
    }

    fn check(&mut self) {
        let held: Vec<_> = self
            .known
            .iter()
            .filter(|one| self.world.is_owner(&one.client))
            .collect();
        let count = |is_one: fn(Mode) -> bool| {
            held.iter()
                .filter(|one| is_one(one.client.claim.mode))
                .count()
        };
        let writers = count(|mode| mode == WRITE);
        let readers = count(|mode| mode == READ);
        assert!(writers == 0 || held.len() == 1, "a writer is alone");
        assert!(
            readers == 0 || readers == held.len(),
            "readers are among themselves"
        );
        let used: u32 = held
            .iter()
            .map(|one| match one.client.claim.mode {
                Mode::Permits { count, .. } => count,
                _ => 0,
            })
            .sum();
        assert!(used <= PERMITS, "there are no more permits");
        let free = self.world.free(PERMITS);
        assert!(free + used <= PERMITS);
        if held.len() == writers + readers && !held.is_empty() {
            assert_eq!(free, 0);
        }
    }

    /// Whoever waits has the lock some time, when those that have it end.
    fn ends(&mut self) {
        for _ in 0..2 * OWNERS {
            for one in 0..OWNERS {
                if self.known[one].token.is_some() {
                    self.step(&Step::Release(one));
                }
            }
            let waits = self.known.iter().filter(|one| one.waits).count();
            self.step(&Step::AskAgain);
            self.check();
            let still = self.known.iter().filter(|one| one.waits).count();
            assert!(
                waits == 0 || still < waits,
                "nobody is let in to what is free"
            );
        }
        assert!(
            self.known
                .iter()
                .all(|one| !one.waits && one.token.is_none())
        );
    }
}

#[test]
fn rules_hold_whatever_the_owners_do() {
    for_any(|random| {
        let mut play = Play::new(any_claims(random));
        for step in random.list(1..=59, any_step) {
            play.step(&step);
            play.check();
        }
        play.ends();
        // Nothing stays but what was abandoned.
        play.world.passes(Duration::from_secs(25 * 3600));
        let last = Client::new(WRITE);
        play.world.takes(&last);
        play.world.ends(&last);
        assert_eq!(play.world.names(), 0);
    });
}
