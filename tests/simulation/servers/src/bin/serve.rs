//! Serves a simulated server, and prints its ports, one a line, until its input ends: `serve redis`.

use std::io::{self, Read};

use crosslock_servers::{redis, serve};

fn main() -> io::Result<()> {
    let which = std::env::args().nth(1).unwrap_or_default();
    let served = match which.as_str() {
        "redis" => serve::serve(1, |mut at| redis::Single::at(at.remove(0), None))?,
        _ => return Err(io::Error::other("which one? redis")),
    };
    for address in served.addresses() {
        println!("{}", address.port());
    }
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
