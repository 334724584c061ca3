use super::*;
use crate::base::random::{Random, for_any};

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ntransfer-encoding: Chunked\r\n\r\n";

fn head(text: &str) -> Head {
    let (head, length) = head_in(text.as_bytes()).unwrap().unwrap();
    assert_eq!(length, text.len());
    head
}

#[test]
fn head_has_an_end() {
    for cut in 0..CHUNKED.len() {
        assert!(
            head_in(&CHUNKED.as_bytes()[..cut]).unwrap().is_none(),
            "{cut}"
        );
    }
    let with_body = format!("{CHUNKED}2\r\n{{}}");
    assert_eq!(
        head_in(with_body.as_bytes()).unwrap().unwrap().1,
        CHUNKED.len()
    );
    let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(LONGEST_HEAD));
    assert!(head_in(endless.as_bytes()).is_err());
}

#[test]
fn body_ends_as_the_head_says() {
    assert!(matches!(head(CHUNKED).body, Body::ChunkSize));
    let sized = head("HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n");
    assert!(matches!(
        (sized.status, sized.body),
        (404, Body::Length(10))
    ));
    assert!(sized.stays_open);
    let closing = head("HTTP/1.0 400 Bad Request\r\n\r\n");
    assert!(matches!(
        (closing.stays_open, closing.body),
        (false, Body::UntilClosed)
    ));
    let empty = head("HTTP/1.1 204 No Content\r\nConnection: Keep-Alive, Close\r\n\r\n");
    assert!(matches!(
        (empty.stays_open, empty.body),
        (false, Body::Length(0))
    ));
}

#[test]
fn what_is_no_answer_is_refused() {
    for text in [
        "-ERR unknown command\r\n",
        "\x15\x03\x01",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ] {
        assert!(head_in(text.as_bytes()).is_err(), "{text:?}");
    }
}

/// Feeds the bytes in pieces that end at `cuts`, and gives the body and what was left behind it.
fn taken(mut body: Body, bytes: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, Vec<u8>, bool), String> {
    let (mut input, mut output, mut from) = (Vec::new(), Vec::new(), 0);
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        input.extend_from_slice(&bytes[from..cut]);
        from = cut;
        let used = body.take(&input, &mut output)?;
        input.drain(..used);
    }
    Ok((output, input, body.is_over()))
}

fn chunked(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let (mut encoded, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(random.usize(1..=rest.len()));
        let extension = if random.bool() { ";a=b" } else { "" };
        encoded.extend(format!("{:x}{extension}\r\n", chunk.len()).bytes());
        encoded.extend_from_slice(chunk);
        encoded.extend_from_slice(b"\r\n");
        rest = behind;
    }
    let trailer = if random.bool() {
        "Grpc-Trailer-X: y\r\n"
    } else {
        ""
    };
    encoded.extend(format!("0\r\n{trailer}\r\n").bytes());
    encoded
}

#[test]
fn chunks_cut_at_any_byte_are_put_together() {
    for_any(|random| {
        let bytes = random.list(0..=60, |random| random.u8(..));
        let mut encoded = chunked(random, &bytes);
        let length = encoded.len();
        encoded.extend_from_slice(b"HTTP/1.1");
        for cut in 0..=encoded.len() {
            let (output, left, is_over) = taken(Body::ChunkSize, &encoded, &[cut]).unwrap();
            assert!(output == bytes && is_over && left == encoded[length..]);
        }
        let every: Vec<_> = (0..encoded.len()).collect();
        let (output, left, _) = taken(Body::ChunkSize, &encoded, &every).unwrap();
        assert!(output == bytes && left == encoded[length..]);
        let (_, _, is_over) = taken(Body::ChunkSize, &encoded[..length - 1], &[]).unwrap();
        assert!(!is_over);
    });
}

#[test]
fn frames_that_are_wrong_are_refused() {
    let endless = [b"0\r\n".to_vec(), vec![b'a'; LONGEST_LINE + 2]].concat();
    for bytes in [
        &b"x\r\n"[..],
        b"-1\r\n",
        b"1\r\nab\r\n",
        b"1\r\na\n",
        b"fffffffffffffffffffff\r\n",
        &endless,
    ] {
        assert!(taken(Body::ChunkSize, bytes, &[]).is_err(), "{bytes:?}");
    }
}
