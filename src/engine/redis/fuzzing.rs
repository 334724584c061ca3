//! What fuzz targets call here.

use std::io::Read;

use super::{reply::Replies, settings};

/// Reads all replies of a server, which come in pieces of up to so many bytes.
pub(crate) fn replies(bytes: &[u8], piece: usize) {
    let mut stream = Pieces(bytes, piece.max(1));
    let mut replies = Replies::new();
    while replies.next(&mut stream).is_ok() {}
}

struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}

pub(crate) fn url(url: &str) {
    let _ = settings::parse(url);
}
