//! Scripts that are broken on purpose, in builds that `tests/mutants.sh` makes.

/// What is replaced in the scripts that have it, and by what.
const CHANGES: &[(&str, &str)] = if cfg!(crosslock_mutant = "release_any_owner") {
    &[
        (
            "if exclusive and lock == owner and plain",
            "if exclusive and lock and plain",
        ),
        (
            "  if held ~= owner then\n    local left",
            "  if not held then\n    local left",
        ),
    ]
} else if cfg!(crosslock_mutant = "renewal_recreates") {
    &[(
        "  if redis.call('GET', KEYS[1]) ~= owner then\n    return 0\n  end\n",
        "  redis.call('SET', KEYS[1], owner)\n",
    )]
} else if cfg!(crosslock_mutant = "token_not_counted") {
    &[
        (
            "    stored = counter_after\n",
            "    stored = counter_after - 2\n    now = 0\n",
        ),
        (
            "local floor = math.max(counter_after + 1, now)\n",
            "local floor = counter_after - 3\n",
        ),
    ]
} else if cfg!(crosslock_mutant = "heartbeat_loses_place") {
    &[(
        "  if is_new then\n",
        "  if not entered then\n    redis.call('LREM', KEYS[3], 1, owner)\n  end\n  do\n",
    )]
} else if cfg!(crosslock_mutant = "dead_are_served") {
    &[(
        "    elseif heard ~= 0 and owner ~= leaving then\n",
        "    else\n",
    )]
} else if cfg!(crosslock_mutant = "dead_stay_in_line") {
    &[
        (
            "    if heard ~= 0 and owner ~= leaving and not fits(mode) then\n",
            "    if heard == 0 or not fits(mode) then\n",
        ),
        (" and (first or not may_have('q')) then\n", " then\n"),
    ]
} else if cfg!(crosslock_mutant = "queue_without_ttl") {
    &[("    redis.call('PEXPIRE', line, DAY)\n", "")]
} else if cfg!(crosslock_mutant = "reader_beside_writer") {
    &[
        (
            "    return held == READERS and mode == 'r'\n",
            "    return mode == 'r'\n",
        ),
        (
            "if not lock or lock == owner or string.find(lock, 'crosslock:[rp]') == 1 then\n",
            "if true then\n",
        ),
        (" and (first or not may_have('q')) then\n", " then\n"),
    ]
} else if cfg!(crosslock_mutant = "permits_not_counted") {
    &[(
        "  return count and used + count <= tonumber(permits)\n",
        "  return count and used <= tonumber(permits)\n",
    )]
} else if cfg!(crosslock_mutant = "stores_without_owner") {
    &[(
        "local plain = tonumber(counter)\nif exclusive and lock == owner",
        "local plain = tonumber(counter)\nif exclusive and KEYS[7] then\n  redis.call('SET', KEYS[7], ARGV[4])\nend\nif exclusive and lock == owner",
    )]
} else if cfg!(crosslock_mutant = "dead_reader_renewed") {
    &[(
        "redis.call('ZADD', KEYS[6], clock + ttl, member_of(owner, mode))\nlocal last",
        "for _, member in ipairs(redis.call('ZRANGE', KEYS[6], 0, -1)) do\n  redis.call('ZADD', KEYS[6], clock + ttl, member)\nend\nlocal last",
    )]
} else {
    &[]
};

const SCRIPTS: [&str; 8] = [
    include_str!("../../../lua/grant.lua"),
    include_str!("../../../lua/held.lua"),
    include_str!("../../../lua/line.lua"),
    include_str!("../../../lua/lock_acquire.lua"),
    include_str!("../../../lua/lock_release.lua"),
    include_str!("../../../lua/lock_renew.lua"),
    include_str!("../../../lua/mode.lua"),
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
