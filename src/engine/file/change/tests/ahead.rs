//! Whose end a waiter waits for.

use std::time::Duration;

use crate::base::claim::{Claim, Mode};
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::random::for_any;
use crate::base::token::Token;
use crate::engine::Request;
use crate::engine::rules::{Entry, Standing, Table, Written};

const NOW: BootInstant = BootInstant::START;

fn entry(standing: Standing, mode: Mode) -> Entry {
    Entry {
        owner: Some(Owner::new()),
        standing,
        mode,
        since: NOW,
        until: BootInstant::MAX,
    }
}

#[test]
fn those_ahead_are_the_same_for_one_and_for_all() {
    const MODES: [Mode; 3] = [
        Mode::Exclusive,
        Mode::Shared,
        Mode::Permits { count: 1, of: 2 },
    ];
    for_any(|random| {
        let mode = random.one_of(&MODES);
        let holders = if mode == Mode::Exclusive { 1 } else { 2 };
        let has = Standing::Has(Token::from_number(1));
        let mut entries: Vec<_> = (0..random.usize(..=holders))
            .map(|_| entry(has, mode))
            .collect();
        for _ in 0..random.usize(..6) {
            let waits = Standing::Waits {
                first: random.bool(),
                more: random.bool(),
            };
            entries.push(entry(waits, random.one_of(&MODES)));
        }
        let written = Written {
            entries: entries.clone(),
            ..Written::default()
        };
        let mut claim = Claim::exclusive("test", "a");
        let (key, mut table) = (claim.key.clone(), Table::default());
        table.put(&key, written, NOW);
        let waiting = table.waiting(&key);
        let those = entries
            .iter()
            .filter(|one| matches!(one.standing, Standing::Waits { .. }));
        assert_eq!(those.clone().count(), waiting.len());
        for (one, (owner, ahead)) in those.zip(waiting) {
            claim.mode = one.mode;
            let request = Request {
                claim: &claim,
                owner: &owner,
                ttl: Duration::MAX,
                granted: None,
            };
            assert_eq!(one.owner.as_ref(), Some(&owner));
            assert_eq!(table.ahead_of(request), ahead, "{entries:?}");
        }
    });
}
