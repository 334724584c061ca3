//! Requests to etcd's gateway, and what is the same in the answers of two servers.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crosslock_world::service::Connection;
use httparse::{EMPTY_HEADER, Response, Status};
use serde_json::{Deserializer, Value};

use crate::peers::Peer;

/// What was said without what is different at each server, or a code and a text.
pub type Answer = Result<Vec<Value>, (u64, String)>;

pub fn encoded(text: &str) -> Value {
    BASE64.encode(text).into()
}

pub trait Asked: Peer {
    fn begin(&mut self, to: Connection, path: &str, body: &str) {
        let demands = match path {
            "/v3/maintenance/status" => "",
            _ => "Grpc-Metadata-Hasleader: true\r\n",
        };
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: etcd\r\n{demands}Content-Length: {length}\r\n\r\n"
        );
        self.send(to, &[head, body.to_owned()].concat().into_bytes());
    }

    /// The next whole answer.
    fn answer(&mut self, from: Connection) -> Answer {
        for _ in 0..20_000 {
            let (come, _) = self.come(from);
            if let Some((answer, length, true)) = parse(come) {
                come.drain(..length);
                return answer;
            }
        }
        panic!("no answer")
    }

    /// What a stream has told after so much time.
    fn told(&mut self, from: Connection, after: Duration) -> Vec<Value> {
        self.wait(after);
        let mut known = 0;
        loop {
            let (come, _) = self.come(from);
            if come.len() == known {
                let told = parse(come).and_then(|(told, ..)| told.ok());
                return told.unwrap_or_default();
            }
            known = come.len();
        }
    }

    fn ask(&mut self, to: Connection, path: &str, body: &Value) -> Answer {
        self.begin(to, path, &body.to_string());
        self.answer(to)
    }
}

impl<P: Peer + ?Sized> Asked for P {}

/// The answer that the bytes begin with, its length, and whether it is whole.
fn parse(bytes: &[u8]) -> Option<(Answer, usize, bool)> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut response = Response::new(&mut headers);
    let Status::Complete(head) = response.parse(bytes).expect("HTTP") else {
        return None;
    };
    let mut headers = response.headers.iter();
    let length = headers.find(|header| header.name.eq_ignore_ascii_case("Content-Length"));
    let (body, length, is_whole) = match length {
        Some(length) => {
            let length = str::from_utf8(length.value).expect("a text");
            let length: usize = length.parse().expect("a length");
            (bytes.get(head..head + length)?.to_vec(), length, true)
        }
        None => chunks(&bytes[head..])?,
    };
    let lines = Deserializer::from_slice(&body).into_iter::<Value>();
    let lines: Vec<_> = lines.map(|line| line.expect("JSON")).collect();
    let refused = lines.iter().find_map(|line| {
        let error = line.get("error")?;
        let error = if error.is_object() { error } else { line };
        let code = error.get("code").or(error.get("grpc_code"))?.as_u64()?;
        Some((code, error["message"].as_str()?.to_owned()))
    });
    let answer = match refused {
        Some(refused) => Err(refused),
        None => Ok(lines.into_iter().map(blanked).collect()),
    };
    Some((answer, head + length, is_whole))
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

/// Leaves out what is different at each server, what passes with time, and what the library doesn't read of a status.
fn blanked(mut value: Value) -> Value {
    const OWN: &str = "cluster_id member_id raft_term leader raftTerm raftIndex raftAppliedIndex dbSize dbSizeInUse \
                       version errors";
    let is_status = value.get("raftTerm").is_some();
    match &mut value {
        Value::Object(fields) => {
            if fields.contains_key("grantedTTL") {
                fields.remove("TTL");
            }
            // Keys have a version, too.
            let is_own = |name: &str| {
                OWN.split(' ').any(|own| own == name) && (is_status || name != "version")
            };
            fields.retain(|name, _| !is_own(name));
            fields
                .values_mut()
                .for_each(|value| *value = blanked(value.take()));
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| *value = blanked(value.take())),
        _ => {}
    }
    value
}
