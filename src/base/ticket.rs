//! A lease on its way from one process to another.
//!
//! As text it is a line: `crosslock1:NAMESPACE:MODE:LAST_TOKEN:OWNER:NAME`, and more names if it is about several. A
//! mode is `x`, `r` or `COUNT/OF`. In each part all bytes but letters, digits and `-._~/` are `%xx`.

use std::fmt;
use std::str::FromStr;

use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::error::{Error, Result};
use crate::base::fork::Process;
use crate::base::name::{Key, Namespace};
use crate::base::owner::Owner;
use crate::base::percent;
use crate::base::sys::sync::{Mutex, MutexGuard};

/// Carries a lease from one process to another: made by [`LockGuard::into_ticket`](crate::LockGuard::into_ticket), used
/// by [`Locker::adopt`](crate::Locker::adopt).
///
/// **It is a secret**: whoever knows it can adopt or release the lock. Its `Debug` shows the lock's name only. Send it
/// by a pipe, the standard input or a connection, not by arguments or the environment, which others can see. It is a
/// string by [`to_secret`](Self::to_secret) and `parse`, and with the feature `value` by `serde`.
///
/// It can be used once. Until then the lease lasts for what is left of its ttl, and nobody renews it.
///
/// # Examples
///
/// ```
/// use crosslock::{Locker, LeaseTicket};
///
/// # fn main() -> crosslock::Result<()> {
/// # let locker = Locker::open("memory:")?;
/// let secret = locker.lock("ticket-example")?.into_ticket()?.to_secret();
/// let ticket: LeaseTicket = secret.parse()?; // in the other process
/// assert_eq!(ticket.name(), "ticket-example");
/// let guard = locker.adopt(ticket)?;
/// assert!(guard.is_held());
/// # Ok(())
/// # }
/// ```
pub struct LeaseTicket {
    pub(crate) claim: Claim,
    pub(crate) owner: Owner,
    /// The last fencing token that was used under this lease.
    pub(crate) last_used: u64,
    adopter: Mutex<Adopter>,
}

/// Whom it was used for.
#[derive(Default)]
pub(crate) enum Adopter {
    #[default]
    Nobody,
    /// One whose adoption wasn't answered: it may have the lease, and can ask again.
    Unclear(Process, Owner),
    /// It can't be used any more.
    Final,
}

impl LeaseTicket {
    pub(crate) fn new(claim: Claim, owner: Owner, last_used: u64) -> Self {
        LeaseTicket {
            claim,
            owner,
            last_used,
            adopter: Mutex::default(),
        }
    }

    /// Returns the name of the lock. For several locks, the text has all names.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let ticket = locker.lock("ticket-name-example")?.into_ticket()?;
    /// assert_eq!(ticket.name(), "ticket-name-example");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        self.claim.key.name()
    }

    /// Returns the ticket as a line of ASCII text, from which `parse` makes it again.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::{Error, LeaseTicket};
    ///
    /// # fn main() -> crosslock::Result<()> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let secret = locker.lock("secret-example")?.into_ticket()?.to_secret();
    /// assert!(secret.parse::<LeaseTicket>().is_ok());
    /// let other = "garbage".parse::<LeaseTicket>();
    /// assert!(matches!(other, Err(Error::InvalidOption { option: "ticket", .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_secret(&self) -> String {
        text_of(self)
    }

    /// For the one call that uses it; `None` while another does.
    pub(crate) fn adopter(&self) -> Option<MutexGuard<'_, Adopter>> {
        // Nobody waits here: a child made by `fork` might do so for ever.
        self.adopter.try_lock()
    }
}

impl Adopter {
    /// The owner for which it is used, the same for each attempt of a process; `None` when it was used before.
    pub(crate) fn owner(&mut self, process: Process, label: Option<&str>) -> Option<Owner> {
        match self {
            Adopter::Final => return None,
            Adopter::Unclear(of, owner) if *of == process => return Some(owner.clone()),
            Adopter::Unclear(..) | Adopter::Nobody => {}
        }
        let owner = Owner::of(process, label);
        *self = Adopter::Unclear(process, owner.clone());
        Some(owner)
    }
}

