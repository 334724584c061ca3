//! Users who have to log in.

use std::time::Duration;

use crosslock_servers::etcd::Etcd;
use crosslock_world::service::Fault;
use serde_json::{Value, json};

use crate::answers::Answer;
use crate::errors::each;
use crate::peers::{Peer, Real, Simulated, with_headers};
use crate::same::setup;

/// Whom the tests' servers let in.
const USER: (&str, &str) = ("locker", "swordfish-7c1d");

fn login(name: &str, password: &str) -> Value {
    json!({ "name": name, "password": password })
}

/// Asks for everything, with a token if there is one.
fn ask_all(peer: &mut dyn Peer, token: Option<&str>) -> Vec<(&'static str, Vec<Answer>)> {
    let header = token.map_or(String::new(), |token| format!("Authorization: {token}\r\n"));
    let ask = |(path, body): (_, Value)| {
        let to = peer.connect(0);
        peer.send(to, &with_headers(path, &body.to_string(), &header));
        let answers = match path {
            "/v3/watch" => {
                let messages = peer.told(to, Duration::from_millis(200));
                vec![Answer {
                    status: 200,
                    headers: Vec::new(),
                    messages,
                }]
            }
            _ => peer.answers(to, 1),
        };
        (path, answers)
    };
    each().into_iter().map(ask).collect()
}

/// Logs in, after some have failed to; returns all answers, and the token.
fn visit(peer: &mut dyn Peer) -> (Vec<(&'static str, Vec<Answer>)>, String) {
    const PATH: &str = "/v3/auth/authenticate";
    let to = peer.connect(0);
    let mut all = ask_all(peer, None);
    all.extend(ask_all(peer, Some("unknown.1")));
    for (name, password) in [("nobody", USER.1), (USER.0, "wrong")] {
        all.push((PATH, vec![peer.ask(to, PATH, &login(name, password))]));
    }
    peer.send(
        to,
        &with_headers(PATH, &login(USER.0, USER.1).to_string(), ""),
    );
    let token = peer.token(to);
    all.extend(ask_all(peer, Some(&token)));
    (all, token)
}

#[test]
fn logins_are_demanded_alike() {
    let server = setup().login().start();
    let mut real = Real::new(vec![server.own_addr()]);
    let mut simulated = Simulated::new(Etcd::with_login(1, USER.0, USER.1), 1);
    let (theirs, their_token) = visit(&mut real);
    let (ours, our_token) = visit(&mut simulated);
    for (theirs, ours) in theirs.into_iter().zip(ours) {
        assert_eq!(theirs, ours);
    }
    // A member that starts again knows no token.
    server.restart();
    simulated.fault(0, Fault::Kill);
    simulated.fault(0, Fault::Start { with_data: true });
    simulated.pass(Duration::from_secs(2));
    let theirs = ask_all(&mut real, Some(&their_token));
    for (theirs, ours) in theirs
        .into_iter()
        .zip(ask_all(&mut simulated, Some(&our_token)))
    {
        assert_eq!(theirs, ours);
    }
}
