//! What a server says of itself.

use super::reply::{OK, Outcome, Reply, Words};
use super::state::State;

/// The version that it has the commands and the words of.
const VERSION: &str = "7.0.15";

#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) host: String,
    pub(super) port: u16,
    /// `standalone`, `sentinel` or `cluster`.
    pub(super) mode: &'static str,
    /// How often the process was started.
    starts: u64,
    pub(super) role: Role,
    /// How much was written that replicas are sent.
    pub(super) offset: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Role {
    Master {
        replicas: Vec<Follower>,
    },
    /// Of the master at that address.
    Replica {
        master: (String, u16),
        is_linked: bool,
    },
}

/// What a master knows of a replica.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Follower {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) offset: u64,
    /// How long ago it was heard of, in seconds.
    pub(super) lag: u64,
}

impl About {
    pub(super) fn new((host, port): (String, u16), mode: &'static str) -> Self {
        let (replicas, starts) = (Vec::new(), 1);
        let role = Role::Master { replicas };
        About {
            host,
            port,
            mode,
            starts,
            role,
            offset: 0,
        }
    }

    pub(super) fn restarted(&mut self) {
        self.starts += 1;
    }

    /// By which this life of the server is told from others.
    pub(super) fn run_id(&self) -> String {
        digest(&format!("{}:{} {}", self.host, self.port, self.starts))
    }

    /// By which a node of a cluster is known, in all its lives.
    pub(super) fn node_id(&self) -> String {
        digest(&format!("{}:{}", self.host, self.port))
    }

    fn role_word(&self) -> &'static str {
        match self.role {
            Role::Master { .. } => "master",
            Role::Replica { .. } => "slave",
        }
    }

    fn replication(&self) -> String {
        let mut text = format!("role:{}\r\n", self.role_word());
        let mut add = |line: String| text.extend([line.as_str(), "\r\n"]);
        match &self.role {
            Role::Master { replicas } => {
                add(format!("connected_slaves:{}", replicas.len()));
                for (at, one) in replicas.iter().enumerate() {
                    let Follower {
                        host,
                        port,
                        offset,
                        lag,
                    } = one;
                    add(format!(
                        "slave{at}:ip={host},port={port},state=online,offset={offset},lag={lag}"
                    ));
                }
            }
            Role::Replica {
                master: (host, port),
                is_linked,
            } => {
                add(format!("master_host:{host}"));
                add(format!("master_port:{port}"));
                add(format!(
                    "master_link_status:{}",
                    if *is_linked { "up" } else { "down" }
                ));
                add("connected_slaves:0".to_owned());
            }
        }
        add(format!("master_repl_offset:{}", self.offset));
        text
    }
}

fn digest(text: &str) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}

/// What HELLO answers.
pub(super) fn greeting(about: &About, client: u64) -> Reply {
    let role = match about.role {
        Role::Master { .. } => "master",
        Role::Replica { .. } => "replica",
    };
    let client = Reply::Int(i64::try_from(client).unwrap_or(0));
    let mut parts = Vec::new();
    let mut add = |name: &str, value: Reply| parts.extend([Reply::text(name), value]);
    add("server", Reply::text("redis"));
    add("version", Reply::text(VERSION));
    add("proto", Reply::Int(2));
    add("id", client);
    add("mode", Reply::text(about.mode));
    if about.mode != "sentinel" {
        add("role", Reply::text(role));
    }
    add("modules", Reply::List(Vec::new()));
    Reply::List(parts)
}

/// INFO.
pub(super) fn info(state: &mut State, words: &Words) -> Outcome {
    let about = &state.about;
    let (run_id, port, mode) = (about.run_id(), about.port, about.mode);
    let cluster = u8::from(mode == "cluster");
    let sections = [
        ("Server", format!(
            "redis_version:{VERSION}\r\nredis_mode:{mode}\r\nprocess_id:1\r\nrun_id:{run_id}\r\ntcp_port:{port}\r\n"
        )),
        ("Clients", "connected_clients:1\r\nmaxclients:10000\r\n".to_owned()),
        ("Memory", "used_memory:1000000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n".to_owned()),
        ("Persistence", "loading:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:1\r\naof_last_write_status:ok\r\n"
            .to_owned()),
        ("Replication", about.replication()),
        ("Cluster", format!("cluster_enabled:{cluster}\r\n")),
    ];
    let asked: Vec<_> = words[1..]
        .iter()
        .map(|word| String::from_utf8_lossy(word))
        .collect();
    let is_asked = |name: &str| {
        let all = ["all", "everything", "default"];
        let is_it = |word: &str| word.eq_ignore_ascii_case(name) || all.contains(&word);
        asked.is_empty() || asked.iter().any(|word| is_it(word))
    };
    let sections = sections.iter().filter(|(name, _)| is_asked(name));
    let sections: Vec<_> = sections
        .map(|(name, text)| format!("# {name}\r\n{text}"))
        .collect();
    Ok(Reply::text(sections.join("\r\n")))
}

/// ROLE.
pub(super) fn role(state: &mut State, _: &Words) -> Outcome {
    if let Some(watched) = &state.watched {
        let names = Reply::texts([watched.name.clone()]);
        return Ok(Reply::List(vec![Reply::text("sentinel"), names]));
    }
    let about = &state.about;
    let offset = Reply::Int(i64::try_from(about.offset).unwrap_or(0));
    Ok(Reply::List(match &about.role {
        Role::Master { replicas } => {
            let replicas = replicas.iter().map(|one| {
                Reply::texts([
                    one.host.clone(),
                    one.port.to_string(),
                    one.offset.to_string(),
                ])
            });
            vec![
                Reply::text("master"),
                offset,
                Reply::List(replicas.collect()),
            ]
        }
        Role::Replica {
            master: (host, port),
            is_linked,
        } => {
            let link = if *is_linked { "connected" } else { "connect" };
            let (host, port) = (Reply::text(host.clone()), Reply::Int(i64::from(*port)));
            vec![Reply::text("slave"), host, port, Reply::text(link), offset]
        }
    }))
}

const SETTINGS: [(&str, &str); 6] = [
    ("appendfsync", "always"),
    ("appendonly", "yes"),
    ("cluster-node-timeout", "1000"),
    ("maxmemory", "0"),
    ("min-replicas-to-write", "0"),
    ("save", ""),
];

/// CONFIG.
pub(super) fn config(_: &mut State, words: &Words) -> Outcome {
    match (words[1].to_ascii_uppercase().as_slice(), &words[2..]) {
        (b"GET", patterns) => {
            let is_asked = |name: &str| {
                patterns
                    .iter()
                    .any(|one| super::texts::matches(one, name.as_bytes()))
            };
            let found = SETTINGS.iter().filter(|(name, _)| is_asked(name));
            Ok(Reply::texts(
                found.flat_map(|(name, value)| [*name, *value]),
            ))
        }
        (b"SET" | b"RESETSTAT", _) => Ok(OK),
        _ => Err(super::state::unknown_subcommand(words)),
    }
}

/// TIME.
pub(super) fn time(state: &mut State, _: &Words) -> Outcome {
    let wall = state.keys.wall;
    let parts = [wall.as_secs().to_string(), wall.subsec_micros().to_string()];
    Ok(Reply::texts(parts))
}

pub(super) fn echo(_: &mut State, words: &Words) -> Outcome {
    Ok(Reply::text(words[1].clone()))
}
