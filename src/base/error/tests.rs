use super::*;

#[test]
fn each_cause_is_told_once() {
    let error = Error::engine(Some("a"), "redis://h", "the server's log", "why it is so");
    let text = error.to_string();
    assert_eq!(text, "lock \"a\": redis://h failed: check the server's log");
    assert_eq!(
        ErrorChain(&error).to_string(),
        format!("{text}: why it is so")
    );
    let inner = std::io::Error::other(Error::engine(None, "b", "this", "the first"));
    let error = Error::unavailable(None, "a", inner).advising("wait");
    let text = "a can't be reached or can't serve now: wait: b failed: check this: the first";
    assert_eq!(ErrorChain(&error).to_string(), text);
}

#[test]
fn error_of_main_reads_as_a_sentence() {
    let cause = std::io::Error::other("connection refused");
    let error = Error::unavailable(Some("a"), "redis://h", cause);
    assert_eq!(
        format!("{error:?}"),
        "lock \"a\": redis://h can't be reached or can't serve now: check the server and the network: connection \
                   refused (Unavailable { name: Some(\"a\"), engine: \"redis://h\" })"
    );
}
