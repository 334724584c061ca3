//! Requests and answers as etcd's gateway reads and writes them: HTTP/1.1 around JSON.

use httparse::{EMPTY_HEADER, Header, Status};
use serde_json::{Value, json};

/// A request to the gateway.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// Whether a member without a leader is to refuse it at once.
    pub(super) wants_leader: bool,
    /// Which its member has given for a login.
    pub(super) token: String,
}

/// Why a request is refused: a code of gRPC, and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(u16, &'static str);

impl Refusal {
    pub(super) const MALFORMED: Self = Self(3, "not understood, or not simulated");
    pub(super) const TWICE: Self = Self(3, "etcdserver: duplicate key given in txn request");
    pub(super) const TOO_MANY: Self = Self(3, "etcdserver: too many operations in txn request");
    pub(super) const NO_LEASE: Self = Self(5, "etcdserver: requested lease not found");
    pub(super) const LEASE_EXISTS: Self = Self(9, "etcdserver: lease already exists");
    pub(super) const NO_LEADER: Self = Self(14, "etcdserver: no leader");
    pub(super) const LEADER_CHANGED: Self = Self(14, "etcdserver: leader changed");
    pub(super) const TIMED_OUT: Self = Self(14, "etcdserver: request timed out");
    pub(super) const UNKNOWN_TOKEN: Self = Self(16, "etcdserver: invalid auth token");
    pub(super) const OVERDUE: Self = Self(2, "context deadline exceeded");
}

/// The first request of what has come on a connection, and how long it is. `None`: there isn't all of it.
///
/// # Errors
///
/// If it isn't one.
pub(super) fn first(input: &[u8]) -> Result<Option<(Question, usize)>, ()> {
    let mut headers = [EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    let Status::Complete(head) = request.parse(input).map_err(drop)? else {
        return Ok(None);
    };
    let length = value(request.headers, "Content-Length").ok_or(())?;
    let length = length.parse::<usize>().map_err(drop)?;
    let end = head.checked_add(length).ok_or(())?;
    let Some(body) = input.get(head..end) else {
        return Ok(None);
    };
    let question = Question {
        path: request.path.unwrap_or_default().to_owned(),
        body: body.to_vec(),
        wants_leader: value(request.headers, "Grpc-Metadata-Hasleader") == Some("true"),
        token: value(request.headers, "Authorization")
            .unwrap_or_default()
            .to_owned(),
    };
    Ok(Some((question, end)))
}

fn value<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a str> {
    let mut headers = headers.iter();
    let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(found.value).ok().map(str::trim)
}

/// The answer to a request that isn't a stream.
pub(super) fn answer(result: &Result<Value, Refusal>) -> Vec<u8> {
    match result {
        Ok(value) => whole("200 OK", value),
        Err(Refusal(code, text)) => {
            let told = json!({ "error": text, "message": text, "code": code });
            whole("503 Service Unavailable", &told)
        }
    }
}

/// A stream that doesn't begin.
pub(super) fn no_stream(why: &Refusal) -> Vec<u8> {
    whole("503 Service Unavailable", &why.in_stream())
}

fn whole(status: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// How a stream begins.
pub(super) const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// One message of a stream.
pub(super) fn message(result: &Value) -> Vec<u8> {
    chunk(&json!({ "result": result }))
}

/// How a stream ends that has begun, with the reason if there is one.
pub(super) fn end(why: Option<&Refusal>) -> Vec<u8> {
    let why = why.map(|why| chunk(&why.in_stream()));
    [why.unwrap_or_default(), b"0\r\n\r\n".to_vec()].concat()
}

impl Refusal {
    /// As a stream tells of it.
    fn in_stream(&self) -> Value {
        json!({ "error": { "grpc_code": self.0, "message": self.1 } })
    }
}

fn chunk(body: &Value) -> Vec<u8> {
    let line = format!("{body}\n");
    format!("{:x}\r\n{line}\r\n", line.len()).into_bytes()
}
