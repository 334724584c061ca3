//! What a test does with a server of etcd itself, past every proxy.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Etcd;
use super::gateway::{self, decoded, encoded, number};
use super::setup::{ROOT, USER};

/// Short, so that one which hangs doesn't keep a test from asking the others.
const STATUS_WITHIN: Duration = Duration::from_secs(2);

impl Etcd {
    /// Calls the gateway, as a user who may do everything; returns the answer.
    #[track_caller]
    pub fn call(&self, path: &str, body: &Value) -> Value {
        let token = self.kind.setup.login.then(|| login(self, ROOT));
        match gateway::call(self.own_addr(), path, token.as_deref(), body) {
            Ok((200, answer)) => answer,
            other => panic!("{path} {body}: {other:?}"),
        }
    }

    /// Returns its own number, and that of its leader; or nothing if it doesn't answer.
    pub(super) fn leader(&self) -> Option<(u64, u64)> {
        if !self.is_running() {
            return None;
        }
        let path = "/v3/maintenance/status";
        let answer = gateway::ask(self.own_addr(), path, &json!({}), STATUS_WITHIN).ok()?;
        let own = number(&answer["header"]["member_id"]);
        Some((own, number(&answer["leader"])))
    }

    /// Returns how many requests it has begun with, of those whose service or method is such.
    #[track_caller]
    pub fn requests(&self, such: &str) -> u64 {
        let metrics = gateway::get(self.own_addr(), "/metrics", STATUS_WITHIN);
        let metrics = metrics.expect("it answers");
        let counts = metrics.lines().filter_map(|line| {
            let (of, count) = line
                .strip_prefix("grpc_server_started_total")?
                .rsplit_once(' ')?;
            // Large ones are written with an exponent.
            of.contains(such).then(|| count.parse::<f64>().ok())?
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let sum = counts.sum::<f64>() as u64;
        sum
    }

    #[track_caller]
    pub fn put(&self, key: &str, value: &str) {
        let body = json!({ "key": encoded(key), "value": encoded(value) });
        self.call("/v3/kv/put", &body);
    }

    #[track_caller]
    pub fn get(&self, key: &str) -> Option<String> {
        let answer = self.call("/v3/kv/range", &json!({ "key": encoded(key) }));
        let entry = answer["kvs"].get(0)?;
        Some(decoded(&entry["value"]))
    }

    /// Returns the keys that begin with `prefix`, in their order.
    #[track_caller]
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let mut body = range_of(prefix);
        body["keys_only"] = json!(true);
        let answer = self.call("/v3/kv/range", &body);
        let entries = answer["kvs"].as_array().into_iter().flatten();
        entries.map(|entry| decoded(&entry["key"])).collect()
    }

    #[track_caller]
    pub fn lease_of(&self, key: &str) -> i64 {
        let answer = self.call("/v3/kv/range", &json!({ "key": encoded(key) }));
        let lease = answer["kvs"][0]["lease"].as_str();
        lease.map_or(0, |id| id.parse().expect("a number"))
    }

    #[track_caller]
    pub fn granted_ttl(&self, lease: i64) -> u64 {
        let answer = self.call("/v3/lease/timetolive", &json!({ "ID": lease.to_string() }));
        number(&answer["grantedTTL"])
    }

    #[track_caller]
    pub fn delete(&self, key: &str) {
        self.call("/v3/kv/deleterange", &json!({ "key": encoded(key) }));
    }

    #[track_caller]
    pub fn delete_all(&self, prefix: &str) {
        self.call("/v3/kv/deleterange", &range_of(prefix));
    }

    #[track_caller]
    pub fn leases(&self) -> Vec<i64> {
        let answer = self.call("/v3/lease/leases", &json!({}));
        let leases = answer["leases"].as_array().into_iter().flatten();
        leases
            .filter_map(|lease| lease["ID"].as_str()?.parse().ok())
            .collect()
    }

    #[track_caller]
    pub fn revoke(&self, lease: i64) {
        self.call("/v3/lease/revoke", &json!({ "ID": lease.to_string() }));
    }
}

pub(super) fn demand_login(server: &Etcd) {
    let call = |path: &str, body: Value| {
        let answer = gateway::call(server.own_addr(), &format!("/v3/auth/{path}"), None, &body);
        assert!(matches!(answer, Ok((200, _))), "{path}: {answer:?}");
    };
    let (every, end) = (STANDARD.encode([0]), STANDARD.encode([0]));
    let all = json!({ "permType": 2, "key": every, "range_end": end });
    for (user, password) in [ROOT, USER] {
        call("user/add", json!({ "name": user, "password": password }));
        call("role/add", json!({ "name": user }));
        call("user/grant", json!({ "user": user, "role": user }));
    }
    call("role/grant", json!({ "name": USER.0, "perm": all }));
    call("enable", json!({}));
}

fn login(server: &Etcd, (name, password): (&str, &str)) -> String {
    let body = json!({ "name": name, "password": password });
    let answer = gateway::call(server.own_addr(), "/v3/auth/authenticate", None, &body);
    let (_, answer) = answer.expect("it answers");
    let token = answer["token"].as_str().map(str::to_owned);
    token.unwrap_or_else(|| panic!("no token: {answer}"))
}

fn range_of(prefix: &str) -> Value {
    let mut end = prefix.as_bytes().to_vec();
    // Zero stands for all keys from there on.
    let last = end.last_mut();
    let end = match last {
        Some(last) => {
            *last += 1;
            end
        }
        None => vec![0],
    };
    let start = if prefix.is_empty() {
        vec![0]
    } else {
        prefix.into()
    };
    json!({ "key": STANDARD.encode(start), "range_end": STANDARD.encode(end) })
}
