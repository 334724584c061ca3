//! The simulated Redis beside the real one: the same bytes are sent to both, and the same bytes have to come back.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

use crosslock_servers::redis::Single;
use crosslock_world::service::{Done, Io, Service};
use support::RedisServer;

/// A service without a world, which has one client.
struct Simulated {
    service: Single,
    random: fastrand::Rng,
}

impl Simulated {
    fn start() -> Self {
        let mut simulated = Simulated {
            service: Single::new(),
            random: fastrand::Rng::with_seed(1),
        };
        simulated.tell(|service, io| service.connected(io, 0, 1));
        simulated
    }

    fn tell(&mut self, what: impl FnOnce(&mut Single, &mut Io<'_>)) -> Vec<u8> {
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
        let mut io = Io {
            now,
            walls: &[now],
            random: &mut self.random,
            done: Vec::new(),
        };
        what(&mut self.service, &mut io);
        let sent = io.done.into_iter().filter_map(|done| match done {
            Done::Send(_, bytes) => Some(bytes),
            _ => None,
        });
        sent.flatten().collect()
    }

    fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.tell(|service, io| service.received(io, 0, 1, bytes))
    }
}

/// A connection to a real server.
struct Real {
    stream: TcpStream,
    _server: RedisServer,
}

impl Real {
    fn start() -> Self {
        let server = RedisServer::start();
        let stream = TcpStream::connect(server.addr()).expect("connect");
        stream.set_nodelay(true).expect("set an option");
        let patience = Some(Duration::from_secs(10));
        stream.set_read_timeout(patience).expect("set an option");
        Real {
            stream,
            _server: server,
        }
    }

    /// Reads until the answer to a text that was sent behind all.
    fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        const END: &[u8] = b"$9\r\nthe end!!\r\n";
        let echo = packed(&["ECHO", "the end!!"]);
        self.stream
            .write_all(&[bytes, &echo].concat())
            .expect("write");
        let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
        while !answer.ends_with(END) {
            let length = self.stream.read(&mut buffer).expect("an answer");
            assert!(length > 0, "closed behind {}", shown(&answer));
            answer.extend_from_slice(&buffer[..length]);
        }
        answer.truncate(answer.len() - END.len());
        answer
    }
}

