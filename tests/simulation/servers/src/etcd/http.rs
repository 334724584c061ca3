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
    /// Of a login.
    pub(super) token: Option<String>,
    /// Whether the connection ends with the answer.
    pub(super) is_last: bool,
}

/// Why a request is refused: a code of gRPC, and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) text: String,
}

pub(super) const UNKNOWN: u16 = 2;
pub(super) const INVALID: u16 = 3;
pub(super) const NOT_FOUND: u16 = 5;
pub(super) const EXHAUSTED: u16 = 8;
pub(super) const PRECONDITION: u16 = 9;
pub(super) const OUT_OF_RANGE: u16 = 11;
pub(super) const UNIMPLEMENTED: u16 = 12;
pub(super) const UNAVAILABLE: u16 = 14;
pub(super) const UNAUTHENTICATED: u16 = 16;

impl Refusal {
    /// With a text as etcd begins all of its own.
    pub(super) fn new(code: u16, text: &str) -> Self {
        Self {
            code,
            text: format!("etcdserver: {text}"),
        }
    }

    pub(super) fn no_leader() -> Self {
        Self::new(UNAVAILABLE, "no leader")
    }

    /// The status of HTTP, and its words.
    fn status(&self) -> (u16, &'static str) {
        match self.code {
            INVALID | OUT_OF_RANGE => (400, "Bad Request"),
            UNAUTHENTICATED => (401, "Unauthorized"),
            NOT_FOUND => (404, "Not Found"),
            PRECONDITION => (412, "Precondition Failed"),
            EXHAUSTED => (429, "Too Many Requests"),
            UNIMPLEMENTED => (501, "Not Implemented"),
            UNAVAILABLE => (503, "Service Unavailable"),
            _ => (500, "Internal Server Error"),
        }
    }

    /// As Go writes it.
    pub(super) fn in_go(&self) -> String {
        let code = match self.code {
            INVALID => "InvalidArgument",
            UNAUTHENTICATED => "Unauthenticated",
            _ => "Unknown",
        };
        format!("rpc error: code = {code} desc = {}", self.text)
    }

    /// As a stream tells of it.
    fn in_stream(&self) -> Value {
        let (status, words) = self.status();
        let error = json!({
            "grpc_code": self.code, "http_code": status, "http_status": words, "message": self.text,
        });
        json!({ "error": error })
    }
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
    let length = match value(request.headers, "Content-Length") {
        Some(length) => length.parse::<usize>().map_err(drop)?,
        None => 0,
    };
    if request.method != Some("POST") || value(request.headers, "Transfer-Encoding").is_some() {
        return Err(());
    }
    let Some(body) = input.get(head..head + length) else {
        return Ok(None);
    };
    let says = |name: &str, word: &str| value(request.headers, name) == Some(word);
    let question = Question {
        path: request.path.unwrap_or_default().to_owned(),
        body: body.to_vec(),
        wants_leader: says("Grpc-Metadata-Hasleader", "true"),
        token: value(request.headers, "Authorization").map(str::to_owned),
        is_last: says("Connection", "close"),
    };
    Ok(Some((question, head + length)))
}

fn value<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a str> {
    let mut headers = headers.iter();
    let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(found.value).ok().map(str::trim)
}

/// What Go collects before it sends an answer of unknown length.
const BUFFER: usize = 2048;

/// The answer to a request that isn't a stream.
pub(super) fn answer(result: &Result<Value, Refusal>) -> Vec<u8> {
    match result {
        Ok(value) => {
            let body = value.to_string();
            let mut bytes = head((200, "OK"), true);
            if body.len() <= BUFFER {
                bytes.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).bytes());
            } else {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                bytes.extend(chunk(body.as_bytes()));
                bytes.extend(LAST);
            }
            bytes
        }
        Err(refusal) => {
            let text = &refusal.text;
            let body = json!({ "error": text, "message": text, "code": refusal.code }).to_string();
            let mut bytes = head(refusal.status(), false);
            bytes.extend(
                b"Trailer: Grpc-Trailer-Content-Type\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            bytes.extend(chunk(body.as_bytes()));
            bytes.extend(b"0\r\nGrpc-Trailer-Content-Type: application/grpc\r\n\r\n");
            bytes
        }
    }
}

/// The answer to a body that isn't understood.
pub(super) fn not_understood(code: u16, text: &str) -> Vec<u8> {
    let refusal = Refusal {
        code,
        text: text.to_owned(),
    };
    let body = json!({ "error": text, "message": text, "code": code }).to_string();
    let mut bytes = head(refusal.status(), false);
    bytes.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).bytes());
    bytes
}

/// The answer where there is nothing at a path.
pub(super) fn nothing_there() -> Vec<u8> {
    let head = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\n";
    let rest = "X-Content-Type-Options: nosniff\r\nContent-Length: 10\r\n\r\nNot Found\n";
    [head, rest].concat().into_bytes()
}

/// How a stream begins.
pub(super) fn stream() -> Vec<u8> {
    let mut bytes = head((200, "OK"), true);
    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
    bytes
}

/// One message of a stream.
pub(super) fn message(result: &Value) -> Vec<u8> {
    chunk(format!("{}\n", json!({ "result": result })).as_bytes())
}

/// How a stream ends that has begun, with the reason if there is one.
pub(super) fn end(why: Option<&Refusal>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(why) = why {
        bytes = chunk(why.in_stream().to_string().as_bytes());
    }
    bytes.extend(LAST);
    bytes
}

/// A stream that doesn't begin.
pub(super) fn no_stream(why: &Refusal) -> Vec<u8> {
    let mut bytes = head(why.status(), false);
    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
    bytes.extend(end(Some(why)));
    bytes
}

const LAST: &[u8] = b"0\r\n\r\n";

fn head((status, words): (u16, &str), is_answered: bool) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {words}\r\nContent-Type: application/json\r\n");
    if is_answered {
        head += "Grpc-Metadata-Content-Type: application/grpc\r\n";
    }
    head.into_bytes()
}

fn chunk(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\r\n");
    bytes
}
