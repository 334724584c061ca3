//! The servers that keep sessions: their hosts, what they have said about sessions, and how a connection begins.

use std::{collections::BTreeMap, io::Read, sync::Arc, time::Duration};

use super::jute::{Decoder, Frames};
use super::wire::{AUTH_FAILED, AUTH_XID, Acl, Handshake, frame, header, login, number};
use super::{failure::Failure, ops::Op};
use crate::base::{BootInstant, Clock, Deadline, Error, Result as PublicResult};
use crate::engine::net::pool::{Rotation, Turns};
use crate::engine::net::stream::{ReadHalf, why_closed};
use crate::engine::net::{address::Endpoint, connector::Connector, tls::Trust};
use crate::engine::zookeeper::address::{Address, Auth};

/// The hosts of a locker. All its sessions share them, so that one look-up of a name serves all callers.
#[derive(Debug)]
pub(crate) struct Hosts {
    all: Vec<Connector>,
    /// `None`: connections are plain.
    trust: Option<Trust>,
}

impl Hosts {
    pub(super) fn of(address: &Address) -> PublicResult<Arc<Self>> {
        let Address { ca, own, shown, .. } = address;
        let trust = address
            .tls
            .then(|| Trust::new(ca.as_deref(), own.as_ref(), shown));
        let trust = trust.transpose()?;
        let all = address.hosts.iter().map(|at| {
            let tls = trust.as_ref().map(|trust| trust.in_server(&at.host));
            let tls = tls.transpose().map_err(|error| Error::InvalidUrl {
                url: shown.clone(),
                reason: error.to_string(),
            })?;
            Ok(Connector::new(Endpoint::Tcp(at.clone()), tls))
        });
        let all = all.collect::<PublicResult<_>>()?;
        Ok(Arc::new(Hosts { all, trust }))
    }

    /// The same for a child that was forked off.
    pub(crate) fn after_fork(&self) -> Arc<Self> {
        let trust = self.trust.as_ref().map(Trust::after_fork);
        let all = self.all.iter();
        let all = all.map(|one| one.after_fork(trust.as_ref())).collect();
        Arc::new(Hosts { all, trust })
    }
}

/// The servers that keep sessions.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) hosts: Arc<Hosts>,
    /// Whose first host is the one that has, or had, the session's connection.
    pub(super) rotation: Rotation,
    pub(super) address: Address,
    /// What connecting may take.
    pub(super) connect_timeout: Duration,
    /// What an answer may take.
    pub(super) io_timeout: Duration,
}

/// A host, and what it has answered, or why it hasn't.
pub(crate) type Word = (String, Result<String, String>);

/// How long sessions may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) least: Duration,
    pub(super) most: Duration,
}

impl Bounds {
    /// The servers' tickTime. Sessions last 2 to 20 ticks unless a server is told otherwise; where one of these was
    /// changed the longer tick is believed, which proves the same later.
    pub(super) fn tick(self) -> Duration {
        (self.least / 2).max(self.most / 20)
    }
}

impl Servers {
    pub(super) fn new(
        address: Address,
        hosts: Arc<Hosts>,
        connect_timeout: Duration,
        io_timeout: Duration,
    ) -> Self {
        Servers {
            rotation: Rotation::new(hosts.all.len()),
            hosts,
            address,
            connect_timeout,
            io_timeout,
        }
    }

    /// The same for another session. In a child that was forked off the hosts aren't those of its parent.
    pub(super) fn another(&self, hosts: &Arc<Hosts>) -> Self {
        let (address, hosts) = (self.address.clone(), hosts.clone());
        Servers::new(address, hosts, self.connect_timeout, self.io_timeout)
    }

    /// The rights on the nodes that are made.
    pub(super) fn acl(&self) -> Acl {
        match self.address.auth {
            Some(_) => Acl::Creator,
            None => Acl::World,
        }
    }

    /// The path under which all nodes are.
    pub(super) fn root(&self) -> &str {
        match &*self.address.chroot {
            "" => "/",
            chroot => chroot,
        }
    }

    /// The turns of the hosts for one attempt to connect.
    pub(super) fn turns(&self) -> Turns {
        self.rotation.turns(self.connect_timeout)
    }

    /// Connects to the host at that place in the list.
    pub(super) fn connect(
        &self,
        place: usize,
        handshake: Handshake,
        clock: &dyn Clock,
        deadline: &Deadline,
    ) -> Result<Connection, Failure> {
        let host = self
            .hosts
            .all
            .get(place)
            .ok_or_else(|| Failure::Other("no host is known".into()))?;
        let auth = self.address.auth.as_ref();
        let connection = Connection::open(host, handshake, auth, clock, deadline);
        connection.map_err(|failure| failure.of_host(&self.name(place)))
    }

    /// The host at that place, with its port.
    pub(super) fn name(&self, place: usize) -> String {
        let host = self.address.hosts.get(place);
        host.map(ToString::to_string).unwrap_or_default()
    }

    /// What each host, which it names, answers to one of the words of four letters, or why it doesn't.
    pub(super) fn words(&self, word: &str, deadline: &Deadline) -> Vec<Word> {
        let mut turns = self.turns();
        let ask = |_| {
            let (place, share) = turns.next(deadline.remaining());
            let answer = self.word(place, word, &deadline.within(share));
            (place, (self.name(place), answer.map_err(|e| e.to_string())))
        };
        let words: BTreeMap<_, _> = (0..self.hosts.all.len()).map(ask).collect();
        words.into_values().collect()
    }

