//! A server to run scripts on: a real one, or the simulated one, which has to do the same.

use std::net::SocketAddr;

use crosslock_servers::redis::Redis;
use crosslock_servers::serve::serve;
use redis::{Client, Connection};
use support::RedisServer;

pub enum Place {
    Real(RedisServer),
    Simulated(SocketAddr),
}

impl Place {
    pub fn real() -> Self {
        Place::Real(RedisServer::start())
    }

    pub fn simulated() -> Self {
        let address = serve(Redis::single());
        Place::Simulated(address.expect("a port"))
    }

    pub fn connection(&self) -> Connection {
        match self {
            Place::Real(server) => server.connection(),
            Place::Simulated(address) => {
                let url = format!("redis://{address}/");
                let client = Client::open(url).expect("a URL");
                client.get_connection().expect("connect")
            }
        }
    }
}
