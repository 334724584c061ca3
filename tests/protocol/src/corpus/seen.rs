//! What there is to see after a step, in the words of the corpus.

use crate::server::{
    Acquired, Answer, BROADCAST, Message, Name, Owner, Released, Renewed, Says, Token,
};

use super::After;

/// The word of what was answered.
pub(super) const ANSWER: &str = "answer";

/// How it is, as the corpus has it, for an owner that was told `last` before.
pub(super) fn seen(after: &After<'_>, at: usize, word: &str, last: Option<Token>) -> String {
    let name = &after.names[at];
    let told = |is_one: fn(&Message) -> bool| {
        let all = after.messages.iter().filter(|one| is_one(one));
        letters(all.map(|one| one.owner))
    };
    let taken = match after.answer {
        Some(Answer::Acquired(Acquired::Taken(taken))) => Some(taken),
        _ => None,
    };
    match word {
        ANSWER => after
            .answer
            .map_or("nothing".to_owned(), |answer| said(answer, last)),
        "has" => holders(name),
        "queue" => letters(name.queue.iter().copied()),
        "readers" => letters(name.readers.iter().copied()),
        "lasts" => match name.lock.map(|lock| lock.lasts) {
            Some(Some(ticks)) => ticks.to_string(),
            Some(None) => "for ever".to_owned(),
            None => "-".to_owned(),
        },
        "value" => number(name.value),
        "tells" => told(|one| one.inbox != BROADCAST && one.token > 0),
        "wakes" => told(|one| one.inbox != BROADCAST && one.token == 0),
        "revokes" => told(|one| one.inbox == BROADCAST),
        "found" => match after.answer {
            Some(Answer::Acquired(Acquired::Granted {
                value: Some(value), ..
            })) => number(value),
            other => format!("nothing in {other:?}"),
        },
        "holder" => match taken {
            Some(taken) if !taken.known => "unknown".to_owned(),
            taken => letters(taken.and_then(|taken| taken.holder)),
        },
        "left" => taken.map_or("-".to_owned(), |taken| format!("{:?}", taken.remaining)),
        other => panic!("the corpus has no word {other:?}"),
    }
}

/// The token that an answer gives.
pub(super) fn token(answer: Answer) -> Option<Token> {
    match answer {
        Answer::Acquired(Acquired::Granted { token, .. }) => Some(token),
        Answer::Downgraded(token) | Answer::Adopted(token) => {
            Some(token).filter(|token| *token > 0)
        }
        _ => None,
    }
}

fn said(answer: Answer, last: Option<Token>) -> String {
    let text = match answer {
        _ if token(answer).is_some() && token(answer) == last => "same",
        _ if token(answer).is_some_and(|token| token % 4 == 3) => "abandoned",
        _ if token(answer).is_some() => "got",
        Answer::Acquired(Acquired::Broken)
        | Answer::Renewed(Renewed::Broken)
        | Answer::Released(Released::Broken) => "broken",
        Answer::Acquired(_) => "taken",
        Answer::Renewed(Renewed::Done) | Answer::Released(Released::Done) => "done",
        Answer::Released(Released::Unclear) => "unclear",
        Answer::Renewed(_) | Answer::Released(_) | Answer::Downgraded(_) | Answer::Adopted(_) => {
            "no"
        }
        Answer::Permits(out) => return out.to_string(),
        Answer::Broke(broke) => return broke.holders.to_string(),
    };
    text.to_owned()
}

/// Who has it, or what keeps others out.
fn holders(name: &Name) -> String {
    match name.lock.map(|lock| lock.says) {
        None => "-".to_owned(),
        Some(Says::Foreign) => "foreign".to_owned(),
        Some(Says::Kept) => "kept".to_owned(),
        Some(_) if name.is_kept() => format!("kept {}", letters(name.holders())),
        Some(_) => letters(name.holders()),
    }
}

/// As owners are called, one after the other.
fn letters(owners: impl IntoIterator<Item = Owner>) -> String {
    let letters = owners
        .into_iter()
        .map(|owner| char::from(b'a' + owner).to_string());
    let letters: Vec<_> = letters.collect();
    if letters.is_empty() {
        "-".to_owned()
    } else {
        letters.join(" ")
    }
}

fn number(value: Option<u16>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}
