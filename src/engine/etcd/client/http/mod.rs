//! HTTP/1.1 without I/O: what a request looks like, and what the bytes of an answer mean, however they are cut.
//!
//! It uses nothing of this crate. What always holds here: what a peer sends has a bound.

mod body;
mod head;

pub(super) use self::body::Body;
pub(super) use self::head::{Head, head_in};

/// The whole request, so that it goes out in one write. The values of headers have no line's end.
pub(super) fn request(path: &str, host: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_as_long_as_it_says() {
        let bytes = request("/v3/x", "[::1]:1", &[("A", "b")], "{é}".as_bytes());
        let expected =
            "POST /v3/x HTTP/1.1\r\nHost: [::1]:1\r\nA: b\r\nContent-Length: 4\r\n\r\n{é}";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
