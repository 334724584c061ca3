//! What a server holds of a name, read as the model has it.

use crosslock_protocol::server::{
    BROADCAST, BrokenLease, Counter, Inbox, Letters, Lock, Name, Owner, Says, Share, Ticks, Token,
    Waiter,
};

/// In milliseconds, as all that a server knows of time but its clock.
pub(super) const TICK: i64 = 1_000_000;
/// More than a sequence takes.
const SLACK: i64 = 300_000;
const DAY: i64 = 86_400_000;
/// What PTTL says of a key without a ttl, and of one that isn't there.
pub(super) const ENDLESS: i64 = -1;
const ABSENT: i64 = -2;

pub(super) const FOREIGN: &str = "foreign";
/// The channel on which all hear of leases that were broken.
pub(super) const BROKEN: &str = "inbox:broken";
/// How many keys a name has, in the order of the scripts.
pub(super) const KEYS: usize = 7;
const SUFFIXES: [&str; KEYS] = [
    "",
    ":fence",
    ":queue",
    ":waiters",
    ":read_queue",
    ":holders",
    ":value",
];

/// All that a server holds, and its clock in microseconds.
pub(super) struct Seen {
    pub(super) micros: Token,
    pub(super) names: Vec<Name>,
}

pub(super) fn keys_of(name: usize) -> [String; KEYS] {
    SUFFIXES.map(|suffix| format!("{{name:{name}}}{suffix}"))
}

/// Those of a replica.
pub(super) fn copies_of(name: usize) -> [String; KEYS] {
    SUFFIXES.map(|suffix| format!("{{copy:{name}}}{suffix}"))
}

// Owners and inboxes

const ID: usize = "00000000-0000-4000-8000-000000000000/".len();

pub(super) fn text_of(owner: Owner) -> String {
    format!("{owner:08x}-0000-4000-8000-000000000000/host/{owner}/main")
}

pub(super) fn owner_of(text: &str) -> Owner {
    let owner = owner_that_begins(text).filter(|owner| text_of(*owner) == text);
    owner.unwrap_or_else(|| panic!("no owner: {text:?}"))
}

fn owner_that_begins(text: &str) -> Option<Owner> {
    let id = text.get(..8)?;
    Owner::from_str_radix(id, 16).ok()
}

/// As those that wait are told who holds a lock: without what proves that it is the owner.
pub(super) fn holder_of(text: &str) -> Owner {
    let owner = text
        .split('/')
        .nth(1)
        .and_then(|number| number.parse().ok());
    let owner = owner.filter(|owner| text_of(*owner)[ID..] == *text);
    owner.unwrap_or_else(|| panic!("no holder: {text:?}"))
}

pub(super) fn channel_of(inbox: usize) -> String {
    format!("inbox:{inbox}")
}

pub(super) fn inbox_of(channel: &str) -> Inbox {
    if channel == BROKEN {
        return BROADCAST;
    }
    let number = channel.strip_prefix("inbox:").map(str::parse);
    let inbox = number.and_then(Result::ok);
    inbox.unwrap_or_else(|| panic!("no inbox: {channel:?}"))
}

// Times

/// Rounded up, because some time has passed since it was as long as that.
pub(super) fn ticks(left: i64) -> Ticks {
    if left <= 0 {
        return 0;
    }
    let ticks = (left + TICK - 1) / TICK;
    // Half a ttl may end between two.
    let passed = (ticks * TICK - left) % (TICK / 2);
    assert!(passed < SLACK, "{left} ms isn't a number of ticks");
    ticks.try_into().expect("a few ticks")
}

// Keys

impl Seen {
    /// Reads what `look.lua` gives: the clock, and eight lines for each name.
    pub(super) fn of(text: &str) -> Self {
        let mut lines = text.split('\n');
        let micros: Token = number(lines.next().expect("the clock"));
        let mut names = Vec::new();
        while let Some(lock) = lines.next() {
            let mut next = || lines.next().expect("eight lines a name");
            let rest = [(); KEYS - 1].map(|()| next());
            names.push(name(lock, rest, next(), micros / 1_000));
        }
        Seen { micros, names }
    }
}

fn name(lock: &str, rest: [&str; KEYS - 1], pttls: &str, clock: i64) -> Name {
    let [counter, queue, waiters, readers, shares, value] = rest;
    let mut left = pttls.split(' ').map(number::<i64>);
    let left = [(); KEYS].map(|()| left.next().expect("one of each key"));
    let [lasts, holders, of_value] = [left[0], left[5], left[6]];
    for at in [1, 2, 3, 4] {
        let expires = left[at] == ABSENT || (1..=DAY).contains(&left[at]);
        assert!(expires, "{} lasts {} ms", SUFFIXES[at], left[at]);
    }
    assert!(of_value == ABSENT || of_value == ENDLESS, "a value stays");
    assert!(holders != ENDLESS, "a lease that shares ends");
    Name {
        lock: says_of(lock).map(|says| Lock {
            says,
            lasts: (lasts != ENDLESS).then(|| ticks(lasts)),
        }),
        counter: counter_of(counter),
        broken: broken_of(counter, clock),
        queue: line_of(queue),
        readers: line_of(readers),
        waiters: waiters_of(waiters, clock),
        shares: shares_of(shares, clock),
        shares_last: ticks(holders),
        value: (!value.is_empty()).then(|| number(value)),
    }
}

