//! What fuzz targets call here.

use super::answers;
use super::connection::head_in;

/// Reads the head of an answer, and its body in two pieces and at once: both have to give the same.
pub(crate) fn http(bytes: &[u8], cut: usize) {
    let Ok(Some((head, length))) = head_in(bytes) else {
        return;
    };
    let input = &bytes[length..];
    let (mut at_once, mut whole) = (head.body, Vec::new());
    let read = at_once.take(input, &mut whole);
    let (mut body, mut pieces) = (head.body, Vec::new());
    let Ok(used) = body.take(&input[..cut.min(input.len())], &mut pieces) else {
        return;
    };
    let rest = body.take(&input[used..], &mut pieces);
    assert_eq!(read.is_ok(), rest.is_ok());
    if read.is_ok() {
        assert_eq!((at_once, whole), (body, pieces));
    }
}

/// Understands JSON as each of the answers that it may be.
pub(crate) fn answers(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice(bytes) else {
        return;
    };
    let _ = answers::transaction(&value);
    let _ = answers::lease(&value);
    let _ = answers::granted_for(&value);
    let _ = answers::keep_alive(&value);
    let _ = answers::time_to_live(&value);
    let _ = answers::status(&value);
    let _ = answers::watch_message(&value);
}
