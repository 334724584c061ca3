//! One command on one connection: what goes out in one write, and what is read of its answers.

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::engine::redis::connection::Connection;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::settings::Settings;
use crate::engine::redis::shortfall::{Confirmation, Shortfall};

/// How a command is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::redis) enum Manner {
    Plain,
    /// To the node that takes the slot over, which refuses it otherwise.
    Asking,
}

/// A value, and whether enough replicas have what came with it.
pub(super) type Replied = (Value, Option<Shortfall>);

/// One command, and by when it is answered at the latest.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) command: &'a dyn Command,
    pub(super) manner: Manner,
    pub(super) deadline: &'a Deadline,
}

impl Request<'_> {
    pub(super) fn exchange(
        &self,
        settings: &Settings,
        connection: &mut Connection,
        reply_by: &Deadline,
    ) -> Result<Replied, Failure> {
        let confirmation = Confirmation::of(settings, self.command);
        let reply_by = reply_by.within(settings.io_timeout);
        let send = |packed, connection: &mut Connection| {
            self.send(packed, confirmation, connection, &reply_by)
        };
        let replied = send(self.command.packed(), connection)?;
        if !is_unknown_script(&replied.0) {
            return Ok(replied);
        }
        match self.command.in_full() {
            Some(full) => send(full, connection),
            None => Ok(replied),
        }
    }

    /// Sends it with what goes along in the same write, and reads all that is answered.
    fn send(
        &self,
        mut packed: Vec<u8>,
        confirmation: Option<Confirmation>,
        connection: &mut Connection,
        deadline: &Deadline,
    ) -> Result<Replied, Failure> {
        let is_asking = self.manner == Manner::Asking;
        if is_asking {
            let mut asking = ::redis::cmd("ASKING").get_packed_command();
            asking.append(&mut packed);
            packed = asking;
        }
        if let Some(confirmation) = confirmation {
            confirmation.append_to(&mut packed, deadline);
        }
        let beside = usize::from(is_asking) + usize::from(confirmation.is_some());
        connection.send(&packed, self.command.length() + beside, deadline)?;
        if is_asking {
            connection.reply()?;
        }
        let value = match self.command.length() {
            1 => connection.reply()?,
            length => {
                let values = (0..length).map(|_| connection.reply());
                Value::Array(values.collect::<Result<_, _>>()?)
            }
        };
        let Some(confirmation) = confirmation else {
            return Ok((value, None));
        };
        let acknowledged = connection.reply()?;
        // What came of the command itself says more than that WAIT was refused, too.
        let shortfall = match value {
            Value::ServerError(_) => None,
            _ => confirmation.shortfall(acknowledged)?,
        };
        Ok((value, shortfall))
    }
}

fn is_unknown_script(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.code() == "NOSCRIPT")
}
