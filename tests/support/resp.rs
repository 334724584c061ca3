//! Where requests and replies of Redis's protocol end.

/// Returns the length of the first frame, or `None` if it isn't there as a whole.
pub(super) fn frame_len(bytes: &[u8]) -> Option<usize> {
    let kind = *bytes.first()?;
    if !b"+-:_#,($=!*~>%|".contains(&kind) {
        return Some(bytes.len());
    }
    let head = bytes.windows(2).position(|window| window == b"\r\n")?;
    let body = head + 2;
    let number = || str::from_utf8(&bytes[1..head]).ok()?.parse::<usize>().ok();
    match kind {
        // A null has the length -1, and no body.
        b'$' | b'=' | b'!' => match number() {
            Some(len) => (bytes.len() >= body + len + 2).then_some(body + len + 2),
            None => Some(body),
        },
        b'*' | b'~' | b'>' => items_end(bytes, body, number().unwrap_or(0)),
        b'%' => items_end(bytes, body, number().unwrap_or(0) * 2),
        // An attribute belongs to the value after it.
        b'|' => items_end(bytes, body, number().unwrap_or(0) * 2 + 1),
        _ => Some(body),
    }
}

fn items_end(bytes: &[u8], start: usize, count: usize) -> Option<usize> {
    (0..count).try_fold(start, |at, _| Some(at + frame_len(&bytes[at..])?))
}