    fn word(&self, place: usize, word: &str, deadline: &Deadline) -> Result<String, Failure> {
        /// Longer answers aren't those of a server.
        const LONGEST: u64 = 64 * 1024;
        let reader = ReadHalf::of(self.hosts.all[place].connect(deadline)?)?;
        reader.writer().write_all(word.as_bytes())?;
        let mut text = Vec::new();
        match reader.take(LONGEST).read_to_end(&mut text) {
            // A server with TLS hangs up without saying so.
            Err(e) if text.is_empty() => Err(e.into()),
            _ => Ok(String::from_utf8_lossy(&text).into_owned()),
        }
    }

    /// Does something with the first host with which it can be done, by `deadline`. When all have refused, and none
    /// was too slow, nothing is tried again.
    pub(super) fn with_any<T>(
        &self,
        deadline: &Deadline,
        mut try_host: impl FnMut(usize, &Deadline) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut turns = self.turns();
        let (mut last, mut slow) = (Failure::TimedOut, false);
        let mut failed = vec![None; self.hosts.all.len()];
        while !deadline.is_over() {
            let (place, share) = turns.next(deadline.remaining());
            match try_host(place, &deadline.within(share)) {
                Ok(done) => {
                    self.rotation.answered(place);
                    return Ok(done);
                }
                Err(denied @ (Failure::Denied(_) | Failure::Untrusted(_))) => return Err(denied),
                Err(Failure::TimedOut) => {
                    slow = true;
                    failed[place] = Some(format!("{}: no answer in time", self.name(place)));
                }
                Err(failure) => {
                    failed[place] = Some(failure.to_string());
                    last = failure;
                }
            }
            if turns.is_round_over() && !std::mem::take(&mut slow) {
                break;
            }
        }
        let all: Vec<_> = failed.into_iter().flatten().collect();
        Err(match last {
            Failure::TimedOut if !all.is_empty() => Failure::Silent(all.join("; ").into()),
            Failure::Unreachable(_) => Failure::Unreachable(all.join("; ").into()),
            other => other,
        })
    }

    /// Asks how short and how long sessions may be, by making one of each, which is closed at once.
    pub(super) fn bounds(&self, clock: &dyn Clock, deadline: &Deadline) -> Result<Bounds, Failure> {
        let ask = |place, timeout, deadline: &Deadline| {
            let connection = self.connect(place, Handshake::new(timeout), clock, deadline)?;
            let millis = u64::try_from(connection.response.timeout).unwrap_or_default();
            let mut close = frame(&Op::Close, self.acl());
            number(&mut close, 1);
            connection.reader.writer().write_all(&close)?;
            Ok::<_, Failure>(Duration::from_millis(millis))
        };
        // A busy server may find the shortest session over before it has begun, and hangs up.
        let shortest = |place, deadline: &Deadline| {
            let mut last = ask(place, 1, deadline);
            for _ in 1..TRIES {
                match last {
                    Err(Failure::Unreachable(_)) if !deadline.is_over() => {
                        last = ask(place, 1, deadline);
                    }
                    found => return found,
                }
            }
            last
        };
        self.with_any(deadline, |place, deadline| {
            Ok(Bounds {
                most: ask(place, i32::MAX, deadline)?,
                least: shortest(place, deadline)?,
            })
        })
    }
}

/// A connection that a server has welcomed. After any error it must be dropped.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) reader: ReadHalf,
    pub(super) frames: Frames,
    pub(super) response: Handshake,
    /// Read before the handshake was sent.
    pub(super) sent: BootInstant,
    /// Read after it was answered.
    pub(super) answered: BootInstant,
}

impl Connection {
    /// Connects, and shakes hands, with name lookup, TLS and login, by `deadline`.
    fn open(
        host: &Connector,
        handshake: Handshake,
        auth: Option<&Auth>,
        clock: &dyn Clock,
        deadline: &Deadline,
    ) -> Result<Self, Failure> {
        let mut reader = ReadHalf::of(host.connect(deadline)?)?;
        let mut bytes = handshake.frame();
        bytes.extend(auth.map(login).unwrap_or_default());
        // Read before sending: what the servers count from is no earlier.
        let sent = clock.now();
        let written = reader.writer().write_all(&bytes);
        written.map_err(|e| why_closed(e, &mut reader))?;
        let mut frames = Frames::default();
        // By the deadline that the reader has.
        let mut next = || frames.next(&mut reader)?.ok_or(Failure::TimedOut);
        let response = Handshake::answer(&next()?)?;
        if auth.is_some() && response.timeout > 0 {
            is_logged_in(&next()?)?;
        }
        Ok(Connection {
            reader,
            frames,
            response,
            sent,
            answered: clock.now(),
        })
    }
}

fn is_logged_in(answer: &[u8]) -> Result<(), Failure> {
    let header = header(&mut Decoder::new(answer))?;
    match header.error {
        0 if header.xid == AUTH_XID => Ok(()),
        AUTH_FAILED => Err(Failure::Denied("the servers refuse this login".into())),
        _ => Err(Failure::Other(
            "it doesn't answer a login like a ZooKeeper server".into(),
        )),
    }
}

/// How often the shortest session is asked for.
const TRIES: u32 = 10;
