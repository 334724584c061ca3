//! What a watchdog is told: nine bytes each.

use std::time::Duration;

use rustix::process::Pid;

use crate::group::Group;

pub(crate) const LENGTH: usize = 9;

/// What a watchdog is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Which group the command leads.
    Group(Group),
    /// Until when the command may run, as a time since boot; `None`: for ever.
    Until(Option<Duration>),
    /// The command is over.
    Over,
}

impl Message {
    pub(crate) fn to_bytes(self) -> [u8; LENGTH] {
        let (kind, number) = match self {
            Message::Group(Group(pid)) => {
                (b'g', u64::from(pid.as_raw_nonzero().get().unsigned_abs()))
            }
            Message::Until(None) => (b'u', u64::MAX),
            // 584 years.
            Message::Until(Some(until)) => (b'u', until.as_nanos().try_into().unwrap_or(u64::MAX)),
            Message::Over => (b'o', 0),
        };
        let mut bytes = [kind; LENGTH];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; LENGTH]) -> Option<Self> {
        let (kind, number) = bytes.split_first()?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        match kind {
            b'g' => {
                let pid = Pid::from_raw(number.try_into().ok()?)?;
                Some(Message::Group(Group(pid)))
            }
            b'u' => Some(Message::Until(
                (number != u64::MAX).then(|| Duration::from_nanos(number)),
            )),
            b'o' => Some(Message::Over),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let pid = Pid::from_raw(4711).expect("it is one");
        for message in [
            Message::Group(Group(pid)),
            Message::Until(None),
            Message::Until(Some(Duration::from_nanos(1_234_567_890_123))),
            Message::Over,
        ] {
            assert_eq!(Message::from_bytes(message.to_bytes()), Some(message));
        }
        assert_eq!(Message::from_bytes([b'x'; LENGTH]), None);
    }
}
