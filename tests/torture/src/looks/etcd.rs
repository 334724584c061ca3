//! What etcd shows of the locks.

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Look, NAMESPACE, Place, TIMEOUT, TOKENS_OF_REVISION, View};
use crate::history::Mode;
use crate::names::NAMES;
use support::gateway::{self, decoded, encoded, number};

/// Looks at a member of etcd.
#[derive(Debug)]
pub(crate) struct EtcdLook(SocketAddr);

impl EtcdLook {
    pub(crate) fn open(addr: SocketAddr) -> Box<dyn Look> {
        Box::new(Self(addr))
    }
}

impl Look for EtcdLook {
    fn look(&mut self) -> Option<View> {
        view_at(self.0).ok()
    }
}

/// All keys of all names.
pub(crate) fn view_at(addr: SocketAddr) -> io::Result<View> {
    let [begin, end] = ["/", "0"].map(|end| encoded(&format!("{NAMESPACE}{end}")));
    let range = json!({ "key": begin, "range_end": end });
    let answer = post(addr, "kv/range", &range)?;
    let mut view = View {
        term: number(&answer["header"]["raft_term"]),
        ..View::default()
    };
    for name in NAMES {
        view.line(name);
    }
    for entry in answer["kvs"].as_array().into_iter().flatten() {
        take_in(&mut view, entry);
    }
    for line in &mut view.lines {
        line.places.sort_by_key(|place| place.revision);
    }
    Ok(view)
}

fn take_in(view: &mut View, entry: &Value) {
    let (key, value) = (decoded(&entry["key"]), decoded(&entry["value"]));
    let mut parts = key.split('/').skip(1);
    let (Some(name), Some(kind)) = (parts.next(), parts.next()) else {
        return;
    };
    let last = parts.next().unwrap_or_default();
    let is_leased = number(&entry["lease"]) != 0;
    if kind == "w" {
        view.owned.push(key.clone());
    }
    if !is_leased && kind != "value" {
        view.bare.push(key.clone());
    }
    let revision = number(&entry["create_revision"]);
    let line = view.line(name);
    match kind {
        "w" => line.places.push(Place {
            token: token_of(&value).unwrap_or(revision * TOKENS_OF_REVISION + 1),
            revision,
            mode: mode_of(&value),
            owner: owner_of(&value),
            key,
        }),
        "b" => line.broken.push(last.to_owned()),
        _ => {}
    }
}

/// The second line.
fn owner_of(text: &str) -> String {
    text.split_once('\n')
        .map_or_else(String::new, |(_, owner)| owner.to_owned())
}

/// Of a lease that isn't the first of its place.
fn token_of(text: &str) -> Option<u64> {
    let mut words = text.lines().next()?.split(' ');
    words.find_map(|word| word.strip_prefix("token=")?.parse().ok())
}

/// The first word; of permits, the number behind it.
fn mode_of(text: &str) -> Mode {
    let mut words = text.split([' ', '\n', '/']);
    match words.next() {
        Some("r") => Mode::Read,
        Some("p") => Mode::Permits(words.next().and_then(|word| word.parse().ok()).unwrap_or(0)),
        _ => Mode::Exclusive,
    }
}

/// The number that is stored for a name.
pub(crate) fn value_at(addr: SocketAddr, name: &str) -> io::Result<u64> {
    let key = encoded(&format!("{NAMESPACE}/{name}/value"));
    let answer = post(addr, "kv/range", &json!({ "key": key }))?;
    let value = decoded(&answer["kvs"][0]["value"]);
    Ok(value.parse().unwrap_or_default())
}

/// Leases that last for less than an hour.
pub(crate) fn short_leases(addr: SocketAddr) -> io::Result<Vec<String>> {
    let mut short = Vec::new();
    let answer = post(addr, "lease/leases", &json!({}))?;
    for lease in answer["leases"].as_array().into_iter().flatten() {
        let told = post(addr, "lease/timetolive", &json!({ "ID": lease["ID"] }))?;
        if (1..3600).contains(&number(&told["grantedTTL"])) {
            short.push(lease["ID"].to_string());
        }
    }
    Ok(short)
}

/// Forgets all revisions but the newest.
pub(crate) fn compact(addr: SocketAddr) -> io::Result<()> {
    let range = json!({ "key": encoded("-") });
    let revision = post(addr, "kv/range", &range)?["header"]["revision"].clone();
    let body = json!({ "revision": revision, "physical": true });
    post(addr, "kv/compaction", &body).map(drop)
}

pub(crate) fn delete(addr: SocketAddr, key: &str) -> io::Result<()> {
    let body = json!({ "key": encoded(key) });
    post(addr, "kv/deleterange", &body).map(drop)
}

/// Ends the lease of a key.
pub(crate) fn revoke_lease_of(addr: SocketAddr, key: &str) -> io::Result<()> {
    let answer = post(addr, "kv/range", &json!({ "key": encoded(key) }))?;
    let lease = answer["kvs"][0]["lease"].clone();
    if lease.is_null() {
        return Ok(());
    }
    post(addr, "lease/revoke", &json!({ "ID": lease })).map(drop)
}

fn post(addr: SocketAddr, path: &str, body: &Value) -> io::Result<Value> {
    gateway::ask(addr, &format!("/v3/{path}"), body, TIMEOUT)
}
