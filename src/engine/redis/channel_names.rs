//! The channels of a namespace.

/// The channel of one inbox.
pub(super) fn channel(namespace: &str, inbox: &str) -> String {
    [namespace, INBOX, inbox].concat()
}

/// The channel on which the inboxes of a namespace hear whose leases were broken.
pub(super) fn broken_channel(namespace: &str) -> String {
    channel(namespace, BROKEN)
}

/// The same, given the channel of an inbox. A namespace has no colon.
pub(super) fn broken_channel_beside(channel: &str) -> String {
    let namespace = channel.split(':').next();
    broken_channel(namespace.unwrap_or_default())
}

/// Whether inboxes hear of broken leases on it. The id of an inbox is a UUID.
pub(super) fn is_of_broken(channel: &str) -> bool {
    let inbox = channel.split_once(INBOX).map(|(_, inbox)| inbox);
    inbox == Some(BROKEN)
}

const INBOX: &str = ":inbox:";
const BROKEN: &str = "broken";
