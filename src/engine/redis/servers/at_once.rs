//! Calls several servers at once: what is for one server goes out in one write, and all servers have theirs before the first
//! answer is read.
//!
//! A call that isn't answered so is made again by itself, as any other: where no connection was idle, where a server sends it
//! elsewhere or doesn't know its script, and where a connection failed.

use std::sync::Arc;

use super::{Route, Servers};
use crate::base::clock::Deadline;
use crate::engine::Unanswered;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::ahead::{Ahead, Came};
use crate::engine::redis::server::{Answer, Server};

/// One of the calls, which are of one owner.
pub(in crate::engine::redis) type Call<'a> = (Route<'a>, &'a dyn Command);

/// Gives the answers in the order of the calls. Each may be carried out twice. All together take no longer than one that fails.
pub(in crate::engine::redis) fn call_all(
    servers: &dyn Servers,
    calls: &[Call<'_>],
    deadline: &Deadline,
) -> Vec<Result<Answer, Unanswered<Failure>>> {
    let settings = servers.settings();
    let longest = settings.connect_timeout + 2 * settings.io_timeout;
    let deadline = &deadline.within(longest);
    let soonest = calls
        .iter()
        .filter_map(|(route, _)| route.known_within)
        .min();
    if let Some(known_within) = soonest {
        servers.refresh(known_within, deadline);
    }
    let mut came: Vec<_> = calls.iter().map(|_| Came::Nothing).collect();
    // All are sent before the first answer is read.
    let sent: Vec<_> = by_server(servers, calls)
        .into_iter()
        .filter_map(|(server, which)| {
            send(&server, &which, calls, deadline).map(|one| (one, which))
        })
        .collect();
    for (ahead, which) in sent {
        for (index, one) in which.into_iter().zip(ahead.answers(deadline)) {
            came[index] = one;
        }
    }
    // A server that doesn't answer keeps the others from nothing.
    let mut order: Vec<_> = (0..calls.len()).collect();
    order.sort_by_key(|index| matches!(came[*index], Came::NoAnswer));
    let mut answers: Vec<_> = calls.iter().map(|_| None).collect();
    for index in order {
        let came = std::mem::replace(&mut came[index], Came::Nothing);
        answers[index] = Some(complete(servers, calls[index], came, deadline));
    }
    answers.into_iter().flatten().collect()
}

/// Which calls are for which server, as far as that is known.
fn by_server(servers: &dyn Servers, calls: &[Call<'_>]) -> Vec<(Arc<Server>, Vec<usize>)> {
    let mut all: Vec<(Arc<Server>, Vec<usize>)> = Vec::new();
    for (index, (route, command)) in calls.iter().enumerate() {
        if !command.locks().is_empty() && servers.is_on_its_way(*route) {
            // That takes more than its answer.
            continue;
        }
        let Some(server) = servers.known(*route) else {
            continue;
        };
        match all.iter_mut().find(|(one, _)| Arc::ptr_eq(one, &server)) {
            Some((_, which)) => which.push(index),
            None => all.push((server, vec![index])),
        }
    }
    all
}

fn send<'a>(
    server: &Arc<Server>,
    which: &[usize],
    calls: &[Call<'a>],
    deadline: &Deadline,
) -> Option<Ahead<'a>> {
    let commands: Vec<_> = which.iter().map(|index| calls[*index].1).collect();
    server.send_ahead(&commands, deadline)
}

/// What came of a call, which is made again if need be.
fn complete(
    servers: &dyn Servers,
    (route, command): Call<'_>,
    came: Came,
    deadline: &Deadline,
) -> Result<Answer, Unanswered<Failure>> {
    let may_be_done = matches!(came, Came::NoAnswer);
    match came {
        Came::Answer(answer) => return Ok(answer),
        Came::Failed(failure) => return Err(Unanswered::sent(failure)),
        // Sent again, it might arrive after the release that follows.
        Came::NoAnswer if deadline.is_over() => {
            let cause = "it didn't answer in time".into();
            return Err(Unanswered::sent(Failure::TimedOut(cause)));
        }
        Came::Nothing | Came::NoAnswer => {}
    }
    match servers.call(route, command, deadline) {
        Ok(answer) => Ok(Answer {
            repeated: answer.repeated || may_be_done,
            ..answer
        }),
        Err(Unanswered { error, sent }) => Err(Unanswered {
            error,
            sent: sent || may_be_done,
        }),
    }
}
