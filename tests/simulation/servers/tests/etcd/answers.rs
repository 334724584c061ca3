//! Answers of etcd's gateway, and what is the same in those of two servers.

use httparse::{EMPTY_HEADER, Response, Status};
use serde_json::{Value, json};

/// An answer, without what is different at each server.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// In the order of their names.
    pub headers: Vec<(String, String)>,
    /// What a stream has told, or the only thing that was said.
    pub messages: Vec<Value>,
}

/// The answer that the bytes begin with, and its length. `None`: it isn't whole.
pub fn first(bytes: &[u8]) -> Option<(Answer, usize)> {
    let (status, headers, head) = head(bytes)?;
    let is = |name: &str| {
        headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.clone())
    };
    let (body, length) = match is("content-length") {
        Some(length) => {
            let length: usize = length.parse().expect("a length");
            (bytes.get(head..head + length)?.to_vec(), length)
        }
        None => chunks(&bytes[head..])
            .filter(|(_, _, is_whole)| *is_whole)
            .map(|(body, length, _)| (body, length))?,
    };
    let is_same =
        |(name, _): &(String, String)| !name.starts_with("access-control") && name != "date";
    let mut headers: Vec<_> = headers.into_iter().filter(is_same).collect();
    headers
        .iter_mut()
        .filter(|(name, _)| name == "content-length")
        .for_each(|(_, value)| value.clear());
    headers.sort();
    let answer = Answer {
        status,
        headers,
        messages: messages(&body),
    };
    Some((answer, head + length))
}

/// What a stream has told that may go on.
pub fn stream(bytes: &[u8]) -> Vec<Value> {
    let Some((_, _, head)) = head(bytes) else {
        return Vec::new();
    };
    chunks(&bytes[head..]).map_or_else(Vec::new, |(body, _, _)| messages(&body))
}

/// The body of an answer with a length, as it is.
pub fn body(bytes: &[u8]) -> Value {
    let (_, _, head) = head(bytes).expect("a head");
    serde_json::from_slice(&bytes[head..]).expect("JSON")
}

type Head = (u16, Vec<(String, String)>, usize);

fn head(bytes: &[u8]) -> Option<Head> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut response = Response::new(&mut headers);
    let Status::Complete(length) = response.parse(bytes).expect("HTTP") else {
        return None;
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = response.headers.iter();
    let headers = headers.map(|header| (header.name.to_ascii_lowercase(), text(header.value)));
    Some((response.code.expect("a status"), headers.collect(), length))
}

/// The bodies of all chunks that have come whole, their length, and whether the last one was among them.
fn chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize, bool)> {
    let (mut body, mut at) = (Vec::new(), 0);
    while let Ok(Status::Complete((used, size))) = httparse::parse_chunk_size(&bytes[at..]) {
        let size = usize::try_from(size).expect("a size");
        if size == 0 {
            let mut headers = [EMPTY_HEADER; 8];
            let trailer = httparse::parse_headers(&bytes[at + used..], &mut headers);
            let Ok(Status::Complete((rest, _))) = trailer else {
                return None;
            };
            return Some((body, at + used + rest, true));
        }
        let Some(chunk) = bytes.get(at + used..at + used + size + 2) else {
            break;
        };
        body.extend_from_slice(&chunk[..size]);
        at += used + size + 2;
    }
    Some((body, at, false))
}

fn messages(body: &[u8]) -> Vec<Value> {
    let lines = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let text = || json!(String::from_utf8_lossy(body));
    lines
        .map(|line| blanked(line.unwrap_or_else(|_| text())))
        .collect()
}

/// What is different at each server, and what passes with time.
const OWN: [&str; 9] = [
    "cluster_id",
    "member_id",
    "raft_term",
    "leader",
    "raftTerm",
    "raftIndex",
    "raftAppliedIndex",
    "dbSize",
    "dbSizeInUse",
];

fn blanked(mut value: Value) -> Value {
    if value.get("grantedTTL").is_some() {
        // It has begun to run out.
        value["TTL"] = "*".into();
        // They are in any order.
        let keys = value.get_mut("keys").and_then(Value::as_array_mut);
        keys.into_iter()
            .for_each(|keys| keys.sort_by_key(Value::to_string));
    }
    if value.get("dbSize").is_some() {
        value["version"] = "*".into();
    }
    match &mut value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                *value = match OWN.contains(&name.as_str()) {
                    true => "*".into(),
                    false => blanked(value.take()),
                };
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| *value = blanked(value.take())),
        _ => {}
    }
    value
}