fn says_of(text: &str) -> Option<Says> {
    Some(match text {
        "" => return None,
        FOREIGN => Says::Foreign,
        "crosslock:readers" => Says::Readers,
        "crosslock:kept" => Says::Kept,
        text => match text.strip_prefix("crosslock:permits ") {
            Some(out) => Says::Permits(number(out.split('/').next().expect("how many"))),
            None => Says::Owner(owner_of(text)),
        },
    })
}

fn counter_of(text: &str) -> Option<Counter> {
    let text = text.split('b').next().expect("one part at least");
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let (queue, readers) = match &text[digits.len()..] {
        "" => (false, false),
        "q" => (true, false),
        "r" => (false, true),
        "qr" => (true, true),
        other => panic!("no letters: {other:?}"),
    };
    (!text.is_empty()).then(|| Counter {
        number: number(digits),
        letters: Letters { queue, readers },
    })
}

/// Behind the letters: when the last of these leases would be over, and for each when, and whose it was.
fn broken_of(counter: &str, clock: i64) -> Vec<BrokenLease> {
    let mut broken: Vec<BrokenLease> = Vec::new();
    let Some((_, behind)) = counter.split_once('b') else {
        return broken;
    };
    let mut words = behind.split_terminator(' ');
    let last: i64 = number(words.next().expect("the last end"));
    for word in words {
        let (until, id) = word.split_once(':').expect("an end and an id");
        let owner = owner_that_begins(id).expect("an owner");
        assert!(
            text_of(owner).starts_with(id) && id.len() == ID - 1,
            "{counter}"
        );
        let lasts = ticks(number::<i64>(until) - clock);
        broken.push(BrokenLease { owner, lasts });
    }
    let longest = broken.iter().map(|one| one.lasts).max();
    assert_eq!(longest, Some(ticks(last - clock)), "{counter}");
    broken.sort_unstable();
    broken
}

fn line_of(text: &str) -> Vec<Owner> {
    words(text).map(owner_of).collect()
}

fn waiters_of(text: &str, clock: i64) -> Vec<Waiter> {
    let mut waiters: Vec<Waiter> = Vec::new();
    let mut fields = text.split('|').filter(|field| !field.is_empty());
    while let Some(owner) = fields.next() {
        let waiter = fields.next().expect("a value of each field");
        let [overdue, ttl, mode, inbox] = four_of(waiter);
        let (left, ttl) = (number::<i64>(overdue) - clock, ticks(number(ttl)));
        let overdue_for = Ticks::try_from((-left).max(0) / TICK).unwrap_or(Ticks::MAX);
        waiters.push(Waiter {
            owner: owner_of(owner),
            overdue: if left > 0 {
                ticks(left)
            } else {
                -overdue_for.min(ttl)
            },
            ttl,
            mode: mode.parse().expect("a mode"),
            inbox: (!inbox.is_empty()).then(|| inbox_of(inbox)),
        });
    }
    waiters.sort_unstable_by_key(|waiter| waiter.owner);
    waiters
}

fn four_of(waiter: &str) -> [&str; 4] {
    let mut words = waiter.split(' ');
    let four = [(); 4].map(|()| words.next().expect("four words"));
    assert!(words.next().is_none(), "more than four words: {waiter:?}");
    four
}

fn shares_of(text: &str, clock: i64) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    let mut tokens: Vec<(Owner, Token)> = Vec::new();
    let mut fields = text.split('|').filter(|field| !field.is_empty());
    while let Some(member) = fields.next() {
        let ends = fields.next().expect("a score of each member");
        let (count, owner) = member.split_once(' ').expect("a count and an owner");
        let ends = number::<i64>(ends);
        if count == "0" {
            tokens.push((owner_of(owner), -ends));
            continue;
        }
        let kept = owner.strip_prefix("kept ");
        shares.push(Share {
            owner: owner_of(kept.unwrap_or(owner)),
            count: number(count),
            kept: kept.is_some(),
            lasts: ticks(ends - clock),
            token: 0,
        });
    }
    for share in shares.iter_mut().filter(|share| !share.kept) {
        let own = tokens.iter().find(|(owner, _)| *owner == share.owner);
        share.token = own.expect("a token of each that shares").1;
    }
    shares.sort_unstable();
    shares
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('|').filter(|word| !word.is_empty())
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> T {
    let number = text.parse().ok();
    number.unwrap_or_else(|| panic!("no such number: {text:?}"))
}
