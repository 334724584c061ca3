//! What etcd shows of the locks.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Look, NAMESPACE, Place, TOKENS_OF_REVISION, View};
use crate::history::Mode;
use crate::names::NAMES;

/// One that hangs doesn't keep the others from being looked at for long.
const TIMEOUT: Duration = Duration::from_secs(1);

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
    let end = format!("{NAMESPACE}0");
    let range = json!({ "key": STANDARD.encode(format!("{NAMESPACE}/")), "range_end": STANDARD.encode(end) });
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
    let (key, value) = (text(&entry["key"]), text(&entry["value"]));
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
    let key = STANDARD.encode(format!("{NAMESPACE}/{name}/value"));
    let answer = post(addr, "kv/range", &json!({ "key": key }))?;
    let value = text(&answer["kvs"][0]["value"]);
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
    let range = json!({ "key": STANDARD.encode("-") });
    let revision = post(addr, "kv/range", &range)?["header"]["revision"].clone();
    let body = json!({ "revision": revision, "physical": true });
    post(addr, "kv/compaction", &body).map(drop)
}

pub(crate) fn delete(addr: SocketAddr, key: &str) -> io::Result<()> {
    let body = json!({ "key": STANDARD.encode(key) });
    post(addr, "kv/deleterange", &body).map(drop)
}

/// Ends the lease of a key.
pub(crate) fn revoke_lease_of(addr: SocketAddr, key: &str) -> io::Result<()> {
    let answer = post(addr, "kv/range", &json!({ "key": STANDARD.encode(key) }))?;
    let lease = answer["kvs"][0]["lease"].clone();
    if lease.is_null() {
        return Ok(());
    }
    post(addr, "lease/revoke", &json!({ "ID": lease })).map(drop)
}

/// Calls the gateway.
fn post(addr: SocketAddr, path: &str, body: &Value) -> io::Result<Value> {
    let mut stream = TcpStream::connect_timeout(&addr, TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let body = body.to_string();
    // By 1.0 an answer ends with its connection.
    let request = format!(
        "POST /v3/{path} HTTP/1.0\r\nHost: {addr}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let whole = answer.split_once("\r\n\r\n");
    let found = whole.filter(|(head, _)| head.contains(" 200 "));
    let (_, body) = found.ok_or_else(|| io::Error::other(answer.clone()))?;
    Ok(serde_json::from_str(body)?)
}

fn text(field: &Value) -> String {
    let bytes = STANDARD.decode(field.as_str().unwrap_or_default());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// A number is a text there, and left out if it is zero.
fn number(field: &Value) -> u64 {
    let text = field.as_str().and_then(|text| text.parse().ok());
    text.unwrap_or_default()
}
