//! Commands that are sent before the answers to others are read, so that several servers work at the same time.
//!
//! They go out on a connection that is idle, in one write, and are tried once. What becomes of a command that wasn't answered
//! so is the caller's business. What always holds here: a connection on which an answer is missing is used, if at all,
//! behind a question that is late; what replicas must have isn't answered before it is known how many have it.

use std::sync::Arc;
use std::time::Instant;

use ::redis::Value;

use super::request::is_unknown_script;
use super::{Answer, Confirmation, Server, share};
use crate::base::clock::Deadline;
use crate::engine::redis::connection::Connection;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::{Command, Order};

/// Commands of one owner that were sent, and whose answers weren't read yet.
pub(in crate::engine::redis) struct Ahead<'a> {
    server: Arc<Server>,
    order: Order<'a>,
    sent: Result<Connection, Failure>,
    /// How many answers there are to read, but for that of WAIT.
    count: usize,
    confirmation: Option<Confirmation>,
    began: Instant,
}

/// What came of a command that was sent ahead.
pub(in crate::engine::redis) enum Came {
    Answer(Answer),
    /// The server answered that it failed.
    Failed(Failure),
    /// The server did nothing: it has to be called.
    Nothing,
    /// There is no answer, and the command may have been carried out.
    NoAnswer,
}

impl Server {
    /// Sends commands on a connection that is there already; `None` without one.
    pub(in crate::engine::redis) fn send_ahead<'a>(
        self: &Arc<Self>,
        commands: &[&'a dyn Command],
        deadline: &Deadline,
    ) -> Option<Ahead<'a>> {
        let began = Instant::now();
        let order = commands.first().map(|one| one.order()).unwrap_or_default();
        let mut connection = self.usual(order, began)?;
        let confirmation = Confirmation::of(&self.settings, commands);
        let mut packed: Vec<u8> = commands.iter().flat_map(|one| one.packed()).collect();
        let reply_by = self.reply_by(deadline);
        if let Some(confirmation) = confirmation {
            confirmation.append_to(&mut packed, &reply_by);
        }
        let answers = commands.len() + usize::from(confirmation.is_some());
        let sent = match connection.send(&packed, answers, &reply_by) {
            Ok(()) => Ok(connection),
            Err(failure) => {
                connection.give_up();
                Err(failure)
            }
        };
        Some(Ahead {
            server: self.clone(),
            order,
            sent,
            count: commands.len(),
            confirmation,
            began,
        })
    }

    fn reply_by(&self, deadline: &Deadline) -> Deadline {
        share(deadline).within(self.settings.io_timeout)
    }
}

impl Ahead<'_> {
    /// What came of each, in their order, by the half of what is left until the deadline.
    pub(in crate::engine::redis) fn answers(self, deadline: &Deadline) -> Vec<Came> {
        let (server, count, began) = (self.server.clone(), self.count, self.began);
        let mut came = Vec::with_capacity(count);
        let is_for_replicas = self.confirmation.is_some();
        if let Err(failure) = self.read(&mut came, deadline) {
            if failure.is_of_connection() {
                server.distrust(&failure, began, deadline);
            }
            if is_for_replicas {
                // Nobody has said how many replicas have what was answered so far.
                let answers = came.iter_mut().filter(|one| matches!(one, Came::Answer(_)));
                answers.for_each(|one| *one = Came::NoAnswer);
            }
            came.resize_with(count, || Came::NoAnswer);
        }
        came
    }

    fn read(self, came: &mut Vec<Came>, deadline: &Deadline) -> Result<(), Failure> {
        let server = self.server;
        let mut connection = self.sent?;
        // Others were waited for since it was sent.
        connection.wait_until(&server.reply_by(deadline));
        let read = read_all(&mut connection, self.count, came, &server);
        let waited = read.and_then(|()| {
            let confirmation = self.confirmation;
            confirmation.map_or(Ok(None), |of| of.shortfall(connection.reply()?))
        });
        match waited {
            Ok(missing) => {
                let answers = came.iter_mut().filter_map(|came| match came {
                    Came::Answer(answer) => Some(answer),
                    _ => None,
                });
                answers.for_each(|answer| answer.shortfall = missing);
                server.keep(connection);
                Ok(())
            }
            Err(failure) => {
                server.leave(connection, self.order, &failure, deadline);
                Err(failure)
            }
        }
    }
}

fn read_all(
    connection: &mut Connection,
    count: usize,
    came: &mut Vec<Came>,
    server: &Arc<Server>,
) -> Result<(), Failure> {
    for _ in 0..count {
        came.push(match connection.reply()? {
            value if is_unknown_script(&value) => Came::Nothing,
            Value::ServerError(error) => match Failure::from(error) {
                // It will stay a replica: behind the same address there may be its successor.
                failure @ Failure::Demoted(_) => return Err(failure),
                failure if failure.is_refusal() => Came::Nothing,
                failure => Came::Failed(failure),
            },
            value => Came::Answer(Answer {
                value,
                repeated: false,
                moved: false,
                server: server.clone(),
                shortfall: None,
            }),
        });
    }
    Ok(())
}
