//! What this bench sends to etcd by itself: JSON over a connection that stays open.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use super::shared::Lock;

/// One connection to a member.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    member: SocketAddr,
}

impl Connection {
    pub(crate) fn to(member: SocketAddr) -> Self {
        let stream = TcpStream::connect(member).expect("a member of etcd");
        stream.set_nodelay(true).expect("a socket");
        Connection {
            stream: BufReader::new(stream),
            member,
        }
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Value {
        self.send(path, body);
        let length = self.head().expect("an answer of known length");
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).expect("an answer");
        serde_json::from_slice(&answer).expect("JSON")
    }

    fn send(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let request = format!(
            "POST /v3/{path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.member,
            body.len()
        );
        let mut stream = self.stream.get_ref();
        stream.write_all(request.as_bytes()).expect("a member");
    }

    /// The length of what follows; `None` when it comes in chunks.
    fn head(&mut self) -> Option<usize> {
        let mut length = None;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("an answer");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                return length;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
        }
    }

    /// Waits until the key is deleted, looking from that revision on.
    pub(crate) fn await_deletion(member: SocketAddr, key: &str, from: u64) {
        let mut connection = Connection::to(member);
        let request = json!({"create_request": {
            "key": encoded(key), "start_revision": from.to_string(), "filters": ["NOPUT"],
        }});
        connection.send("watch", &request);
        connection.head();
        let mut line = String::new();
        while !line.contains("DELETE") {
            line.clear();
            let read = connection.stream.read_line(&mut line);
            assert!(read.expect("an event") > 0, "the watch has ended");
        }
    }
}

pub(crate) fn encoded(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// The end of the range of all keys with that prefix.
fn behind(prefix: &str) -> String {
    let (last, rest) = prefix.as_bytes().split_last().expect("a prefix");
    let mut end = rest.to_vec();
    end.push(last + 1);
    encoded(std::str::from_utf8(&end).expect("ASCII"))
}

/// The transactions of a free lock, as large as those of crosslock, by hand.
pub(crate) struct Bare {
    connection: Connection,
    lease: String,
    count: usize,
}

const OWNER: &str = "x\n0b1e6a0e-8d6f-4a63-9a39-3c4c2d1f5e6a/some-host/12345/12346";

impl Bare {
    pub(crate) fn to(member: SocketAddr) -> Self {
        let mut connection = Connection::to(member);
        let granted = connection.post("lease/grant", &json!({"TTL": "60"}));
        Bare {
            lease: granted["ID"].as_str().expect("a lease").to_owned(),
            connection,
            count: 0,
        }
    }

    fn keys(&self) -> [String; 3] {
        let entry = "0b1e6a0e-8d6f-4a63-9a39-3c4c2d1f5e6a";
        ["w", "h", "b"].map(|kind| format!("crosslock/bare/{kind}/{entry}{}", self.count))
    }
}

impl Lock for Bare {
    fn lock(&mut self) -> Option<u64> {
        self.count += 1;
        let [waits, held, broken] = self.keys();
        let [line, all_held] = ["crosslock/bare/w/", "crosslock/bare/h/"];
        let put = |key: &str, value: &str| {
            let (key, value) = (encoded(key), encoded(value));
            json!({"requestPut": {"key": key, "value": value, "lease": self.lease}})
        };
        let range = |prefix: &str| {
            json!({"requestRange": {
                "key": encoded(prefix), "range_end": behind(prefix),
                "sort_target": "CREATE", "sort_order": "ASCEND",
            }})
        };
        let answer = self.connection.post(
            "kv/txn",
            &json!({
                "compare": [
                    {"key": encoded(line), "range_end": behind(line), "target": "CREATE", "create_revision": "0"},
                    {"key": encoded(&broken), "target": "CREATE", "create_revision": "0"},
                ],
                "success": [put(&waits, OWNER), put(&held, ""), range(all_held)],
                "failure": [put(&waits, OWNER), range(line)],
            }),
        );
        assert_eq!(answer["succeeded"], json!(true), "{answer}");
        Some(0)
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        let [waits, _, broken] = self.keys();
        let held = "crosslock/bare/h/";
        let answer = self.connection.post(
            "kv/txn",
            &json!({
                "compare": [{"key": encoded(&waits), "target": "VALUE", "value": encoded(OWNER)}],
                "success": [
                    {"requestDeleteRange": {"key": encoded(&waits)}},
                    {"requestDeleteRange": {"key": encoded(held), "range_end": behind(held)}},
                ],
                "failure": [{"requestRange": {"key": encoded(&broken)}}],
            }),
        );
        assert_eq!(answer["succeeded"], json!(true), "{answer}");
        "done".into()
    }
}

/// What etcd's own package does for a lock, by one client with a lease of its own.
pub(crate) struct Recipe {
    member: SocketAddr,
    connection: Connection,
    key: String,
    lease: String,
}

const RECIPE: &str = "recipe/";

impl Recipe {
    pub(crate) fn to(member: SocketAddr) -> Self {
        let mut connection = Connection::to(member);
        let granted = connection.post("lease/grant", &json!({"TTL": "60"}));
        let lease = granted["ID"].as_str().expect("a lease").to_owned();
        Recipe {
            member,
            connection,
            key: format!("{RECIPE}{lease}"),
            lease,
        }
    }

    fn await_those_ahead(&mut self, own: u64) {
        loop {
            let answer = self.connection.post(
                "kv/range",
                &json!({
                    "key": encoded(RECIPE), "range_end": behind(RECIPE), "limit": "1",
                    "sort_target": "CREATE", "sort_order": "DESCEND",
                    "max_create_revision": (own - 1).to_string(),
                }),
            );
            let Some(key) = answer["kvs"][0]["key"].as_str() else {
                return;
            };
            let from = number(&answer["header"]["revision"]);
            Connection::await_deletion(self.member, &decoded(key), from);
        }
    }
}

impl Lock for Recipe {
    /// Gives the revision of the own key.
    fn lock(&mut self) -> Option<u64> {
        let key = encoded(&self.key);
        let first = json!({"requestRange": {
            "key": encoded(RECIPE), "range_end": behind(RECIPE),
            "sort_target": "CREATE", "sort_order": "ASCEND", "limit": "1",
        }});
        let answer = self.connection.post(
            "kv/txn",
            &json!({
                "compare": [{"key": key, "target": "CREATE", "create_revision": "0"}],
                "success": [{"requestPut": {"key": key, "value": "", "lease": self.lease}}, first],
                "failure": [{"requestRange": {"key": key}}, first],
            }),
        );
        let revision = number(&answer["header"]["revision"]);
        let first = &answer["responses"][1]["response_range"]["kvs"][0];
        if number(&first["create_revision"]) != revision {
            self.await_those_ahead(revision);
            // It checks that its own key is still there.
            let own = self.connection.post("kv/range", &json!({"key": key}));
            assert_eq!(own["count"], json!("1"));
        }
        Some(revision)
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        let deleted = self
            .connection
            .post("kv/deleterange", &json!({"key": encoded(&self.key)}));
        assert_eq!(deleted["deleted"], json!("1"));
        "done".into()
    }
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().unwrap_or("0");
    text.parse().expect("a number")
}

fn decoded(text: &str) -> String {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    String::from_utf8(bytes.expect("base64")).expect("a key of this bench")
}
