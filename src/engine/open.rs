//! Which engine a URL names.

use std::sync::Arc;

use super::url::invalid_url;
use super::{Engine, memory};
use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use crate::base::options::Options;

const SCHEMES: &str = "use memory:, file:, file:///dir, redis://, rediss://, valkey://, valkeys:// or \
                       unix:///path.sock";

/// The engine that `url` names, found to be usable.
pub(crate) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    match scheme.to_ascii_lowercase().as_str() {
        "memory" if rest.is_empty() => Ok(memory::MemoryEngine::shared()),
        "memory" => Err(invalid_url(url, "memory: has no further parts")),
        "file" => open_file(url, rest, options, clock),
        "rediss" | "valkeys" if !cfg!(feature = "tls") => {
            Err(without_feature("rediss:// and valkeys://", "tls"))
        }
        "redis" | "rediss" | "valkey" | "valkeys" | "unix" => open_redis(url, options, clock),
        _ => Err(invalid_url(
            url,
            &format!("its scheme isn't known: {SCHEMES}"),
        )),
    }
}

#[cfg(feature = "file")]
fn open_file(
    url: &str,
    rest: &str,
    options: &Options,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(super::file::FileEngine::open(
        url, rest, options, clock,
    )?))
}

#[cfg(not(feature = "file"))]
fn open_file(
    _url: &str,
    _rest: &str,
    _options: &Options,
    _clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Engine>> {
    Err(without_feature("file:", "file"))
}

#[cfg(feature = "redis")]
fn open_redis(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(super::redis::RedisEngine::open(
        url, options, clock,
    )?))
}

#[cfg(not(feature = "redis"))]
fn open_redis(_url: &str, _options: &Options, _clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let schemes = "redis://, rediss://, valkey://, valkeys:// and unix://";
    Err(without_feature(schemes, "redis"))
}

/// An error for an engine that this build leaves out.
fn without_feature(schemes: &str, feature: &str) -> Error {
    let what =
        format!("{schemes} (this build is without it): enable crosslock's feature `{feature}`");
    Error::Unsupported { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::BootClock;
    use crate::base::random::for_any;

    #[test]
    fn unknown_scheme_is_told_what_there_is() {
        for url in [
            "",
            "redis",
            "memory",
            "http://x/",
            "127.0.0.1:6379",
            "memory:x",
            "Ünknown:",
        ] {
            match open(url, &Options::default(), Arc::new(BootClock)) {
                Err(Error::InvalidUrl { reason, .. }) => {
                    assert!(url.starts_with("memory:") || reason.contains("redis://"));
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }

    #[test]
    fn no_error_shows_a_password() {
        for_any(|random| {
            let [before, after] = [(); 2].map(|()| random.text_without(|any| any == 's', 0..=5));
            let host = random.text_of("abcxyz@:/?#%", 0..=8);
            for url in [
                format!("redis://user:{before}sssss{after}@{host}/0/x"),
                format!("rediss://:{before}sssss{after}@{host}?x"),
                format!("unix:///{host}?pass={before}sssss{after}&nonsense=1"),
            ] {
                // Nothing listens on these hosts: a URL that is well formed isn't opened here.
                if let Err(error) = url_error(&url) {
                    assert!(!format!("{error} {error:?}").contains("sssss"), "{}", error);
                }
            }
        });
    }

    #[cfg(feature = "redis")]
    fn url_error(url: &str) -> Result<()> {
        crate::engine::redis::check_url(url)
    }

    #[cfg(not(feature = "redis"))]
    fn url_error(url: &str) -> Result<()> {
        Err(invalid_url(url, "no reason"))
    }
}
