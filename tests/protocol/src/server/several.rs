//! `all_acquire.lua`, `all_release.lua` and `all_renew.lua`: several names, all or none.

use super::release::Released;
use super::{
    Acquire, Acquired, Counter, Messages, Mode, Name, Release, Remaining, Renew, Server, Taken,
    Token,
};
use crate::mutant::Mutant;

pub fn acquire_all(
    names: &mut [Name],
    ask: Acquire,
    server: Server<'_>,
    out: &mut Messages,
) -> Acquired {
    let knows = |name: &&Name| name.owner() == Some(ask.owner) || name.waiter(ask.owner).is_some();
    let known = names.iter().filter(knows).count();
    let lost_some = known > 0 && known < names.len();
    if lost_some && server.mutant != Some(Mutant::SomeAreKept) {
        give_up(names, ask, server, out);
    }
    let stood = known > 0 && !lost_some;
    let mut tokens: [Option<Token>; 4] = [None; 4];
    let (mut token, mut abandoned, mut taken) = (0, false, None);
    for (name, its) in names.iter_mut().zip(&mut tokens) {
        if taken.is_some() && ask.wait.is_none() {
            break;
        }
        match name.acquire(ask, server, out) {
            Acquired::Granted { token: new, .. } => {
                *its = Some(new);
                token = token.max(new);
                abandoned |= new.rem_euclid(4) == 3;
            }
            Acquired::Taken(answer) => taken = Some(join(taken, answer)),
        }
    }
    if let Some(mut taken) = taken {
        if ask.wait.is_none() {
            give_up(names, ask, server, out);
        }
        taken.stood = stood;
        if tokens.iter().any(Option::is_some) {
            taken.length = 0;
            if server.mutant == Some(Mutant::SomeAreEnough) {
                return Acquired::Granted { token, value: None };
            }
        }
        return Acquired::Taken(taken);
    }
    if abandoned {
        token += (3 - token).rem_euclid(8);
    }
    for (name, its) in names.iter_mut().zip(tokens) {
        if its != Some(token) {
            let letters = name.counter.map(|counter| counter.letters);
            name.counter = Some(Counter {
                number: token,
                letters: letters.unwrap_or_default(),
            });
        }
    }
    Acquired::Granted { token, value: None }
}

/// What is said of several that are taken: of the next that may come free, and the longest line.
fn join(so_far: Option<Taken>, answer: Taken) -> Taken {
    let Some(mut taken) = so_far else {
        return answer;
    };
    if let Remaining::Ticks(remaining) = answer.remaining {
        let is_sooner = match taken.remaining {
            Remaining::Ticks(sooner) => remaining < sooner,
            _ => true,
        };
        if is_sooner {
            taken.remaining = answer.remaining;
        }
    }
    taken.known &= answer.known;
    taken.length = taken.length.max(answer.length);
    taken
}

fn give_up(names: &mut [Name], ask: Acquire, server: Server<'_>, out: &mut Messages) {
    for name in names {
        name.release(
            Release {
                owner: ask.owner,
                counter_after: 0,
                mode: Mode::Exclusive,
                value: None,
                keep: None,
            },
            server,
            out,
        );
    }
}

pub fn release_all(
    names: &mut [Name],
    ask: Release,
    server: Server<'_>,
    out: &mut Messages,
) -> Released {
    let mut released = Released::Done;
    for name in names {
        let answer = name.release(ask, server, out);
        if answer == Released::NotOwner || released == Released::Done {
            released = answer;
        }
    }
    released
}

pub fn renew_all(names: &mut [Name], ask: Renew, server: Server<'_>) -> bool {
    let look = Renew { ttl: 0, ..ask };
    let all = names.iter_mut().all(|name| name.renew(look, server));
    if all {
        for name in names {
            name.renew(ask, server);
        }
    }
    all
}
