//! One Redis server, by itself.

use crosslock_world::service::{Connection, Fault, Host, Io, Service};

use super::about::About;
use super::node::Node;

/// One server, which keeps all that it has written when it is started again with its data.
#[derive(Debug)]
pub struct Single {
    node: Node,
    is_up: bool,
    is_paused: bool,
}

const FAULTS: [&str; 4] = ["flush", "script flush", "evict", "full"];

impl Single {
    /// At an address that nobody is told of, which lets everyone in.
    pub fn new() -> Self {
        Single::at(("10.0.0.1".to_owned(), 6379), None)
    }

    /// At that address, and with that password if there is one.
    pub fn at(address: (String, u16), password: Option<&str>) -> Self {
        Single {
            node: Node::new(About::new(address, "standalone"), password),
            is_up: true,
            is_paused: false,
        }
    }

    fn at_work(&self) -> bool {
        self.is_up && !self.is_paused
    }

    /// Before anything happens.
    fn begin(&mut self, io: &Io<'_>) {
        self.node.set_time(io.now, io.wall(0));
    }

    /// After it has.
    fn end(&mut self, io: &mut Io<'_>) {
        self.node.settle();
        io.done.append(&mut self.node.state.done);
        if let Some(time) = self.node.wakes_at() {
            io.wake_at(time);
        }
    }
}

impl Default for Single {
    fn default() -> Self {
        Single::new()
    }
}

impl Service for Single {
    fn hosts(&self) -> usize {
        1
    }

    fn connected(&mut self, io: &mut Io<'_>, _: Host, connection: Connection) {
        self.begin(io);
        self.node.connected(connection);
        self.end(io);
    }

    fn received(&mut self, io: &mut Io<'_>, _: Host, connection: Connection, bytes: &[u8]) {
        self.begin(io);
        self.node.received(connection, bytes);
        self.end(io);
    }

    fn closed(&mut self, io: &mut Io<'_>, _: Host, connection: Connection) {
        self.begin(io);
        self.node.closed(connection);
        self.end(io);
    }

    fn woken(&mut self, io: &mut Io<'_>) {
        if self.at_work() {
            self.begin(io);
            self.node.state.keys.expire_all();
            self.end(io);
        }
    }

    fn fault(&mut self, io: &mut Io<'_>, _: Host, fault: Fault) {
        match fault {
            Fault::Kill => {
                (self.is_up, self.is_paused) = (false, false);
                self.node.lose_clients();
            }
            Fault::Start { with_data } => {
                self.is_up = true;
                self.node.restart(with_data);
            }
            Fault::Pause => self.is_paused = true,
            Fault::Resume => self.is_paused = false,
            Fault::Cut | Fault::Heal | Fault::StepClock { .. } => {}
            Fault::Own(_) if !self.at_work() => {}
            Fault::Own(which) => {
                self.begin(io);
                self.node
                    .suffer(FAULTS.get(which).copied().unwrap_or_default(), io.random);
            }
        }
        if self.at_work() {
            self.begin(io);
            self.end(io);
        }
    }

    fn own_faults(&self) -> &'static [&'static str] {
        &FAULTS
    }

    fn contents(&self) -> Vec<String> {
        self.node.contents()
    }
}
