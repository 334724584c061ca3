//! Watches: each tells of what a member carries out from then on.

use crosslock_world::service::{Connection, Host, Io};
use serde_json::{Map, Value, json};

use super::http::{self, Question, Refusal};
use super::request::Create;
use super::store::{Event, put_number};
use super::{Etcd, Timer};

/// The watches of one connection.
#[derive(Debug)]
pub(super) struct Stream {
    /// Whether it ends when its member has had no leader for some time.
    wants_leader: bool,
    has_begun: bool,
    watches: Vec<Watch>,
}

#[derive(Debug)]
struct Watch {
    id: usize,
    create: Create,
    /// It tells of what happens from that revision on.
    from: i64,
    /// Whether that was before it was asked for, and hasn't been told yet.
    is_behind: bool,
}

impl Watch {
    fn is_about(&self, event: &Event) -> bool {
        let is_wanted = if event.is_delete {
            self.create.deletes
        } else {
            self.create.puts
        };
        is_wanted && self.create.bounds.contains(&event.now.key) && event.now.modified >= self.from
    }
}

impl Etcd {
    /// Begins the watches of a stream.
    pub(super) fn watch(
        &mut self,
        io: &mut Io<'_>,
        (at, to): (Host, Connection),
        creates: Vec<Create>,
        question: &Question,
    ) {
        let denied = match &self.user {
            Some(_) => self.know(at, question.token.as_deref()).err(),
            None => None,
        };
        let denied = denied.map(|why| why.in_go());
        self.set_stream(
            to,
            Stream {
                wants_leader: question.wants_leader,
                has_begun: false,
                watches: Vec::new(),
            },
        );
        for create in creates {
            let is_empty = create.bounds.is_empty();
            let empty = || is_empty.then(|| "mvcc: watcher range is empty".to_owned());
            let why = denied.clone().or_else(empty);
            match why {
                Some(why) => {
                    let fields = json!({
                        "watch_id": "-1", "created": true, "canceled": true, "cancel_reason": why,
                    });
                    self.say(io, (at, to), 0, fields);
                }
                None => self.begin_watch(io, (at, to), create),
            }
        }
    }

    fn begin_watch(&mut self, io: &mut Io<'_>, (at, to): (Host, Connection), create: Create) {
        let revision = self.members[at].state.revision;
        let id = self.watches(to).len();
        let from = match create.from {
            0 => revision + 1,
            from => from,
        };
        let is_behind = from <= revision;
        if is_behind {
            self.within(io, 0..100, Timer::Sync(to));
        }
        let watch = Watch {
            id,
            create,
            from,
            is_behind,
        };
        self.watches(to).push(watch);
        self.say(io, (at, to), id, json!({ "created": true }));
    }

    fn set_stream(&mut self, to: Connection, stream: Stream) {
        if let Some(client) = self.clients.get_mut(&to) {
            client.stream = Some(stream);
        }
    }

    fn watches(&mut self, to: Connection) -> &mut Vec<Watch> {
        let stream = self
            .clients
            .get_mut(&to)
            .and_then(|client| client.stream.as_mut());
        &mut stream.expect("it has a stream").watches
    }

    /// Sends one message of a stream, with the header that counts now.
    fn say(&mut self, io: &mut Io<'_>, (at, to): (Host, Connection), id: usize, fields: Value) {
        let mut message = Map::new();
        message.insert("header".into(), self.header(at));
        put_number(&mut message, "watch_id", id);
        if let Value::Object(fields) = fields {
            message.extend(fields);
        }
        self.say_as_is(io, to, &message.into());
    }

    fn say_as_is(&mut self, io: &mut Io<'_>, to: Connection, message: &Value) {
        let stream = self
            .clients
            .get_mut(&to)
            .and_then(|client| client.stream.as_mut());
        let Some(stream) = stream else {
            return;
        };
        let mut bytes = Vec::new();
        if !std::mem::replace(&mut stream.has_begun, true) {
            bytes = http::stream();
        }
        bytes.extend(http::message(message));
        io.send(to, bytes);
    }

    /// A member has carried out what happened from that revision on.
    pub(super) fn tell(&mut self, io: &mut Io<'_>, at: Host, from: i64) {
        let here = self.clients.iter().filter(|(_, client)| client.at == at);
        let mut messages = Vec::new();
        for (to, client) in here {
            let watches = client.stream.iter().flat_map(|stream| &stream.watches);
            for watch in watches.filter(|watch| !watch.is_behind) {
                messages.extend(
                    self.events(at, from, watch)
                        .map(|told| (*to, watch.id, told)),
                );
            }
        }
        for (to, id, told) in messages {
            self.say(io, (at, to), id, told);
        }
    }

    /// What a watch tells of what has happened since; `None`: nothing.
    fn events(&self, at: Host, from: i64, watch: &Watch) -> Option<Value> {
        let events = self.members[at].state.events(from).iter();
        let events = events.filter(|event| watch.is_about(event));
        let events: Vec<_> = events.map(Event::to_json).collect();
        (!events.is_empty()).then(|| json!({ "events": events }))
    }

    /// Tells of the past, or that it is forgotten.
    pub(super) fn sync(&mut self, io: &mut Io<'_>, to: Connection) {
        let Some((at, stream)) = self
            .clients
            .get_mut(&to)
            .and_then(|client| Some((client.at, client.stream.as_mut()?)))
        else {
            return;
        };
        if !self.members[at].is_running() {
            return self.within(io, 50..100, Timer::Sync(to));
        }
        let compacted = self.members[at].state.compacted;
        let watches = std::mem::take(&mut stream.watches);
        let mut left = Vec::new();
        for mut watch in watches {
            if !std::mem::take(&mut watch.is_behind) {
                left.push(watch);
            } else if watch.from < compacted {
                let mut header = self.header(at);
                header
                    .as_object_mut()
                    .expect("an object")
                    .remove("revision");
                let mut message =
                    json!({ "canceled": true, "compact_revision": compacted.to_string() });
                message["header"] = header;
                if watch.id > 0 {
                    message["watch_id"] = watch.id.to_string().into();
                }
                self.say_as_is(io, to, &message);
            } else {
                if let Some(told) = self.events(at, watch.from, &watch) {
                    self.say(io, (at, to), watch.id, told);
                }
                left.push(watch);
            }
        }
        *self.watches(to) = left;
    }

    /// Ends the streams that demand a leader, where there has been none for long.
    pub(super) fn end_streams(&mut self, io: &mut Io<'_>, at: Host) {
        if !self.is_long_lonely(at) {
            let member = &self.members[at];
            if member.is_running() && member.leader.is_none() {
                self.within(io, 500..1000, Timer::EndStreams(at));
            }
            return;
        }
        let is_such = |stream: &Stream| stream.wants_leader;
        let here = self.clients.iter().filter(|(_, client)| client.at == at);
        let ended = here.filter_map(|(to, client)| {
            Some((*to, client.stream.as_ref().filter(|one| is_such(one))?))
        });
        let ended: Vec<_> = ended.map(|(to, stream)| (to, stream.has_begun)).collect();
        for (to, has_begun) in ended {
            let why = Refusal::no_leader();
            let bytes = if has_begun {
                http::end(Some(&why))
            } else {
                http::no_stream(&why)
            };
            self.send(io, to, bytes);
            self.serve(io, to);
        }
    }
}
