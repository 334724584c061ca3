use super::*;

fn view(replies: &str) -> Result<View, NoView> {
    let value = ::redis::parse_redis_value(format!("*2\r\n{replies}").as_bytes());
    let name = "mymaster".to_owned();
    Question { name }.view(value.unwrap())
}

fn bulks(parts: &[&str]) -> String {
    let parts: Vec<_> = parts
        .iter()
        .map(|part| format!("${}\r\n{part}\r\n", part.len()))
        .collect();
    format!("*{}\r\n{}", parts.len(), parts.concat())
}

fn state(name: &str, epoch: &str) -> String {
    bulks(&["name", name, "port", "1", "config-epoch", epoch])
}

#[test]
fn address_and_epoch_are_a_view() {
    let at = |host: &str, port| HostPort {
        host: host.into(),
        port,
    };
    for (host, port, expected) in [
        ("10.0.0.1", "6379", at("10.0.0.1", 6379)),
        ("::1", "1", at("::1", 1)),
        ("a.example", "65535", at("a.example", 65535)),
    ] {
        let replies = state("mymaster", "7") + &bulks(&[host, port]);
        assert_eq!(view(&replies).unwrap(), View::of_master(expected, 7));
    }
}

#[test]
fn lies_are_no_view() {
    let good = state("mymaster", "7");
    let address = bulks(&["h", "1"]);
    for replies in [
        state("other", "7") + &address,
        state("mymaster", "-7") + &address,
        state("mymaster", "") + &address,
        bulks(&["name", "mymaster"]) + &address,
        "-ERR No such master with that name\r\n".to_owned() + &address,
        "+OK\r\n".to_owned() + &address,
        good.clone() + &bulks(&["", "1"]),
        good.clone() + &bulks(&["a b", "1"]),
        good.clone() + &bulks(&["h", "0"]),
        good.clone() + &bulks(&["h", "65536"]),
        good.clone() + &bulks(&["h", "+1"]),
        good.clone() + &bulks(&["h"]),
        good.clone() + "+OK\r\n",
        good.clone() + "-ERR what\r\n",
    ] {
        let found = view(&replies);
        assert!(
            matches!(found, Err(NoView::Failed(Failure::Other(_)))),
            "{replies}: {found:?}"
        );
    }
}

#[test]
fn other_servers_and_refusals_are_told_apart() {
    let both = |reply: &str| format!("{reply}\r\n{reply}\r\n");
    let found = view(&both("-NOAUTH Authentication required."));
    assert!(matches!(found, Err(NoView::Failed(Failure::Denied(_)))));
    let found = view(&both("-ERR unknown command 'SENTINEL', with args"));
    assert!(matches!(found, Err(NoView::NoSentinel)));
    let found = view("-ERR No such master with that name\r\n*-1\r\n");
    assert!(matches!(found, Err(NoView::UnknownName)));
}
