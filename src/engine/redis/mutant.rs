//! Scripts that are broken on purpose, in builds that `tests/mutants.sh` makes.

/// What is replaced in the scripts that have it, and by what.
const CHANGES: &[(&str, &str)] = if cfg!(crosslock_mutant = "release_any_owner") {
    &[(
        "local held = holder == owner",
        "local held = holder and true or false",
    )]
} else if cfg!(crosslock_mutant = "renewal_recreates") {
    &[(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then\n  return 0\nend\n",
        "redis.call('SET', KEYS[1], ARGV[1])\n",
    )]
} else if cfg!(crosslock_mutant = "token_not_counted") {
    &[(
        "pcall(hand_on, token, now)",
        "pcall(hand_on, stored - 1, now)",
    )]
} else if cfg!(crosslock_mutant = "heartbeat_loses_place") {
    &[(
        "  if not stood then\n",
        "  if stood then\n    redis.call('LREM', KEYS[3], 1, owner)\n  end\n  do\n",
    )]
} else if cfg!(crosslock_mutant = "dead_are_served") {
    &[("    if heard ~= 0 then\n", "    do\n")]
} else if cfg!(crosslock_mutant = "dead_stay_in_line") {
    &[
        (
            "    leave(owner)\n    local heard = 1\n",
            "    local heard = 1\n",
        ),
        (
            "    if heard ~= 0 then\n",
            "    if heard == 0 then\n      return nil\n    else\n      leave(owner)\n",
        ),
    ]
} else if cfg!(crosslock_mutant = "queue_without_ttl") {
    &[("  redis.call('PEXPIRE', KEYS[3], DAY)\n", "")]
} else {
    &[]
};

const SCRIPTS: [&str; 5] = [
    include_str!("../../../lua/line.lua"),
    include_str!("../../../lua/lock_acquire.lua"),
    include_str!("../../../lua/lock_release.lua"),
    include_str!("../../../lua/lock_renew.lua"),
    include_str!("../../../lua/token.lua"),
];

/// Panics if the change is one of a text that no script has any more: the mutant would be the library as it is.
pub(super) fn of(code: &str) -> String {
    for (from, _) in CHANGES {
        let is_somewhere = SCRIPTS.iter().any(|script| script.contains(from));
        assert!(is_somewhere, "no script has {from:?}");
    }
    CHANGES
        .iter()
        .fold(code.to_owned(), |code, (from, to)| code.replace(from, to))
}
