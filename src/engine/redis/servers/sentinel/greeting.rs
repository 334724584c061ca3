//! What is told when the sentinels of a URL name no master.

use super::Sentinels;
use crate::base::error::Error;
use crate::engine::redis::servers::cluster::heard::{Heard, NoView};
use crate::engine::redis::servers::masters::masters;
use crate::engine::redis::servers::{Refused, advice};
use crate::engine::redis::settings::{Kind, Settings};

impl Sentinels {
    /// Why they name no master: one is no Sentinel, or some don't know that name, or else what is wrong with each.
    pub(in crate::engine::redis::servers) fn refusal(
        &self,
        heard: Heard,
        settings: &Settings,
    ) -> Refused {
        let other = heard
            .silent
            .iter()
            .find(|(_, why)| matches!(why, NoView::NoSentinel));
        if let Some((server, _)) = other {
            let role = match server.greet() {
                Ok(role) => role,
                Err(failure) => return failure.into(),
            };
            if let Err(error) = advice::check(role, server, Kind::Sentinel) {
                return Refused::Error(error);
            }
        }
        let unknown = |(_, why): &&(_, NoView)| matches!(why, NoView::UnknownName);
        let unknown: Vec<_> = heard.silent.iter().filter(unknown).collect();
        if unknown.is_empty() {
            return Sentinels::failure(heard).into();
        }
        let mut known: Vec<_> = unknown
            .into_iter()
            .flat_map(|(one, _)| masters(one))
            .collect();
        known.sort_unstable();
        known.dedup();
        let known = match &known[..] {
            [] => "see SENTINEL MASTERS for the names that they know".to_owned(),
            known => format!("they know {}", known.join(", ")),
        };
        Refused::Error(Error::InvalidUrl {
            url: settings.shown.clone(),
            reason: format!("no sentinel knows a master {}: {known}", self.question.name),
        })
    }
}
