//! Taking the answers to several requests apart.

use std::vec;

use super::children::Children;
use super::client::{Answers, Changed, Code, Failure, Refused, Reply, Stat};
use crate::base::error::Error;
use crate::engine::{Unanswered, denied};

/// Why something isn't done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no answer.
    Failure(Failure),
    /// The servers refuse it.
    Refused(Code),
}

impl Trouble {
    pub(super) fn into_error(self, name: Option<&str>, place: &str) -> Error {
        match (self, name) {
            (Trouble::Failure(Failure::TooLarge(bytes)), Some(name)) => Error::InvalidValue {
                name: name.to_owned(),
                reason: format!("servers take no request of 1 MB, and this has {bytes} bytes"),
            },
            (trouble, _) => trouble.into_other_error(name, place),
        }
    }

    fn into_other_error(self, name: Option<&str>, place: &str) -> Error {
        match self {
            Trouble::Failure(failure) => failure.into_error(name, place),
            Trouble::Refused(code @ (Code::NoAuth | Code::InvalidAcl)) => denied(
                name,
                place,
                "the login in ?auth=, and the ACLs of the nodes",
                code,
            ),
            Trouble::Refused(code @ Code::Unimplemented) => Error::engine(
                name,
                place,
                "that the servers are ZooKeeper 3.5.3 or later",
                code,
            ),
            Trouble::Refused(code @ Code::NoNode) => {
                // What is made anew again and again is deleted as often.
                Error::unavailable(name, place, code)
            }
            Trouble::Refused(code) => Error::engine(name, place, "the nodes and their quota", code),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failure(failure)
    }
}

impl From<Unanswered<Failure>> for Trouble {
    fn from(unanswered: Unanswered<Failure>) -> Self {
        Trouble::Failure(unanswered.error)
    }
}

impl From<Code> for Trouble {
    fn from(code: Code) -> Self {
        Trouble::Refused(code)
    }
}

/// The answers to several requests, in their order.
#[derive(Debug)]
pub(super) struct Replies(vec::IntoIter<Result<Reply, Code>>);

impl Replies {
    pub(super) fn new(answers: Answers) -> Self {
        Replies(answers.into_iter())
    }

    pub(super) fn next(&mut self) -> Result<Result<Reply, Code>, Trouble> {
        self.0.next().ok_or_else(misunderstood)
    }

    /// What each change gave, or the first that was refused, and with it all.
    pub(super) fn multi(&mut self) -> Result<Result<Vec<Changed>, Refused>, Trouble> {
        match self.next()?? {
            Reply::Multi(done, _) => Ok(done),
            _ => Err(misunderstood()),
        }
    }

    /// The children of a node, and what else is known of it; `None` if there is no such node.
    pub(super) fn children(&mut self) -> Result<Option<(Vec<String>, Stat)>, Trouble> {
        match self.next()? {
            Ok(Reply::Children(children, stat)) => Ok(Some((children, stat))),
            Err(Code::NoNode) => Ok(None),
            Err(code) => Err(code.into()),
            Ok(_) => Err(misunderstood()),
        }
    }

    /// What the children of a name tell; nothing, if it has no node.
    pub(super) fn name(&mut self) -> Result<Children, Trouble> {
        Ok(self.name_and_stat()?.0)
    }

    /// The same, and what is known of its node, if it has one.
    pub(super) fn name_and_stat(&mut self) -> Result<(Children, Option<Stat>), Trouble> {
        Ok(match self.children()? {
            Some((nodes, stat)) => (Children::of(&nodes, &stat), Some(stat)),
            None => (Children::default(), None),
        })
    }

    /// What a node holds; `None` if there is no such node.
    pub(super) fn data(&mut self) -> Result<Option<(Vec<u8>, Stat)>, Trouble> {
        match self.next()? {
            Ok(Reply::Data(data, stat)) => Ok(Some((data, stat))),
            Err(Code::NoNode) => Ok(None),
            Err(code) => Err(code.into()),
            Ok(_) => Err(misunderstood()),
        }
    }

    /// Whether there is such a node.
    pub(super) fn exists(&mut self) -> Result<bool, Trouble> {
        match self.next()? {
            Ok(_) => Ok(true),
            Err(Code::NoNode) => Ok(false),
            Err(code) => Err(code.into()),
        }
    }

    /// Of a sync.
    pub(super) fn done(&mut self) -> Result<(), Trouble> {
        self.next()??;
        Ok(())
    }
}

pub(super) fn misunderstood() -> Trouble {
    Trouble::Failure(Failure::Other("it answers another question".into()))
}
