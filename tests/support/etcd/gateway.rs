//! Calls of etcd's gateway, each over a connection of its own.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);

/// Asks the server at `addr`, which has so much time; returns what it answers, if that is no error.
pub fn ask(addr: SocketAddr, path: &str, body: &Value, timeout: Duration) -> io::Result<Value> {
    match post(addr, path, None, body, timeout)? {
        (200, answer) => Ok(answer),
        (status, answer) => Err(io::Error::other(format!("{status}: {answer}"))),
    }
}

/// The same, by a user with this token; returns the status and what it answers.
pub(super) fn post(
    addr: SocketAddr,
    path: &str,
    token: Option<&str>,
    body: &Value,
    timeout: Duration,
) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect_timeout(&addr, CONNECTS_WITHIN.min(timeout))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let body = body.to_string();
    let token = token.map_or_else(String::new, |token| format!("Authorization: {token}\r\n"));
    // By 1.0 the answer isn't in chunks, and its end is that of the connection.
    let request = format!(
        "POST {path} HTTP/1.0\r\nHost: {addr}\r\n{token}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::other(String::from_utf8_lossy(&answer).into_owned()))
}

pub(super) fn get(addr: SocketAddr, path: &str, timeout: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&addr, CONNECTS_WITHIN.min(timeout))?;
    stream.set_read_timeout(Some(timeout))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn parse(answer: &[u8]) -> Option<(u16, Value)> {
    let text = str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

/// The same with the time that calls have.
pub(super) fn call(
    addr: SocketAddr,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> io::Result<(u16, Value)> {
    post(addr, path, token, body, TIMEOUT)
}

pub(super) fn names(addr: SocketAddr) -> Vec<String> {
    let Ok((200, answer)) = call(addr, "/v3/cluster/member/list", None, &json!({})) else {
        return Vec::new();
    };
    let members = answer["members"].as_array().into_iter().flatten();
    members
        .filter_map(|member| member["name"].as_str().map(str::to_owned))
        .collect()
}

pub fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

pub fn decoded(field: &Value) -> String {
    let bytes = STANDARD.decode(field.as_str().unwrap_or_default());
    String::from_utf8(bytes.expect("base64")).expect("text")
}

/// Returns a 64-bit number, which is a text in etcd's JSON, and left out if it is zero.
pub fn number(field: &Value) -> u64 {
    let text = field.as_str();
    text.map_or(0, |text| text.parse().expect("a number"))
}