fn packed(words: &[impl AsRef<str>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words.iter().map(AsRef::as_ref) {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", " ")
}

fn lines_of(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Answers are the same, but for the time that passes between the two.
fn is_same(real: &[u8], simulated: &[u8], words: &[&str]) -> bool {
    let is_time = words.iter().any(|word| word.ends_with("TTL"));
    let number = |bytes: &[u8]| shown(bytes).trim().strip_prefix(':')?.parse::<i64>().ok();
    match (number(real), number(simulated)) {
        (Some(real), Some(simulated)) if is_time => (real - simulated).abs() < 5_000,
        // In any order.
        _ if words.contains(&"KEYS") => lines_of(real) == lines_of(simulated),
        _ => real == simulated,
    }
}

struct Both {
    real: Real,
    simulated: Simulated,
    last: VecDeque<String>,
}

impl Both {
    fn start() -> Self {
        Both {
            real: Real::start(),
            simulated: Simulated::start(),
            last: VecDeque::new(),
        }
    }

    #[track_caller]
    fn ask(&mut self, words: &[impl AsRef<str>]) {
        const TOLD: usize = 15;
        let bytes = packed(words);
        let (real, simulated) = (self.real.ask(&bytes), self.simulated.ask(&bytes));
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        let told = words.iter().filter(|word| word.len() < 150);
        let told: Vec<_> = told.collect();
        self.last.push_back(format!("{told:?}: {}", shown(&real)));
        if self.last.len() > TOLD {
            self.last.pop_front();
        }
        if !is_same(&real, &simulated, &words) {
            let last: Vec<_> = self.last.drain(..).collect();
            panic!("simulated: {}\n{}", shown(&simulated), last.join("\n"));
        }
    }
}

/// Commands with places for a key (K), a word (W), a number (N), a score (S), an end of scores (B) and a ttl (T).
const COMMANDS: &str = "DEL K;DEL K K;EXISTS K K;GET K;MGET K K K;GETRANGE K N N;INCR K;TYPE K;KEYS *;\
    SET K W;SET K N;SET K W PX T;SET K W PX T NX;SET K W NX;SET K W XX GET;SET K W KEEPTTL;SET K W KEEPTTL GET;\
    SET K W NX GET;SET K W PX M;SET K W PXAT 1;SET K W PX T KEEPTTL;SET K W NX XX;SET K W PX;SET K W EX 500;\
    SET K W GET PXAT 4102444800000;\
    PEXPIRE K T;PEXPIRE K M;PEXPIREAT K 4102444800000;PEXPIREAT K 1;PTTL K;TTL K;PERSIST K;EXPIRE K 500;COPY K K;\
    PEXPIRE K 9223372036854775807;SET K W PX 9223372036854775807;PEXPIRE K M;\
    HSET K W W;HSET K W W W N;HSET K W W W;HGET K W;HDEL K W;HDEL K W W;HMGET K W W;HGETALL K;HLEN K;HEXISTS K W;\
    LINDEX K N;LLEN K;LPOP K;LPOP K N;LPOS K W;LRANGE K N N;LREM K N W;RPUSH K W;RPUSH K W W W;\
    ZADD K S W;ZADD K S W S W;ZADD K NX S W;ZADD K XX CH S W;ZADD K GT S W;ZADD K LT CH S W;ZADD K INCR S W;\
    ZADD K NX XX S W;ZADD K NX GT S W;ZADD K INCR S W S W;ZADD K S W S;ZADD K W W;ZADD K NX INCR S W;\
    ZCARD K;ZCOUNT K B B;ZINCRBY K S W;ZSCORE K W;ZREM K W;ZREM K W W;ZREMRANGEBYSCORE K B B;\
    ZRANGE K N N;ZRANGE K N N WITHSCORES;ZRANGE K N N REV;ZRANGE K B B BYSCORE;ZRANGE K B B BYSCORE WITHSCORES;\
    ZRANGE K B B BYSCORE LIMIT N N WITHSCORES;ZRANGE K B B BYSCORE REV;ZRANGE K N N LIMIT 0 1;ZRANGE K W N;\
    ZRANGEBYSCORE K B B;ZRANGEBYSCORE K B B WITHSCORES;ZRANGEBYSCORE K B B LIMIT N N;ZRANGEBYSCORE K B B W;\
    PUBLISH W W;SPUBLISH W W;PUBSUB NUMSUB W W;PUBSUB SHARDNUMSUB W;PUBSUB NUMSUB;GET;GET K K;NOPE W;ZADD K S;\
    EXPIRE K M;LPOS K W;PING;PING W;ECHO W;FLUSHALL;WAIT 0 1;SELECT 0;SELECT 99;CLIENT GETNAME;\
    EVAL redis W;EVAL return(1) N K;SCRIPT EXISTS W;EVALSHA W 0";

fn word_of(random: &mut fastrand::Rng, kind: &str) -> String {
    let mut one = |all: &[&str]| all[random.usize(..all.len())].to_owned();
    match kind {
        "K" => one(&["a", "b", "c", "d"]),
        "W" => one(&["x", "y", "", "z z", "7", "-3", "long enough to be long"]),
        "N" => one(&[
            "0", "1", "2", "5", "-1", "-2", "-9", "100", "1.5", "007", "+1", " 1",
        ]),
        "S" => one(&[
            "0",
            "1",
            "-1",
            "2.5",
            "1e3",
            "1700000000000000",
            "-0.1",
            "inf",
            "-inf",
            "x",
        ]),
        "B" => one(&[
            "0",
            "1",
            "(1",
            "-inf",
            "+inf",
            "(2.5",
            "1700000000000000",
            "(-1",
            "x",
        ]),
        "T" => one(&["500000", "900000"]),
        // No time that ends while the test runs.
        "M" => one(&["0", "-1", "-5", "x", "1.5", "99999999999"]),
        kind => kind.to_owned(),
    }
}

fn random_command(random: &mut fastrand::Rng, commands: &[&str]) -> Vec<String> {
    let template = commands[random.usize(..commands.len())];
    template
        .split(' ')
        .map(|kind| word_of(random, kind))
        .collect()
}

#[test]
fn any_command_is_answered_as_the_real_server_does() {
    let mut both = Both::start();
    let commands: Vec<_> = COMMANDS.split(';').collect();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..30_000 {
        both.ask(&random_command(&mut random, &commands));
    }
}

#[test]
fn any_command_from_a_script_gives_what_it_does_on_the_real_server() {
    const CALL: &str = "local answer = redis.pcall(unpack(ARGV))
        if type(answer) ~= 'table' then return {type(answer), answer, tostring(answer)} end
        return {answer.err or answer.ok or answer, #answer, answer}";
    let mut both = Both::start();
    let commands = COMMANDS.split(';');
    // What is about a connection is no matter of scripts.
    let of_connections = ["PING", "ECHO", "CLIENT", "SELECT", "WAIT", "EVAL", "SCRIPT"];
    let is_data = |one: &&str| !of_connections.iter().any(|name| one.starts_with(name));
    let commands: Vec<_> = commands.filter(is_data).collect();
    let mut random = fastrand::Rng::new();
    for _ in 0..10_000 {
        let command = random_command(&mut random, &commands);
        if command.iter().any(|word| word.contains("TTL")) {
            continue;
        }
        let mut words = ["EVAL", CALL, "0"].map(str::to_owned).to_vec();
        words.extend(command);
        both.ask(&words);
    }
}

const SCRIPTS: &[&str] = &[
    "return {1, 2.7, -2.7, false, true, 'x', {}, {1, {2}}, nil, 3}",
    "return {ok = 'fine'}",
    "return {err = 'CONFLICT it is'}",
    "return redis.error_reply('CONFLICT it is')",
    "return redis.error_reply('plain')",
    "return redis.error_reply('-CODE and text')",
    "return redis.status_reply('fine')",
    "local x = redis.call('GET') return x",
    "local x = redis.call('NOPE', 1)",
    "local x = redis.call()",
    "local x = redis.call({})",
    "local x = redis.call('SUBSCRIBE', 'a')",
    "return redis.pcall('HGET', KEYS[1], 'x')",
    "redis.call('SET', KEYS[1], 1)\n\nlocal x = redis.call('HGET', KEYS[1], 'x')",
    "local function deep() local x = redis.call('HGET', 'a', 'x') return x end\nlocal x = deep()\nreturn x",
    "local ok, failure = pcall(redis.call, 'HGET', KEYS[1], 'x') return {ok and 1 or 0, failure}",
    "local ok, failure = pcall(redis.call, 'HGET', KEYS[1], 'x') return redis.error_reply(failure)",
    "local ok, failure = pcall(error, {err = 'x', other = 1}) return failure",
    "local ok, failure = pcall(error, {1}) return failure",
    "return {pcall(function() return 1, 2, 3 end)}",
    "local ok, failure = pcall(error, 'text') return failure",
    "error({err = 'CONFLICT it is'})",
    "error('text')",
    "error('text', 0)",
    "return nil + 1",
    "return nope",
    "nope = 1",
    "return (",
    "return redis.sha1hex('')",
    "return redis.call('SET', KEYS[1], 1.5)",
    "return redis.call('SET', KEYS[1], 1 / 3) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 2 ^ 53) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 2 ^ 63) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 1e17) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], -1e-5) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 1e300 * 10) and redis.call('GET', KEYS[1])",
    "return 2 ^ 62",
    "return #redis.call('TIME')",
    "return {redis.call('SET', KEYS[1], 'x', 'PX', 100), redis.call('PTTL', KEYS[1])}",
    "return string.format('%d %s %.17g', 3, 'x', 0.1)",
    "return tostring(1700000000000000) .. ' ' .. 1700000000000000 .. ' ' .. 2 ^ 53",
    "return {string.match('12q', '^(%d+)(q?)$')}",
    "return KEYS[1] .. #KEYS .. #ARGV",
    "return redis.call('DEL', KEYS[1])",
];

#[test]
fn scripts_give_and_fail_as_they_do_on_the_real_server() {
    let mut both = Both::start();
    for script in SCRIPTS {
        both.ask(&["EVAL", script, "1", "a", "b"]);
    }
}

/// A comparison that finds nothing might look for nothing.
#[test]
#[should_panic(expected = "simulated: $4")]
fn what_differs_is_found() {
    let mut both = Both::start();
    both.simulated.ask(&packed(&["SET", "a", "else"]));
    both.ask(&["GET", "a"]);
}
