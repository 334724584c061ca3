//! The head of an answer: its status, and how its body ends.

use httparse::{EMPTY_HEADER, Header, Response, Status};

use super::body::Body;

/// What an answer says before its body.
#[derive(Debug)]
pub(in super::super) struct Head {
    pub(in super::super) status: u16,
    pub(in super::super) body: Body,
    /// Whether the connection may be used for another request after the body.
    pub(in super::super) stays_open: bool,
}

const MOST_HEADERS: usize = 64;
const LONGEST: usize = 64 << 10;

/// The head that `bytes` begin with, and its length; `None` if there isn't all of it.
pub(in super::super) fn head_in(bytes: &[u8]) -> Result<Option<(Head, usize)>, String> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut response = Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(Status::Complete(length)) => Ok(Some((understood(&response)?, length))),
        Ok(Status::Partial) if bytes.len() < LONGEST => Ok(None),
        Ok(Status::Partial) => Err("the head of its answer has no end".into()),
        Err(e) => Err(format!("it doesn't speak HTTP/1.1: {e}")),
    }
}

fn understood(response: &Response<'_, '_>) -> Result<Head, String> {
    let status = response.code.unwrap_or_default();
    let is_old = response.version == Some(0);
    let body = if matches!(status, 100..=199 | 204 | 304) {
        Body::of_length(0)
    } else if says(response.headers, "Transfer-Encoding", "chunked") {
        Body::in_chunks()
    } else {
        match value(response.headers, "Content-Length") {
            Some(length) => Body::of_length(
                length
                    .parse()
                    .map_err(|_| "the length of its answer is no number")?,
            ),
            None => Body::until_closed(),
        }
    };
    Ok(Head {
        status,
        stays_open: !is_old && !says(response.headers, "Connection", "close"),
        body,
    })
}

fn value<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a str> {
    let mut headers = headers.iter();
    let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(found.value).ok().map(str::trim)
}

/// Whether the header, a list, has that word in it.
fn says(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    let words = value(headers, name).unwrap_or_default();
    words
        .split(',')
        .any(|found| found.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

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
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(LONGEST));
        assert!(head_in(endless.as_bytes()).is_err());
    }

    #[test]
    fn body_ends_as_the_head_says() {
        assert!(matches!(head(CHUNKED).body, Body::Chunks { .. }));
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

    #[test]
    fn any_bytes_are_understood_or_refused() {
        for_any(|random| {
            let bytes = random.list(0..=200, |random| random.one_of(CHUNKED.as_bytes()));
            let _ = head_in(&bytes);
        });
    }
}
