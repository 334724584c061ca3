//! What fuzz targets call here.

pub(crate) use super::client::fuzzing::{answers, http};

pub(crate) fn url(url: &str) {
    let _ = super::address::parse(url);
}
