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
            if let Some((answer, true)) = parse(come) {
                come.clear();
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
                let told = parse(come).and_then(|(told, _)| told.ok());
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

/// The answer that the bytes are, and whether it is whole.
fn parse(bytes: &[u8]) -> Option<(Answer, bool)> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut response = Response::new(&mut headers);
    let Status::Complete(head) = response.parse(bytes).expect("HTTP") else {
        return None;
    };
    let mut headers = response.headers.iter();
    let length = headers.find(|header| header.name.eq_ignore_ascii_case("Content-Length"));
    let (body, is_whole) = match length {
        Some(length) => {
            let length = str::from_utf8(length.value).expect("a text");
            let length: usize = length.parse().expect("a length");
            (bytes.get(head..head + length)?.to_vec(), true)
        }
        None => chunks(&bytes[head..]),
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
    Some((answer, is_whole))
}

/// The bodies of all chunks that have come whole, and whether the last one was among them. No JSON has such ends of
/// lines as are between them.
fn chunks(bytes: &[u8]) -> (Vec<u8>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.split("\r\n").collect();
    let (_, whole) = lines.split_last().expect("there is one");
    let chunks = whole.chunks_exact(2).take_while(|chunk| chunk[0] != "0");
    let bodies = chunks.map(|chunk| chunk[1].as_bytes());
    let is_whole = lines.chunks(2).any(|chunk| chunk[0] == "0") && text.ends_with("\r\n\r\n");
    (bodies.collect::<Vec<_>>().concat(), is_whole)
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