impl FromStr for LeaseTicket {
    type Err = Error;

    /// Makes the ticket again of which `text` is [`to_secret`](Self::to_secret).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] when it isn't the text of a ticket. The error doesn't show it.
    fn from_str(text: &str) -> Result<Self> {
        parse(text)
    }
}

/// As the string of [`to_secret`](LeaseTicket::to_secret).
#[cfg(feature = "value")]
impl serde::Serialize for LeaseTicket {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_secret())
    }
}

#[cfg(feature = "value")]
impl<'de> serde::Deserialize<'de> for LeaseTicket {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for LeaseTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseTicket")
            .field("name", &self.claim.key.name())
            .finish_non_exhaustive()
    }
}

/// The first part, with the version of the rest.
const KIND: &str = "crosslock1";

fn text_of(ticket: &LeaseTicket) -> String {
    let claim = &ticket.claim;
    let mode = claim.mode.to_string();
    let last_used = ticket.last_used.to_string();
    let parts = [
        KIND,
        claim.key.namespace(),
        &mode,
        &last_used,
        ticket.owner.as_str(),
    ];
    let names = claim.keys().iter().map(Key::name);
    let escaped = parts.into_iter().chain(names).map(escaped);
    escaped.collect::<Vec<_>>().join(":")
}

fn parse(text: &str) -> Result<LeaseTicket> {
    let parts: Option<Vec<String>> = text.split(':').map(unescaped).collect();
    let parts = parts.ok_or_else(|| invalid("an escape isn't %xx"))?;
    match &parts[..] {
        [kind, ..] if kind != KIND => Err(invalid("its beginning is wrong")),
        [_, namespace, mode, last_used, owner, names @ ..] if !names.is_empty() => {
            let last_used = last_used.parse();
            let last_used = last_used.map_err(|_| invalid("its token isn't a number"))?;
            let claim = claim(namespace, mode, names)?;
            Ok(LeaseTicket::new(claim, self::owner(owner)?, last_used))
        }
        _ => Err(invalid("its end is missing")),
    }
}

fn claim(namespace: &str, mode: &str, names: &[String]) -> Result<Claim> {
    let namespace = Namespace::new(namespace).map_err(|_| invalid("its namespace isn't valid"))?;
    let keys = names.iter().map(|name| Key::new(&namespace, name));
    let keys = keys.collect::<Result<Vec<_>>>();
    let mut keys = keys.map_err(|_| invalid("one of its names isn't valid"))?;
    if !keys.is_sorted_by(|one, other| one < other) {
        return Err(invalid("its names aren't sorted"));
    }
    let mode = Mode::parse(mode).ok_or_else(|| invalid("its mode isn't valid"))?;
    let key = match keys.len() {
        1 => keys.swap_remove(0),
        _ => Key::of_all(&keys),
    };
    Ok(Claim {
        key,
        names: keys.into(),
        mode,
        prefer: Prefer::default(),
        has_value: false,
    })
}

fn owner(text: &str) -> Result<Owner> {
    const PARTS: usize = 4;
    let id = text.split('/').next().unwrap_or_default();
    let is_one = uuid::Uuid::parse_str(id).is_ok()
        && text.split('/').count() >= PARTS
        && !text.chars().any(char::is_control);
    if is_one {
        Ok(Owner::from_text(text))
    } else {
        Err(invalid("its owner isn't valid"))
    }
}

/// Doesn't show the text, which is a secret.
fn invalid(what: &str) -> Error {
    Error::InvalidOption {
        option: "ticket",
        reason: format!("it isn't a text from `to_secret`: {what}"),
    }
}

fn escaped(part: &str) -> String {
    let is_plain = |_, byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    percent::escaped(part, is_plain)
}

