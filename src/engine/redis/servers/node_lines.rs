//! The answer to CLUSTER NODES: a line for each node that the one asked knows.
//!
//! It is the only command that tells config epochs, and which slots are on their way: these of the node itself alone.

use crate::engine::net::address::HostPort;

/// What is known of one node.
#[derive(Debug)]
pub(in crate::engine::redis) struct NodeLine<'a> {
    pub(in crate::engine::redis) id: &'a str,
    /// `ip:port@bus,hostname`; a version may have less or more behind the port.
    address: &'a str,
    flags: &'a str,
    /// Of a replica that of its master.
    epoch: u64,
    /// Ranges of slots, and `[93->-id]` or `[77-<-id]` for slots that go or come.
    slots: Vec<&'a str>,
}

/// The lines of an answer.
pub(in crate::engine::redis) fn node_lines(answer: &str) -> impl Iterator<Item = NodeLine<'_>> {
    answer.lines().filter_map(NodeLine::parse)
}

impl<'a> NodeLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        let [id, address, flags, _, _, _, epoch, _, slots @ ..] = &*words else {
            return None;
        };
        Some(NodeLine {
            id,
            address,
            flags,
            epoch: epoch.parse().ok()?,
            slots: slots.to_vec(),
        })
    }

    /// Whether it is the node that was asked.
    pub(in crate::engine::redis) fn is_own(&self) -> bool {
        self.has("myself")
    }

    /// The epoch of its claim to its slots; `None`: it is a replica, and has none.
    pub(in crate::engine::redis) fn config_epoch(&self) -> Option<u64> {
        self.has("master").then_some(self.epoch)
    }

    /// Whether it is a master that may answer.
    pub(in crate::engine::redis) fn is_live_master(&self) -> bool {
        let is_gone = ["fail", "handshake", "noaddr"];
        self.has("master") && !is_gone.iter().any(|flag| self.has(flag))
    }

    /// Where it is, by its name if nodes are known so; without a host it is that of the node that was asked.
    pub(in crate::engine::redis) fn at(&self, by_name: bool, asked: &str) -> Option<HostPort> {
        let (host, port) = self.address.split('@').next()?.rsplit_once(':')?;
        let host = self.hostname().filter(|_| by_name).unwrap_or(host);
        Some(HostPort {
            host: if host.is_empty() { asked } else { host }.to_owned(),
            port: port.parse().ok().filter(|port| *port > 0)?,
        })
    }

    pub(in crate::engine::redis) fn hostname(&self) -> Option<&'a str> {
        let name = self.address.split(',').nth(1)?;
        (!name.is_empty() && !name.contains('=')).then_some(name)
    }

    /// The slots that come or go.
    pub(in crate::engine::redis) fn on_their_way(&self) -> impl Iterator<Item = u16> {
        self.slots.iter().filter_map(|word| open_slot(word))
    }

    /// The slots that come.
    pub(in crate::engine::redis) fn coming(&self) -> impl Iterator<Item = u16> {
        let coming = self.slots.iter().filter(|word| word.contains("-<-"));
        coming.filter_map(|word| open_slot(word))
    }
}

impl NodeLine<'_> {
    fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|one| one == flag)
    }
}

fn open_slot(word: &str) -> Option<u16> {
    word.strip_prefix('[')?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Redis 7.0 answers, and in part Valkey 9.
    const NODES: &str = "\
        a1 10.0.0.1:7000@17000,one.example myself,master - 0 0 7 connected 0-5 9 [93->-b2] [77-<-b2]\n\
        b2 10.0.0.2:7001@17001,,shard-id=5f slave a1 0 1 7 connected\n\
        c3 :7002@17002 master,fail - 0 1 3 disconnected 6-8\n\
        d4 :0@0 master,noaddr - 0 1 0 disconnected\n\
        what is this\n";

    #[test]
    fn lines_say_who_is_what_and_where() {
        let lines: Vec<_> = node_lines(NODES).collect();
        let epochs: Vec<_> = lines.iter().map(NodeLine::config_epoch).collect();
        assert_eq!(epochs, [Some(7), None, Some(3), Some(0)]);
        let live: Vec<_> = lines.iter().map(NodeLine::is_live_master).collect();
        assert_eq!(live, [true, false, false, false]);
        let at = |line: usize, by_name| lines[line].at(by_name, "asked").map(|at| at.to_string());
        assert_eq!(at(0, false).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(at(0, true).as_deref(), Some("one.example:7000"));
        assert_eq!(at(1, true).as_deref(), Some("10.0.0.2:7001"));
        assert_eq!(at(2, false).as_deref(), Some("asked:7002"));
        assert_eq!(at(3, false), None);
    }

    #[test]
    fn slots_on_their_way_are_told_apart_from_ranges() {
        let own = node_lines(NODES).find(NodeLine::is_own).unwrap();
        assert_eq!(own.on_their_way().collect::<Vec<_>>(), [93, 77]);
        assert_eq!(own.coming().collect::<Vec<_>>(), [77]);
    }
}
