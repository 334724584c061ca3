//! One server, which has all names.

use std::sync::Arc;

use super::{Refused, Route, Servers, advice};
use crate::base::clock::Deadline;
use crate::engine::Unanswered;
use crate::engine::net::address::Endpoint;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::{Answer, Manner, Server};
use crate::engine::redis::settings::{Kind, Settings};

#[derive(Debug)]
pub(super) struct Single(Arc<Server>);

impl Single {
    pub(super) fn open(
        endpoint: Endpoint,
        settings: Arc<Settings>,
    ) -> Result<Arc<dyn Servers>, Failure> {
        let server = Server::new(endpoint, settings)?;
        Ok(Arc::new(Single(Arc::new(server))))
    }
}

impl Servers for Single {
    fn settings(&self) -> &Settings {
        self.0.settings()
    }

    fn greet(&self) -> Result<(), Refused> {
        let role = self.0.greet()?;
        advice::check(role, &self.0, Kind::Single).map_err(Refused::Error)
    }

    fn call(
        &self,
        _route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        self.0.call(command, Manner::Plain, deadline)
    }

    fn call_once(
        &self,
        _route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        self.0.call_once(command, Manner::Plain, deadline)
    }

    fn known(&self, _route: Route<'_>) -> Option<Arc<Server>> {
        Some(self.0.clone())
    }

    fn all(&self, _deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure> {
        Ok(vec![self.0.clone()])
    }

    fn after_fork(&self) -> Arc<dyn Servers> {
        let settings = Arc::new(self.settings().after_fork());
        Arc::new(Single(Arc::new(self.0.after_fork(settings))))
    }
}
