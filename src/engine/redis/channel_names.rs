//! The channels of a namespace.
//!
//! | server | the channel of an inbox | where inboxes hear of broken leases |
//! |---|---|---|
//! | in no cluster | `ns:inbox:<id>` | `ns:inbox:broken` |
//! | in a cluster, for each slot | `ns:inbox:<id>:{tag}` | `ns:inbox:broken:{tag}` |
//!
//! A namespace has neither a colon nor a brace, and the id of an inbox is a UUID. Scripts take a channel with a brace for a
//! sharded one.

use super::keys::Keys;
use super::servers::slots::{slot_of, tag_of};
use super::settings::Kind;
use crate::base::name::Key;

/// What puts the channels for a name into its slot; `None` where there are no slots.
pub(super) fn tag(kind: Kind, key: &Key) -> Option<&'static str> {
    let has_slots = kind == Kind::Cluster;
    has_slots.then(|| tag_of(slot_of(&Keys::of(key).lock)))
}

/// The channel of one inbox.
pub(super) fn channel(namespace: &str, inbox: &str, tag: Option<&str>) -> String {
    match tag {
        Some(tag) => [namespace, INBOX, inbox, ":{", tag, "}"].concat(),
        None => [namespace, INBOX, inbox].concat(),
    }
}

/// The channel on which inboxes of a namespace hear whose leases were broken.
pub(super) fn broken_channel(namespace: &str, tag: Option<&str>) -> String {
    channel(namespace, BROKEN, tag)
}

/// The same, given the channel of an inbox.
pub(super) fn broken_channel_beside(channel: &str) -> String {
    let (namespace, inbox) = channel.split_once(INBOX).unwrap_or((channel, ""));
    let slot = inbox.find(':').and_then(|at| inbox.get(at..));
    [namespace, INBOX, BROKEN, slot.unwrap_or_default()].concat()
}

/// Whether inboxes hear of broken leases on it.
pub(super) fn is_of_broken(channel: &str) -> bool {
    let inbox = channel.split_once(INBOX).map(|(_, inbox)| inbox);
    inbox.and_then(|inbox| inbox.split(':').next()) == Some(BROKEN)
}

const INBOX: &str = ":inbox:";
const BROKEN: &str = "broken";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Namespace;

    #[test]
    fn channels_are_as_documented() {
        for (namespace, tag, own, broken) in [
            ("app", None, "app:inbox:1", "app:inbox:broken"),
            ("", None, ":inbox:1", ":inbox:broken"),
            (
                "a.b",
                Some("x1"),
                "a.b:inbox:1:{x1}",
                "a.b:inbox:broken:{x1}",
            ),
            ("", Some("x1"), ":inbox:1:{x1}", ":inbox:broken:{x1}"),
        ] {
            assert_eq!(channel(namespace, "1", tag), own);
            assert_eq!(broken_channel(namespace, tag), broken);
            assert_eq!(broken_channel_beside(own), broken);
            assert!(is_of_broken(broken) && !is_of_broken(own));
        }
    }

    #[test]
    fn channels_are_in_the_slot_of_the_name() {
        for namespace in ["app", ""] {
            for name in ["a", "{user}:1", "{x}", "b{"] {
                let key = Key::new(&Namespace::new(namespace).unwrap(), name).unwrap();
                assert_eq!(tag(Kind::Single, &key), None);
                let own = channel(namespace, "1", tag(Kind::Cluster, &key));
                for channel in [broken_channel_beside(&own), own] {
                    assert_eq!(
                        slot_of(&channel),
                        slot_of(&Keys::of(&key).lock),
                        "{channel}"
                    );
                }
            }
        }
    }
}
