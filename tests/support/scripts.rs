//! The library's scripts, as a server and a proxy see them.

const SHARED: [(&str, &str); 10] = [
    ("-- include lock_acquire.lua\n", ACQUIRE),
    ("-- include lock_release.lua\n", RELEASE),
    ("-- include lock_renew.lua\n", RENEW),
    ("-- include each.lua\n", include_str!("../../lua/each.lua")),
    (
        "-- include counter.lua\n",
        include_str!("../../lua/counter.lua"),
    ),
    (
        "-- include grant.lua\n",
        include_str!("../../lua/grant.lua"),
    ),
    (
        "-- include token.lua\n",
        include_str!("../../lua/token.lua"),
    ),
    ("-- include mode.lua\n", include_str!("../../lua/mode.lua")),
    ("-- include held.lua\n", include_str!("../../lua/held.lua")),
    ("-- include line.lua\n", include_str!("../../lua/line.lua")),
];

pub const ACQUIRE: &str = include_str!("../../lua/lock_acquire.lua");
pub const RENEW: &str = include_str!("../../lua/lock_renew.lua");
pub const RELEASE: &str = include_str!("../../lua/lock_release.lua");

pub const DOWNGRADE: &str = include_str!("../../lua/lock_downgrade.lua");
pub const ACQUIRE_ALL: &str = include_str!("../../lua/all_acquire.lua");
pub const RENEW_ALL: &str = include_str!("../../lua/all_renew.lua");
pub const RELEASE_ALL: &str = include_str!("../../lua/all_release.lua");

/// The script with what it includes, as it is sent to the server.
pub fn whole(code: &str) -> String {
    let include = |code: String, (line, text): &(&str, &str)| code.replace(line, text);
    SHARED.iter().fold(code.to_owned(), include)
}

/// What a request to run the script contains.
pub fn digest(code: &str) -> String {
    redis::Script::new(&whole(code)).get_hash().to_owned()
}
