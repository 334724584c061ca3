//! A ticket as a line of text: `crosslock1:NAMESPACE:MODE:LAST_TOKEN:OWNER:NAME`, and more names if it is about several.
//!
//! A mode is `x`, `r` or `COUNT/OF`. In each part all bytes but letters, digits and `-._~/` are `%xx`.

use super::LeaseTicket;
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::error::{Error, Result};
use crate::base::name::{Key, Namespace};
use crate::base::owner::Owner;
use crate::base::percent;

/// The first part, with the version of the rest.
const KIND: &str = "crosslock1";

pub(super) fn of(ticket: &LeaseTicket) -> String {
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

pub(super) fn parse(text: &str) -> Result<LeaseTicket> {
    let parts: Option<Vec<String>> = text.split(':').map(unescaped).collect();
    let parts = parts.ok_or_else(|| invalid("it has an escape that isn't %xx"))?;
    match &parts[..] {
        [kind, ..] if kind != KIND => Err(invalid("it doesn't begin as one does")),
        [_, namespace, mode, last_used, owner, names @ ..] if !names.is_empty() => {
            let last_used = last_used.parse();
            let last_used = last_used.map_err(|_| invalid("its token is no number"))?;
            let claim = claim(namespace, mode, names)?;
            Ok(LeaseTicket::new(claim, self::owner(owner)?, last_used))
        }
        _ => Err(invalid("its end is missing")),
    }
}

fn claim(namespace: &str, mode: &str, names: &[String]) -> Result<Claim> {
    let namespace = Namespace::new(namespace).map_err(|_| invalid("its namespace is none"))?;
    let keys = names.iter().map(|name| Key::new(&namespace, name));
    let keys = keys.collect::<Result<Vec<_>>>();
    let mut keys = keys.map_err(|_| invalid("a name of it is none"))?;
    if !keys.is_sorted_by(|one, other| one < other) {
        return Err(invalid("its names aren't in their order"));
    }
    let mode = Mode::parse(mode).ok_or_else(|| invalid("its mode is none"))?;
    let key = match keys.len() {
        1 => keys.swap_remove(0),
        _ => Key::of_all(&keys),
    };
    Ok(Claim {
        key,
        names: keys.into(),
        mode,
        prefer: Prefer::default(),
        valued: false,
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
        Err(invalid("its owner is none"))
    }
}

/// Doesn't show the text, which is a secret.
fn invalid(what: &str) -> Error {
    Error::InvalidOption {
        option: "ticket",
        reason: format!("it isn't what `to_secret` gives: {what}"),
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
    use crate::base::random::for_any;

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
            valued: false,
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
    fn any_text_is_understood_or_refused() {
        let good = ticket(Mode::Exclusive, &["name"]).to_secret();
        for_any(|random| {
            let mut text = good.clone();
            let at = random.usize(..text.len());
            text.replace_range(at..=at, &random.text(0..=3));
            if let Ok(ticket) = text.parse::<LeaseTicket>() {
                let again: LeaseTicket = ticket.to_secret().parse().unwrap();
                assert_eq!(again.to_secret(), ticket.to_secret());
            }
        });
    }

    #[test]
    fn debug_output_shows_the_name_only() {
        let ticket = ticket(Mode::Exclusive, &["name"]);
        assert_eq!(format!("{ticket:?}"), "LeaseTicket { name: \"name\", .. }");
    }

    #[test]
    fn ticket_has_one_heir_in_a_process() {
        use super::super::{Heir, Process};
        let ticket = ticket(Mode::Exclusive, &["name"]);
        let mut heir = ticket.heir().unwrap();
        assert!(ticket.heir().is_none(), "another uses it");
        let process = Process::current();
        let owner = heir.owner(process, None);
        assert!(owner.is_some());
        assert_eq!(heir.owner(process, None), owner);
        *heir = Heir::Final;
        assert_eq!(heir.owner(process, None), None);
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