fn unescaped(part: &str) -> Option<String> {
    String::from_utf8(percent::unescaped(part)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(mode: Mode, names: &[&str]) -> LeaseTicket {
        let namespace = Namespace::new("app.1").unwrap();
        let keys: Vec<_> = names
            .iter()
            .map(|name| Key::new(&namespace, name).unwrap())
            .collect();
        let key = match &keys[..] {
            [key] => key.clone(),
            _ => Key::of_all(&keys),
        };
        let names = if keys.len() > 1 { keys } else { Vec::new() };
        let claim = Claim {
            key,
            names: names.into(),
            mode,
            prefer: Prefer::default(),
            has_value: false,
        };
        LeaseTicket::new(claim, Owner::new(), 4711)
    }

    #[test]
    fn ticket_comes_back_from_its_text() {
        let permits = Mode::Permits { count: 2, of: 3 };
        for (mode, names) in [
            (Mode::Exclusive, &["a"][..]),
            (Mode::Shared, &["a:b%\n é"]),
            (permits, &[":"]),
            (Mode::Exclusive, &["a", "b, c", "d"]),
        ] {
            let ticket = ticket(mode, names);
            let text = ticket.to_secret();
            assert!(text.is_ascii() && !text.contains(char::is_whitespace));
            let back: LeaseTicket = text.parse().unwrap();
            assert_eq!(back.to_secret(), text);
            assert_eq!(back.claim.mode, mode);
            assert_eq!(back.claim.keys(), ticket.claim.keys());
            assert_eq!(back.name(), ticket.name());
            assert_eq!((back.owner, back.last_used), (ticket.owner, 4711));
        }
    }

    #[test]
    fn text_that_is_none_is_refused_and_not_shown() {
        let good = ticket(Mode::Exclusive, &["name"]).to_secret();
        let parts: Vec<_> = good.split(':').collect();
        let with = |at: usize, part: &str| {
            let mut parts = parts.clone();
            parts[at] = part;
            parts.join(":")
        };
        for bad in [
            String::new(),
            "garbage".into(),
            parts[..5].join(":"),
            with(0, "crosslock2"),
            with(1, "not%20one"),
            with(2, "y"),
            with(2, "4/3"),
            with(2, "0/3"),
            with(3, "-1"),
            with(4, "me/host/1/2"),
            with(4, parts[4].split('/').next().unwrap()),
            with(5, ""),
            with(5, "%zz"),
            with(5, "%+1"),
            with(5, "%ff"),
            with(5, "%e"),
            format!("{good}:name"),
            format!("{good}:a"),
        ] {
            let error = bad.parse::<LeaseTicket>().unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::InvalidOption {
                        option: "ticket",
                        ..
                    }
                ),
                "{bad}: {error}"
            );
            assert!(!error.to_string().contains(&parts[4][..8]), "{error}");
        }
    }

    #[test]
    fn ticket_has_one_adopter_in_a_process() {
        use super::{Adopter, Process};
        let ticket = ticket(Mode::Exclusive, &["name"]);
        let mut adopter = ticket.adopter().unwrap();
        assert!(ticket.adopter().is_none(), "another uses it");
        let process = Process::current();
        let owner = adopter.owner(process, None);
        assert!(owner.is_some());
        assert_eq!(adopter.owner(process, None), owner);
        *adopter = Adopter::Final;
        assert_eq!(adopter.owner(process, None), None);
    }

    #[cfg(feature = "value")]
    #[test]
    fn ticket_is_a_string_to_serde() {
        let ticket = ticket(Mode::Shared, &["name"]);
        let json = serde_json::to_string(&ticket).unwrap();
        assert_eq!(json, format!("\"{}\"", ticket.to_secret()));
        let back: LeaseTicket = serde_json::from_str(&json).unwrap();
        assert_eq!(back.to_secret(), ticket.to_secret());
        let error = serde_json::from_str::<LeaseTicket>("\"x\"").unwrap_err();
        assert!(error.to_string().contains("to_secret"), "{error}");
        assert!(serde_json::from_str::<LeaseTicket>("1").is_err());
    }
}
