//! Redis. Of an error its code has to be the same.

use std::time::SystemTime;

use crosslock_servers::redis::Redis;
use crosslock_world::service::Connection;
use support::RedisServer;

use crate::peers::{Both, Peer};

type Servers = Both<Redis>;

/// The first one.
const CLIENT: Connection = 1;

pub(crate) fn packed(words: &[impl AsRef<str>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words.iter().map(AsRef::as_ref) {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", " ")
}

/// Answers are the same, but for the words of errors, and for the time that passes between the two.
fn is_same(real: &str, simulated: &str, words: &[&str]) -> bool {
    let number = |text: &str| text.trim().strip_prefix(':')?.parse::<i64>().ok();
    if let (true, Some(real), Some(simulated)) =
        (words.contains(&"PTTL"), number(real), number(simulated))
    {
        return (real - simulated).abs() < 60_000;
    }
    let code = |text: &str| text.split(' ').next().map(str::to_owned);
    real == simulated || real.starts_with('-') && code(real) == code(simulated)
}

/// Reads until the answer to a text that is sent behind all.
fn answer(peer: &mut dyn Peer, bytes: &[u8]) -> String {
    const END: &[u8] = b"$9\r\nthe end!!\r\n";
    peer.send(CLIENT, bytes);
    peer.send(CLIENT, &packed(&["PING", "the end!!"]));
    for _ in 0..20_000 {
        let (come, closed) = peer.come(CLIENT);
        if come.ends_with(END) {
            come.truncate(come.len() - END.len());
            return shown(&std::mem::take(come));
        }
        assert!(!closed, "closed behind {}", shown(come));
    }
    panic!("no answer to {}", shown(bytes))
}

fn start() -> (Servers, RedisServer) {
    let server = RedisServer::start();
    let mut both = Both::new(vec![server.addr()], Redis::single());
    both.simulated.began = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
    assert_eq!(both.connect(0), CLIENT);
    (both, server)
}

#[track_caller]
fn ask(both: &mut Servers, words: &[impl AsRef<str>]) {
    let bytes = packed(words);
    let (real, simulated) = both.each(|peer, _| answer(peer, &bytes));
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let is_same = is_same(&real, &simulated, &words);
    assert!(is_same, "{words:?}: {real}, simulated: {simulated}");
}

/// As the scripts and the library use them, with places for a key (K), a word (W), a number (N), one that isn't below
/// zero (P), a score (S), an end of scores (B), a ttl (T) and one that may be wrong (M).
const COMMANDS: &str = "DEL K;DEL K K;EXISTS K K;GET K;MGET K K K;GETRANGE K P P;INCR K;SET K W;SET K N;\
    SET K W PX T;SET K W NX PX T;SET K W NX;SET K W KEEPTTL;SET K W KEEPTTL GET;SET K W PX M;SET K W PXAT 1;\
    SET K W PXAT 4102444800000;SET K W PX;PEXPIRE K T;PEXPIRE K M;PEXPIREAT K 4102444800000;PEXPIREAT K 1;PTTL K;\
    PERSIST K;PEXPIRE K 9223372036854775807;HSET K W W;HSET K W W W N;HSET K W W W;HGET K W;HDEL K W;\
    HDEL K W W;HMGET K W W;HGETALL K;HLEN K;HEXISTS K W;LINDEX K N;LLEN K;LPOP K;LPOS K W;LRANGE K N N;LREM K P W;\
    RPUSH K W;RPUSH K W W W;ZADD K S W;ZADD K S W S W;ZADD K S W S;ZCARD K;ZCOUNT K B B;ZSCORE K W;\
    ZREM K W;ZREM K W W;ZREMRANGEBYSCORE K B B;ZRANGE K N N;ZRANGE K N N WITHSCORES;ZRANGE K B B BYSCORE;\
    ZRANGE K B B BYSCORE WITHSCORES;ZRANGE K B B BYSCORE LIMIT N N WITHSCORES;ZRANGE K N N LIMIT 0 1;ZRANGE K W N;\
    ZRANGEBYSCORE K B B;ZRANGEBYSCORE K B B LIMIT N N;ZRANGEBYSCORE K B B W;PUBLISH W W;SPUBLISH W W;\
    PUBSUB NUMSUB W W;PUBSUB SHARDNUMSUB W;GET;GET K K;NOPE W;ZADD K S;FLUSHALL;";
const OF_CONNECTIONS: &str = "PING;PING W;WAIT 0 1;EVAL redis W;EVAL return(1) N K;EVALSHA W 0";

fn word_of(random: &mut fastrand::Rng, kind: &str) -> String {
    const LARGE: &str = "1700000000000000";
    let all: &[&str] = match kind {
        "K" => &["a", "b", "c", "d"],
        "W" => &["x", "y", "", "z z", "7", "-3", "long enough to be long"],
        "N" => &[
            "0", "1", "2", "5", "-1", "-2", "-9", "100", "1.5", "007", "+1", " 1",
        ],
        "P" => &["0", "1", "2", "5", "100", "1.5", "007", "+1", " 1"],
        "S" => &[
            "0", "1", "-1", "2.5", "1e3", LARGE, "-0.5", "inf", "-inf", "x",
        ],
        "B" => &["0", "1", "(1", "-inf", "+inf", "(2.5", LARGE, "(-1", "x"],
        "T" => &["500000", "900000"],
        // No time that ends while the test runs.
        "M" => &["0", "-1", "-5", "x", "1.5", "99999999999"],
        kind => return kind.to_owned(),
    };
    all[random.usize(..all.len())].to_owned()
}

fn random_command(random: &mut fastrand::Rng, commands: &[&str]) -> Vec<String> {
    let template = commands[random.usize(..commands.len())];
    let words = template.split(' ').map(|kind| word_of(random, kind));
    words.collect()
}

#[test]
fn any_command_is_answered_as_the_real_server_does() {
    let (mut both, _server) = start();
    let commands = [COMMANDS, OF_CONNECTIONS].concat();
    let commands: Vec<_> = commands.split(';').collect();
    for _ in 0..30_000 {
        let words = random_command(&mut both.simulated.random, &commands);
        ask(&mut both, &words);
    }
}

#[test]
fn any_command_from_a_script_gives_what_it_does_on_the_real_server() {
    const CALL: &str = "local answer = redis.pcall(unpack(ARGV))
        if type(answer) ~= 'table' then return {type(answer), answer, tostring(answer)} end
        return {answer.err and string.match(answer.err, '^%S+') or answer.ok or answer, #answer}";
    let (mut both, _server) = start();
    let commands = COMMANDS.split(';').filter(|one| !one.is_empty());
    // The time that passes would show.
    let commands: Vec<_> = commands.filter(|one| !one.contains("TTL")).collect();
    for _ in 0..10_000 {
        let mut words = ["EVAL", CALL, "0"].map(str::to_owned).to_vec();
        words.extend(random_command(&mut both.simulated.random, &commands));
        ask(&mut both, &words);
    }
}

const SCRIPTS: &[&str] = &[
    "return {1, 2.7, -2.7, false, true, 'x', {}, {1, {2}}, nil, 3}",
    "return {err = 'CONFLICT it is'}",
    "return redis.error_reply('CONFLICT it is')",
    "return redis.error_reply('plain')",
    "local x = redis.call('GET') return x",
    "local x = redis.call()",
    "local x = redis.call({})",
    "local x = redis.call('SUBSCRIBE', 'a')",
    "return redis.pcall('HGET', KEYS[1], 'x')",
    "redis.call('SET', KEYS[1], 1) local x = redis.call('HGET', KEYS[1], 'x')",
    "local ok, failure = pcall(redis.call, 'HGET', KEYS[1], 'x') return {ok and 1 or 0, failure}",
    "local ok, failure = pcall(redis.call, 'HGET', KEYS[1], 'x') return redis.error_reply(failure)",
    "return {pcall(function() return 1, 2, 3 end)}",
    "local ok, failure = pcall(error, 'text') return failure",
    "error({err = 'CONFLICT it is'})",
    "error('text', 0)",
    "return nil + 1",
    "return nope",
    "nope = 1",
    "return (",
    "return redis.sha1hex('')",
    "return {redis.call('SET', KEYS[1], 1.5), redis.call('GET', KEYS[1])}",
    "return redis.call('SET', KEYS[1], 2 ^ 53) and redis.call('GET', KEYS[1])",
    "return 2 ^ 62",
    "return #redis.call('TIME')",
    "return redis.call('PEXPIRE', KEYS[1], 100000)",
    "return tostring(1700000000000000) .. ' ' .. 1700000000000000 .. ' ' .. 2 ^ 53",
    "return {string.match('12q', '^(%d+)(q?)$')}",
    "return KEYS[1] .. #KEYS .. #ARGV",
    "return redis.call('DEL', KEYS[1])",
];

#[test]
fn scripts_give_and_fail_as_they_do_on_the_real_server() {
    let (mut both, _server) = start();
    for script in SCRIPTS {
        ask(&mut both, &["EVAL", script, "1", "a", "b"]);
    }
}

/// A comparison that finds nothing might look for nothing.
#[test]
#[should_panic(expected = "simulated: $4")]
fn what_differs_is_found() {
    let (mut both, _server) = start();
    answer(&mut both.simulated, &packed(&["SET", "a", "else"]));
    ask(&mut both, &["GET", "a"]);
}
