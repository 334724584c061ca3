use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::{thread, time::Duration};

use super::*;
use crate::engine::redis::settings_of;

/// Answers the questions on the first connection.
fn answer(listener: &TcpListener, nodes: &str, master: u16) {
    let (mut client, _) = listener.accept().unwrap();
    let mut come = Vec::new();
    while !come.ends_with(b"SLOTS\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        come.extend(byte);
    }
    // As far away as a server may be.
    thread::sleep(Duration::from_millis(10));
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let slots = "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n".to_owned();
    let slots = slots + &bulk("127.0.0.1") + &format!(":{master}\r\n") + &bulk(&id(master));
    let answers = bulk("cluster_state:ok") + &bulk(nodes) + &slots;
    client.write_all(answers.as_bytes()).unwrap();
    await_end(&mut client);
}

fn await_end(client: &mut TcpStream) {
    let _ = client.read_to_end(&mut Vec::new());
}

fn id(port: u16) -> String {
    format!("{port:040}")
}

/// Each master has to confirm what is new.
#[test]
fn masters_that_were_named_are_asked_while_another_is_silent() {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = listeners
        .each_ref()
        .map(|one| one.local_addr().unwrap().port());
    let line = |port| format!("{} 127.0.0.1:{port}@1 master - 0 0 1 connected\n", id(port));
    let nodes = ports.map(line).concat();
    let [first, silent, named] = listeners;
    for listener in [first, named] {
        let (nodes, master) = (nodes.clone(), ports[0]);
        thread::spawn(move || answer(&listener, &nodes, master));
    }
    let seed = |port| HostPort {
        host: "127.0.0.1".into(),
        port,
    };
    let url = format!("redis+cluster://127.0.0.1:{}", ports[0]);
    let map = Mutex::new(Map::new(settings_of(&url).0));
    let seeds = vec![seed(ports[0]), seed(ports[1])];
    let heard = Nodes::new(seeds).hear(&map, &Deadline::after(Duration::from_secs(60)));
    drop(silent);
    assert_eq!(heard.views.len(), 2, "{heard:?}");
}
