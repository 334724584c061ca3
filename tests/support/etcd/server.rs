//! What servers of etcd have of their own.

use std::path::PathBuf;
use std::sync::Arc;

use super::setup::{EtcdSetup, USER};
use super::{gateway, program};
use crate::certificates;
use crate::consensus::{Front, Kind, Server, ServerSet};
use crate::daemon::{Daemon, fast_dir};

pub type Etcd = Server<EtcdKind>;

pub type EtcdCluster = ServerSet<EtcdKind>;

#[derive(Debug)]
pub struct EtcdKind {
    name: String,
    pub(super) setup: Arc<EtcdSetup>,
}

impl Etcd {
    pub fn start() -> Self {
        Self::setup().start()
    }

    pub fn setup() -> EtcdSetup {
        EtcdSetup::new()
    }

    pub(super) fn launch(
        setup: &Arc<EtcdSetup>,
        (name, cluster): (&str, &str),
        front: Front,
    ) -> Self {
        let dir = fast_dir("etcd");
        if setup.tls {
            certificates::write(dir.path());
        }
        let arguments = setup.arguments(name, cluster, &front);
        let kind = EtcdKind {
            name: name.to_owned(),
            setup: Arc::clone(setup),
        };
        let daemon = Daemon::launch(dir, program(), arguments);
        Self::of(kind, daemon, front)
    }

    pub fn ca_file(&self) -> PathBuf {
        self.dir().join("ca.pem")
    }
}

impl EtcdCluster {
    pub fn of(members: usize) -> Self {
        EtcdSetup::new().cluster(members)
    }
}

impl Kind for EtcdKind {
    fn is_ready(server: &Etcd) -> bool {
        let mine = server.leader().is_some_and(|(_, leader)| leader != 0);
        mine && gateway::names(server.own_addr()).contains(&server.kind.name)
    }

    fn url(server: &Etcd, hosts: &str, root: &str) -> String {
        let setup = &server.kind.setup;
        let (scheme, files) = match setup.tls {
            true => ("etcds", server.files_of_url(setup.client_certificates)),
            false => ("etcd", String::new()),
        };
        let (user, password) = USER;
        let login = match setup.login {
            true => format!("{user}:{password}@"),
            false => String::new(),
        };
        format!("{scheme}://{login}{hosts}/{root}{files}")
    }

    fn leader(members: &[Etcd]) -> Option<usize> {
        let told: Vec<_> = members.iter().map(Etcd::leader).collect();
        let leads = |index: usize| {
            told[index].is_some_and(|(own, leader)| {
                let votes = told.iter().flatten().filter(|(_, voted)| *voted == own);
                leader == own && votes.count() > members.len() / 2
            })
        };
        (0..members.len()).find(|index| leads(*index))
    }
}
