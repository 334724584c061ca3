//! What fuzz targets call here.

use super::jute::{Decoder, Frames};
use super::wire::{self, Expected, Handshake};

/// Reads all frames that a server sends, as each of the records that they may be.
pub(crate) fn records(mut bytes: &[u8]) {
    let mut frames = Frames::default();
    while let Ok(Some(frame)) = frames.next(&mut bytes) {
        let _ = Handshake::answer(&frame);
        let mut record = Decoder::new(&frame);
        let Ok(header) = wire::header(&mut record) else {
            continue;
        };
        let _ = wire::event(&mut record.clone());
        for expected in [
            Expected::Created,
            Expected::Done,
            Expected::Data,
            Expected::Children,
            Expected::Multi { changes: 3 },
        ] {
            let _ = expected.decode(&mut record.clone(), header.zxid);
        }
    }
}
