//! Random steps of several owners, and what always holds.

use proptest::prelude::*;

use super::*;

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
    /// All that wait keep their promises.
    Beat,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..OWNERS).prop_map(Step::Try),
        6 => (0..OWNERS).prop_map(Step::Wait),
        2 => (0..OWNERS).prop_map(Step::Renew),
        4 => (0..OWNERS).prop_map(Step::Release),
        1 => (0..OWNERS).prop_map(Step::GiveUp),
        1 => (0..OWNERS).prop_map(Step::Downgrade),
        2 => (1..7_000u64).prop_map(Step::Pass),
        2 => Just(Step::Beat),
    ];
    prop::collection::vec(step, 1..60)
}

/// How each owner wants the one name, and who goes first.
fn claims() -> impl Strategy<Value = [(Mode, Prefer); OWNERS]> {
    let mode = prop_oneof![
        3 => Just(WRITE),
        3 => Just(READ),
        2 => (1..=PERMITS).prop_map(|count| permits(count, PERMITS)),
    ];
    let prefer = prop_oneof![
        3 => Just(Prefer::Nobody),
        1 => Just(Prefer::Readers),
        1 => Just(Prefer::Writers),
    ];
    (prop::array::uniform6(mode), prefer).prop_map(|(modes, prefer)| modes.map(|m| (m, prefer)))
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
            Step::Beat => {
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
            self.step(&Step::Beat);
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

proptest! {
    #[test]
    fn rules_hold_whatever_the_owners_do(claims in claims(), steps in steps()) {
        let mut play = Play::new(claims);
        for step in &steps {
            play.step(step);
            play.check();
        }
        play.ends();
        // Nothing stays but what was abandoned.
        play.world.passes(Duration::from_secs(25 * 3600));
        let last = Client::new(WRITE);
        play.world.takes(&last);
        play.world.ends(&last);
        prop_assert_eq!(play.world.names(), 0);
    }
}
