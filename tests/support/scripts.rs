//! The library's scripts, as a server and a proxy see them.

#[path = "../../src/engine/redis/lua.rs"]
mod lua;

pub const ACQUIRE: &str = "lock/acquire";
pub const RENEW: &str = "lock/renew";
pub const RELEASE: &str = "lock/release";
pub const DOWNGRADE: &str = "lock/downgrade";
pub const ACQUIRE_ALL: &str = "all/acquire";
pub const RENEW_ALL: &str = "all/renew";
pub const RELEASE_ALL: &str = "all/release";
pub const PERMITS: &str = "semaphore/permits";

/// The script with what it uses, as it is sent to the server.
pub fn whole(script: &str) -> String {
    lua::whole(script)
}

/// What a request to run the script contains.
pub fn digest(script: &str) -> String {
    redis::Script::new(&whole(script)).get_hash().to_owned()
}
