//! What fuzz targets call here.

pub(crate) use super::client::fuzzing::records;

pub(crate) fn url(url: &str) {
    let _ = super::address::parse(url);
}
