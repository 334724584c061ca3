//! The digests of the library's scripts, by which a proxy knows them.

const SHARED: [(&str, &str); 2] = [
    (
        "-- include token.lua\n",
        include_str!("../../lua/token.lua"),
    ),
    ("-- include line.lua\n", include_str!("../../lua/line.lua")),
];

pub(crate) fn acquire() -> String {
    digest(include_str!("../../lua/lock_acquire.lua"))
}

pub(crate) fn renew() -> String {
    digest(include_str!("../../lua/lock_renew.lua"))
}

pub(crate) fn release() -> String {
    digest(include_str!("../../lua/lock_release.lua"))
}

fn digest(code: &str) -> String {
    let include = |code: String, (line, text): &(&str, &str)| code.replace(line, text);
    let code = SHARED.iter().fold(code.to_owned(), include);
    redis::Script::new(&code).get_hash().to_owned()
}
