//! What a simulated server is: a value that is told of what happens, and says what it does about it.
//!
//! One service is all servers that belong together: a Redis server with its replicas and Sentinels, or an ensemble. Its
//! hosts are numbered from 0. A service has no threads and no clock of its own, so a test can use one without a world.

use std::time::Duration;

/// A connection of a client. No other has the same number, ever.
pub type Connection = u64;

/// One of a service's hosts.
pub type Host = usize;

/// Servers that belong together.
///
/// What always holds: a host that isn't up, or is paused, is told of nothing. What a service tells itself between its
/// hosts, such as a stream of replication, is its own affair: it keeps such messages, and asks to be woken for them.
pub trait Service: Send {
    /// How many hosts there are.
    fn hosts(&self) -> usize;

    /// A client has connected.
    fn connected(&mut self, io: &mut Io<'_>, at: Host, connection: Connection);

    /// Bytes have come from a client, cut as the network cut them.
    fn received(&mut self, io: &mut Io<'_>, at: Host, connection: Connection, bytes: &[u8]);

    /// The client has closed a connection, or it has failed. Nothing comes of it, and nothing goes to it, any more.
    fn closed(&mut self, io: &mut Io<'_>, at: Host, connection: Connection);

    /// The time has come for which it asked to be woken. It may be woken earlier or for nothing.
    fn woken(&mut self, io: &mut Io<'_>);

    /// Something has happened to a host.
    fn fault(&mut self, io: &mut Io<'_>, at: Host, fault: Fault);

    /// The names of faults that only this service knows, for [`Fault::Own`].
    fn own_faults(&self) -> &'static [&'static str] {
        &[]
    }

    /// What its clients have left in it, a line for each thing, for a judge of what stays behind and for people.
    fn contents(&self) -> Vec<String>;

    /// What ends with a lease or a session, and in how long, as the leader knows it. Nothing if there is no leader.
    fn lasting(&self, _now: Duration) -> Vec<(String, Duration)> {
        Vec::new()
    }

    /// What one host has, whether it is believed or not.
    fn contents_of(&self, _: Host) -> Vec<String> {
        Vec::new()
    }
}

/// What happens to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed. Its connections are gone: [`Service::closed`] isn't called for them.
    Kill,
    /// It is started again, with what it had on its disk or with an empty one.
    Start { with_data: bool },
    /// It stands still, as by SIGSTOP, and so does what it does by time.
    Pause,
    /// It goes on.
    Resume,
    /// It reaches no other host of its service, and none reaches it; clients may.
    Cut,
    /// It reaches them again.
    Heal,
    /// Its clock was set: [`Io::wall`] differs by so many microseconds from what it was.
    StepClock { micros: i64 },
    /// The fault with this place in [`Service::own_faults`].
    Own(usize),
}

/// What a service can do while it is told something.
pub struct Io<'a> {
    /// The time since the world began, which no host's clock shows exactly.
    pub now: Duration,
    /// What each host's clock says is the time since 1970.
    pub walls: &'a [Duration],
    pub random: &'a mut fastrand::Rng,
    /// What is done behind this call, in this order.
    pub done: Vec<Done>,
}

/// What a service does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Send(Connection, Vec<u8>),
    /// Closes it, behind what was sent on it.
    Close(Connection),
    /// Has the service woken at that time at the latest. The earliest of all such times counts.
    WakeAt(Duration),
    /// A line of the history.
    Log(String),
}

impl Io<'_> {
    /// What the host's clock says is the time since 1970.
    pub fn wall(&self, at: Host) -> Duration {
        self.walls[at]
    }

    pub fn send(&mut self, connection: Connection, bytes: Vec<u8>) {
        self.done.push(Done::Send(connection, bytes));
    }

    pub fn close(&mut self, connection: Connection) {
        self.done.push(Done::Close(connection));
    }

    pub fn wake_at(&mut self, time: Duration) {
        self.done.push(Done::WakeAt(time));
    }

    pub fn log(&mut self, line: String) {
        self.done.push(Done::Log(line));
    }
}
