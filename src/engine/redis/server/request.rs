//! One command on one connection: what goes out in one write, and what is read of its answers.

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::engine::redis::connection::Connection;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
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

/// One command, and what goes with it in the same write.
pub(super) struct Request<'a> {
    pub(super) command: &'a dyn Command,
    pub(super) manner: Manner,
    pub(super) confirmation: Option<Confirmation>,
    pub(super) deadline: &'a Deadline,
}

impl Request<'_> {
    pub(super) fn exchange(&self, connection: &mut Connection) -> Result<Replied, Failure> {
        let replied = self.send(self.command.packed(), connection)?;
        if !is_unknown_script(&replied.0) {
            return Ok(replied);
        }
        match self.command.in_full() {
            Some(full) => self.send(full, connection),
            None => Ok(replied),
        }
    }

    /// Sends it, and reads all that is answered.
    fn send(&self, packed: Vec<u8>, connection: &mut Connection) -> Result<Replied, Failure> {
        let mut packed = packed;
        if self.manner == Manner::Asking {
            let mut asking = ::redis::cmd("ASKING").get_packed_command();
            asking.append(&mut packed);
            packed = asking;
        }
        if let Some(confirmation) = self.confirmation {
            confirmation.append_to(&mut packed, self.deadline);
        }
        connection.send(&packed, self.answers(), self.deadline)?;
        if self.manner == Manner::Asking {
            connection.reply()?;
        }
        let value = match self.command.length() {
            1 => connection.reply()?,
            length => {
                let values = (0..length).map(|_| connection.reply());
                Value::Array(values.collect::<Result<_, _>>()?)
            }
        };
        let Some(confirmation) = self.confirmation else {
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

    fn answers(&self) -> usize {
        let asking = usize::from(self.manner == Manner::Asking);
        asking + self.command.length() + usize::from(self.confirmation.is_some())
    }
}

pub(super) fn is_unknown_script(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.code() == "NOSCRIPT")
}
