//! `lua/all/`: several names, all or none.

use super::release::Released;
use super::{
    Acquire, Acquired, Counter, Mode, Name, Release, Remaining, Renew, Renewed, Server, Taken,
    Token,
};

pub fn acquire_all(names: &mut [Name], ask: Acquire, server: &mut Server) -> Acquired {
    let knows = |name: &&Name| name.owner() == Some(ask.owner) || name.waiter(ask.owner).is_some();
    let mut known = names.iter().filter(knows).count();
    if known > 0 && known < names.len() {
        leave_all(names, ask, server);
        known = 0;
    }
    let mut asked = ask_all(names, ask, server);
    let lost_place = !asked.is_broken && (asked.entered || is_stuck(names, &asked));
    if ask.wait.is_some() && asked.taken.is_some() && known > 0 && lost_place {
        leave_all(names, ask, server);
        known = 0;
        asked = ask_all(names, ask, server);
    }
    if asked.is_broken {
        give_up(names, ask, server);
        return Acquired::Broken;
    }
    answer(names, ask, asked, known, server)
}

/// What the names answered, as one answer. The owner is known in `known` of them.
fn answer(
    names: &mut [Name],
    ask: Acquire,
    asked: Asked,
    known: usize,
    server: &mut Server,
) -> Acquired {
    let Asked { tokens, taken, .. } = asked;
    let token = tokens.iter().flatten().copied().max().unwrap_or(0);
    let Some(mut taken) = taken else {
        let token = count_together(names, tokens, token);
        return Acquired::Granted { token, value: None };
    };
    if ask.wait.is_none() {
        give_up(names, ask, server);
    }
    taken.stood = known > 0;
    if tokens.iter().any(Option::is_some) {
        taken.length = 0;
    }
    Acquired::Taken(taken)
}

/// Gives all names one token, no smaller than `largest`, which tells that somebody has died if one of theirs does.
fn count_together(names: &mut [Name], tokens: [Option<Token>; 4], largest: Token) -> Token {
    let mut token = largest;
    if tokens.iter().flatten().any(|one| one.rem_euclid(4) == 3) {
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
    token
}

/// What the names answered, one after the other.
#[derive(Default)]
struct Asked {
    tokens: [Option<Token>; 4],
    taken: Option<Taken>,
    /// Whether a line was entered in which the owner didn't stand.
    entered: bool,
    /// Whether its lease of a name was broken.
    is_broken: bool,
}

fn ask_all(names: &mut [Name], ask: Acquire, server: &mut Server) -> Asked {
    let mut asked = Asked::default();
    for (name, its) in names.iter_mut().zip(&mut asked.tokens) {
        if asked.taken.is_some() && ask.wait.is_none() {
            break;
        }
        match name.acquire(ask, server) {
            Acquired::Granted { token, .. } => *its = Some(token),
            Acquired::Taken(answer) => {
                asked.entered |= !answer.stood;
                asked.taken = Some(join(asked.taken, answer));
            }
            Acquired::Broken => {
                asked.is_broken = true;
                break;
            }
        }
    }
    asked
}

/// Whether the first that is taken is another's who waits for one that the owner has.
fn is_stuck(names: &[Name], asked: &Asked) -> bool {
    let mut all = names.iter().zip(&asked.tokens);
    let first = all.find(|(name, its)| its.is_none() && name.lock.is_some());
    let holder = first.and_then(|(name, _)| name.owner());
    let its = names.iter().zip(&asked.tokens);
    let mut its = its.filter(|(_, its)| its.is_some());
    holder.is_some_and(|holder| its.any(|(name, _)| name.waiter(holder).is_some()))
}

/// Its place in one line was lost with a key: it may stand before another there, and behind it elsewhere.
fn leave_all(names: &mut [Name], ask: Acquire, server: &mut Server) {
    give_up(names, ask, server);
    for name in names {
        name.queue.retain(|one| *one != ask.owner);
    }
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

fn give_up(names: &mut [Name], ask: Acquire, server: &mut Server) {
    for name in names {
        name.release(Release::unknown(ask.owner, Mode::Exclusive), server);
    }
}

pub fn release_all(names: &mut [Name], ask: Release, server: &mut Server) -> Released {
    let mut released = Released::Done;
    for name in names {
        let answer = name.release(ask, server);
        let is_worse = match answer {
            Released::Broken => true,
            Released::NotOwner => released != Released::Broken,
            _ => false,
        };
        if is_worse || released == Released::Done {
            released = answer;
        }
    }
    released
}

pub fn renew_all(names: &mut [Name], ask: Renew) -> Renewed {
    let look = Renew { ttl: 0, ..ask };
    for name in names.iter_mut() {
        let renewed = name.renew(look);
        if renewed != Renewed::Done {
            return renewed;
        }
    }
    for name in names {
        name.renew(ask);
    }
    Renewed::Done
}
