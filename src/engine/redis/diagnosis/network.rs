//! How the server is reached.

use std::net::IpAddr;

use super::probe::Probe;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;

const CHECK: &str = "network";

pub(super) fn network(probe: &Probe<'_>) -> Result<Finding> {
    let connection = probe.server.connect(probe.deadline);
    let connection = connection.map_err(|e| probe.commands.error(None, e))?;
    let place = &probe.server.settings().shown;
    Ok(if connection.is_encrypted() {
        Finding::fine(CHECK, format!("{place}: encrypted by TLS"))
    } else {
        plain(place, connection.peer())
    })
}

/// In plain text, to nobody if it is by a unix socket.
fn plain(place: &str, peer: Option<IpAddr>) -> Finding {
    let Some(peer) = peer else {
        return Finding::fine(CHECK, format!("{place}: a socket of this host"));
    };
    if peer.is_loopback() {
        return Finding::fine(CHECK, format!("{place}: this host"));
    }
    if is_private(peer) {
        let found = format!("{place}: a private network, in plain text");
        return Finding::fine(CHECK, found);
    }
    Finding::weak(
        CHECK,
        format!("{place}: a public address, in plain text"),
        "whoever is on the way reads the password, and can free and fake every lock",
        "use rediss:// or valkeys://",
    )
}

fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || is_shared(v4.octets()),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// 100.64.0.0/10, which carriers and overlay networks use.
fn is_shared([first, second, ..]: [u8; 4]) -> bool {
    first == 100 && (64..128).contains(&second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_weak_only_on_a_public_network() {
        for (peer, verdict) in [
            ("127.0.0.1", "fine"),
            ("::1", "fine"),
            ("10.1.2.3", "fine"),
            ("::ffff:192.168.0.1", "fine"),
            ("fd00::1", "fine"),
            ("100.64.0.1", "fine"),
            ("100.128.0.1", "weak"),
            ("1.1.1.1", "weak"),
            ("2606:4700::1111", "weak"),
        ] {
            let found = plain("redis://h:6379/0", Some(peer.parse().unwrap()));
            assert_eq!(found.verdict.to_string(), verdict, "{peer}");
        }
        assert_eq!(plain("unix:///s", None).verdict.to_string(), "fine");
    }
}
