//! Which of several servers give no answer, and why.

use std::error::Error as _;
use std::sync::Arc;

use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::error::Error;
use crate::engine::redis::server::Server;
use crate::engine::redis::servers::ask_all::ask_all;

const SERVERS: &str = "servers";

/// Of each that gives no answer within the connect timeout, where it is, and why. All are asked at once.
pub(super) fn silent(servers: &[Arc<Server>], deadline: &Deadline) -> Vec<String> {
    let Some(first) = servers.first() else {
        return Vec::new();
    };
    let timeout = first.settings().connect_timeout;
    // An answer that comes at the last moment is that of a server that gave none.
    let until = deadline.within(2 * timeout);
    let answers = ask_all(servers, &until, move |server, deadline| {
        let greeted = server.greet_by(&deadline.within(timeout));
        let failed = greeted.err().map(|failure| failure.cause().to_string());
        Ok(failed.map(|why| placed(server, &why)))
    });
    let mut silent = Vec::new();
    while let Some(answer) = answers.next(&until) {
        silent.extend(answer.ok().flatten());
    }
    silent.sort_unstable();
    silent
}

/// Where a server is, and why it gave no answer.
pub(super) fn unanswered(server: &Server, error: &Error) -> String {
    let why = error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string);
    placed(server, &why)
}

fn placed(server: &Server, why: &str) -> String {
    let address = server.address();
    if why.starts_with(&address) {
        why.to_owned()
    } else {
        format!("{address}: {why}")
    }
}

/// Of so many servers those give no answer.
pub(super) fn finding(all: usize, silent: &[String]) -> Finding {
    if silent.is_empty() {
        return Finding::fine(SERVERS, format!("all {all} answer"));
    }
    Finding::weak(
        SERVERS,
        format!(
            "{} of {all} without an answer: {}",
            silent.len(),
            silent.join("; ")
        ),
        "what a master has that is down can't be locked until it is back or replaced, and each sentinel or replica that is \
         down is one less to replace it",
        "start it and look at its log, or take it out of the URL if it is gone for good",
    )
}
