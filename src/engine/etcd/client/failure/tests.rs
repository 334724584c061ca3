//! What the servers' errors mean, and what a peer says that isn't etcd.

use super::*;

fn failed(code: u64, text: &str) -> HostFailure {
    let error = format!(r#"{{"error":"{text}","message":"{text}","code":{code}}}"#);
    let in_stream = format!(
        r#"{{"error":{{"grpc_code":{code},"http_code":500,"message":"{text}","http_status":"X"}}}}"#
    );
    let in_stream = HostFailure::told(&serde_json::from_str(&in_stream).unwrap()).unwrap();
    let failed = HostFailure::answered(500, error.as_bytes());
    assert_eq!(format!("{failed:?}"), format!("{in_stream:?}"));
    failed
}

/// What is made of etcd's words: who else may be asked, and why.
fn meaning(code: u64, words: &str) -> String {
    let failed = failed(code, &format!("etcdserver: {words}"));
    let why = format!("{:?}", failed.why);
    let why = why.split('(').next().unwrap();
    format!("{:?} {why}", failed.effect)
}

#[test]
fn refusals_are_told_from_outages() {
    for (code, words, expected) in [
        (5, "requested lease not found", "Refused LeaseGone"),
        (9, "lease already exists", "Refused LeaseExists"),
        (7, "permission denied", "Refused Denied"),
        (
            3,
            "authentication failed, invalid user ID",
            "Refused Denied",
        ),
        (3, "user name is empty", "Refused Denied"),
        (9, "authentication is not enabled", "Refused Denied"),
        (16, "invalid auth token", "UnknownToken Denied"),
        (
            3,
            "revision of auth store is old",
            "UnknownToken Unreachable",
        ),
        (
            11,
            "mvcc: required revision has been compacted",
            "Refused Other",
        ),
        (3, "request is too large", "Refused TooLarge"),
        (3, "too many operations in txn request", "Refused TooLarge"),
        (3, "duplicate key given in txn request", "Refused Other"),
        (8, "mvcc: database space exceeded", "Unclear Unreachable"),
        (8, "too many requests", "Unclear Unreachable"),
        (14, "no leader", "Undone Unreachable"),
        (14, "rpc not supported for learner", "Undone Unreachable"),
        (14, "request timed out", "Unclear Unreachable"),
        (14, "leader changed", "Unclear Unreachable"),
        (13, "what", "Unclear Other"),
    ] {
        assert_eq!(meaning(code, words), expected, "{words}");
    }
}

#[test]
fn watch_that_ended_for_its_token_may_begin_with_another() {
    let ended = |reason: &str| {
        let texts = [
            format!("etcdserver: {reason}"),
            format!("rpc error: code = X desc = etcdserver: {reason}"),
        ];
        let [short, long] = texts.map(|text| HostFailure::ended(&text));
        assert_eq!(short.effect, long.effect);
        (long.effect, long.why)
    };
    let (effect, _) = ended("invalid auth token");
    assert_eq!(effect, Effect::UnknownToken);
    assert!(matches!(
        ended("permission denied"),
        (Effect::Refused, Failure::Denied(_))
    ));
    assert!(matches!(
        ended("no leader"),
        (Effect::Unclear, Failure::Unreachable(_))
    ));
}

#[test]
fn peer_that_is_not_etcd_is_not_quoted() {
    for (status, body) in [
        (404, "404 page not found: secret"),
        (400, "{\"secret\":1}"),
        (200, "secret"),
    ] {
        let failed = HostFailure::answered(status, body.as_bytes());
        assert_eq!(failed.effect, Effect::Unclear);
        assert!(matches!(failed.why, Failure::Other(_)));
        assert!(!failed.why.to_string().contains("secret"));
    }
    let failed = HostFailure::answered(503, b"<html>");
    assert_eq!(failed.effect, Effect::Unclear);
    assert!(matches!(failed.why, Failure::Unreachable(_)));
    let failed = HostFailure::answered(400, b"Client sent an HTTP request to an HTTPS server.\n");
    assert!(failed.why.to_string().contains("etcds://"));
}
