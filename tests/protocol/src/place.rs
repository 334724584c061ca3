//! A server to run scripts on: a real one, or the simulated one, which has to do the same.

use crosslock_servers::redis::Redis;
use crosslock_servers::serve::{Served, serve};
use redis::{Client, Connection};
use support::RedisServer;

pub enum Place {
    Real(RedisServer),
    Simulated(Served),
}

impl Place {
    pub fn real() -> Self {
        Place::Real(RedisServer::start())
    }

    pub fn simulated() -> Self {
        let served = serve(Redis::single());
        Place::Simulated(served.expect("a port"))
    }

    pub fn connection(&self) -> Connection {
        match self {
            Place::Real(server) => server.connection(),
            Place::Simulated(served) => {
                let url = format!("redis://{}/", served.address());
                let client = Client::open(url).expect("a URL");
                client.get_connection().expect("connect")
            }
        }
    }
}
