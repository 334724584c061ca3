//! The library's scripts, as a server and a proxy see them.

const SHARED: [(&str, &str); 10] = [
    ("-- include lock_acquire.lua\n", ACQUIRE),
    ("-- include lock_release.lua\n", RELEASE),
    ("-- include lock_renew.lua\n", RENEW),
    (
        "-- include each.lua\n",
        include_str!("../../lua/lib/each.lua"),
    ),
    (
        "-- include counter.lua\n",
        include_str!("../../lua/lib/counter.lua"),
    ),
    (
        "-- include grant.lua\n",
        include_str!("../../lua/lib/grant.lua"),
    ),
    (
        "-- include token.lua\n",
        include_str!("../../lua/lib/token.lua"),
    ),
    (
        "-- include mode.lua\n",
        include_str!("../../lua/lib/mode.lua"),
    ),
    (
        "-- include held.lua\n",
        include_str!("../../lua/lib/holders.lua"),
    ),
    (
        "-- include line.lua\n",
        include_str!("../../lua/lib/hand_off.lua"),
    ),
];

pub const ACQUIRE: &str = include_str!("../../lua/lock/acquire.lua");
pub const RENEW: &str = include_str!("../../lua/lock/renew.lua");
pub const RELEASE: &str = include_str!("../../lua/lock/release.lua");

pub const DOWNGRADE: &str = include_str!("../../lua/lock/downgrade.lua");
pub const ACQUIRE_ALL: &str = include_str!("../../lua/all/acquire.lua");
pub const RENEW_ALL: &str = include_str!("../../lua/all/renew.lua");
pub const RELEASE_ALL: &str = include_str!("../../lua/all/release.lua");

/// The script with what it includes, as it is sent to the server.
pub fn whole(code: &str) -> String {
    let include = |code: String, (line, text): &(&str, &str)| code.replace(line, text);
    SHARED.iter().fold(code.to_owned(), include)
}

/// What a request to run the script contains.
pub fn digest(code: &str) -> String {
    redis::Script::new(&whole(code)).get_hash().to_owned()
}
