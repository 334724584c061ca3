//! How a server has what a model has.

use crosslock_protocol::server::{
    BROADCAST, Counter, Lock, Message, Name, Owner, Says, Share, Ticks, Token, Waiter,
};

/// In milliseconds, as all that a server knows of time but its clock.
pub(super) const TICK: i64 = 1_000_000;
pub(super) const FOREIGN: &str = "foreign";
/// The channel on which all hear of leases that were broken.
pub(super) const BROKEN: &str = "inbox:broken";
/// How many keys a name has, in the order of the scripts.
pub(super) const KEYS: usize = 7;
/// How many lines tell of a name: the lock, the counter, broken leases, both queues, waiters, shares and the value.
const LINES: usize = 8;
const COUNTER: usize = 1;
/// The parts of these lines have no order.
const SETS: [usize; 3] = [2, 5, 6];

/// All that a server holds, and its clock in microseconds.
pub(super) struct Seen {
    pub(super) micros: Token,
    pub(super) names: Vec<Vec<String>>,
}

/// The keys of a name; or, of a `copy`, of what a replica has of it.
pub(super) fn keys_of(kind: &str, name: usize) -> [String; KEYS] {
    let suffixes = [
        "",
        ":fence",
        ":queue",
        ":waiters",
        ":read_queue",
        ":holders",
        ":value",
    ];
    suffixes.map(|suffix| format!("{{{kind}:{name}}}{suffix}"))
}

/// How long an owner's id is, which begins it.
const ID: usize = "00000000-0000-4000-8000-000000000000".len();

pub(super) fn text_of(owner: Owner) -> String {
    format!("{owner:08x}-0000-4000-8000-000000000000/host/{owner}/main")
}

/// As those that wait are told who holds a lock: without what proves that it is the owner.
pub(super) fn public_text_of(owner: Owner) -> String {
    text_of(owner)[ID + 1..].to_owned()
}

pub(super) fn channel_of(inbox: usize) -> String {
    format!("inbox:{inbox}")
}

/// Its channel, and what is published there.
pub(super) fn published(message: &Message) -> (String, String) {
    let channel = match message.inbox {
        BROADCAST => BROKEN.to_owned(),
        inbox => channel_of(inbox.into()),
    };
    (
        channel,
        format!("{} {}", text_of(message.owner), message.token),
    )
}

pub(super) fn millis(ticks: Ticks) -> String {
    (i64::from(ticks) * TICK).to_string()
}

impl Seen {
    /// Reads what `look.lua` gives.
    pub(super) fn of(text: &str) -> Self {
        let mut lines = text.split('\n').map(str::to_owned);
        let micros = lines.next().expect("the clock");
        let lines: Vec<_> = lines.collect();
        Seen {
            micros: micros.parse().expect("a time"),
            names: lines
                .chunks(LINES)
                .map(|name| sorted(name.to_vec()))
                .collect(),
        }
    }

    /// Whether a model is the same.
    pub(super) fn is_of(&self, names: &[Name]) -> bool {
        names.iter().map(lines_of).eq(self.names.iter().cloned())
    }

    /// What the counters hold.
    pub(super) fn counters(&self) -> impl Iterator<Item = Token> {
        let digits = |name: &Vec<String>| {
            let counter = &name[COUNTER];
            let end = counter.find(|one: char| !one.is_ascii_digit());
            counter[..end.unwrap_or(counter.len())].parse().ok()
        };
        self.names.iter().filter_map(digits)
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    for at in SETS {
        let mut parts: Vec<_> = lines[at].split('|').collect();
        parts.sort_unstable();
        lines[at] = parts.join("|");
    }
    lines
}

/// What is to be seen of a name.
pub(super) fn lines_of(name: &Name) -> Vec<String> {
    let last = name.broken.iter().map(|one| one.lasts).max();
    let last = last.map(|last| last.to_string()).into_iter();
    let broken = name.broken.iter();
    let broken = broken.map(|one| format!("{}:{}", one.lasts, &text_of(one.owner)[..ID]));
    let lasts = (!name.shares.is_empty()).then(|| format!("lasts {}", name.shares_last));
    sorted(vec![
        name.lock.map_or(String::new(), lock_text),
        name.counter.map_or(String::new(), counter_text),
        joined(last.chain(broken)),
        joined(name.queue.iter().map(|owner| text_of(*owner))),
        joined(name.readers.iter().map(|owner| text_of(*owner))),
        joined(name.waiters.iter().map(waiter_text)),
        joined(name.shares.iter().map(share_text).chain(lasts)),
        name.value.map_or(String::new(), |value| value.to_string()),
    ])
}

fn lock_text(lock: Lock) -> String {
    let says = said(lock.says);
    match lock.lasts {
        Some(lasts) => format!("{says} {lasts}"),
        None => format!("{says} endless"),
    }
}

fn counter_text(counter: Counter) -> String {
    let letter = |there: bool, letter| if there { letter } else { "" };
    let queue = letter(counter.letters.queue, "q");
    let readers = letter(counter.letters.readers, "r");
    format!("{}{queue}{readers}", counter.number)
}

fn waiter_text(one: &Waiter) -> String {
    let (owner, inbox) = (text_of(one.owner), one.inbox.map(usize::from));
    let inbox = inbox.map(channel_of).unwrap_or_default();
    format!("{owner} {} {} {} {inbox}", one.overdue, one.ttl, one.mode)
}

fn share_text(one: &Share) -> String {
    let (owner, kept) = (text_of(one.owner), if one.kept { "kept " } else { "" });
    format!("{} {kept}{owner} {} {}", one.count, one.lasts, one.token)
}

fn said(says: Says) -> String {
    match says {
        Says::Owner(owner) => text_of(owner),
        Says::Foreign => FOREIGN.to_owned(),
        Says::Readers => "crosslock:readers".to_owned(),
        Says::Permits(out) => format!("crosslock:permits {out}"),
        Says::Kept => "crosslock:kept".to_owned(),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("|")
}
