//! Watches: each tells of what a member carries out from then on.

use crosslock_world::service::{Connection, Host, Io};
use serde_json::{Map, Value, json};

use super::http::{self, Refusal};
use super::request::{Create, contains};
use super::store::{Event, put_number};
use super::{Etcd, Timer};

impl Create {
    fn is_about(&self, event: &Event) -> bool {
        (event.is_delete || self.filters.is_empty())
            && contains(&self.key, &self.range_end, &event.now.key)
    }
}

impl Etcd {
    /// Begins the watches of a stream.
    pub(super) fn watch(
        &mut self,
        io: &mut Io<'_>,
        (at, to): (Host, Connection),
        all: Vec<Create>,
    ) {
        io.send(to, http::STREAM.to_vec());
        for id in 0..all.len() {
            self.say(io, (at, to), id, ("created", true.into()));
        }
        if let Some(client) = self.clients.get_mut(&to) {
            client.watches = all;
        }
    }

    /// Sends one message of a stream, with the header that counts now.
    fn say(
        &mut self,
        io: &mut Io<'_>,
        (at, to): (Host, Connection),
        id: usize,
        (field, value): (&str, Value),
    ) {
        let mut message = Map::new();
        message.insert("header".into(), self.header(at));
        put_number(&mut message, "watch_id", id);
        message.insert(field.into(), value);
        io.send(to, http::message(&message.into()));
    }

    /// Tells of what a member has carried out last.
    pub(super) fn tell(&mut self, io: &mut Io<'_>, at: Host) {
        let events = &self.members[at].state.events;
        let mut messages = Vec::new();
        let here = self.clients.iter().filter(|(_, client)| client.at == at);
        for (to, client) in here.filter(|_| !events.is_empty()) {
            for (id, watch) in client.watches.iter().enumerate() {
                let about = events.iter().filter(|event| watch.is_about(event));
                let about: Vec<_> = about.map(Event::to_json).collect();
                messages.extend((!about.is_empty()).then(|| (*to, id, json!(about))));
            }
        }
        for (to, id, told) in messages {
            self.say(io, (at, to), id, ("events", told));
        }
    }

    /// Ends the streams of a member that has had no leader for long.
    pub(super) fn end_streams(&mut self, io: &mut Io<'_>, at: Host) {
        if !self.is_long_lonely(at) {
            let member = &self.members[at];
            if member.health.is_at_work() && member.leader.is_none() {
                self.within(io, 500..1000, Timer::EndStreams(at));
            }
            return;
        }
        let here = self.clients.iter();
        let here = here.filter(|(_, client)| client.at == at && !client.watches.is_empty());
        for to in here.map(|(to, _)| *to).collect::<Vec<_>>() {
            self.send(io, to, http::end(Some(&Refusal::NO_LEADER)));
            self.serve(io, to);
        }
    }
}
