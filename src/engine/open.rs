//! Which engine a URL names.

use std::sync::Arc;

use super::{Engine, memory, url::invalid_url};
use crate::base::{Clock, Error, Namespace, Options, Result};

const SCHEMES: &str = "use memory:, memory:name, file:, file:///dir, redis://, rediss://, valkey://, valkeys://, \
                       unix:///path.sock, redis+sentinel://, redis+cluster://, \
                       redis+quorum://, etcd://, etcds://, zk:// or zks://";

/// The engine that `url` names, found to be usable.
pub(crate) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    let servers = ["+sentinel", "+cluster", "+quorum"];
    let kind = servers
        .into_iter()
        .find_map(|kind| scheme.strip_suffix(kind));
    match kind.unwrap_or(&scheme) {
        "memory" if kind.is_none() => open_memory(url, rest),
        "file" if kind.is_none() => open_file(url, rest),
        "rediss" | "valkeys" if !cfg!(feature = "tls") => {
            Err(without_feature("rediss:// and valkeys://", "tls"))
        }
        "redis" | "rediss" | "valkey" | "valkeys" => open_redis(url, options, clock),
        "etcds" if kind.is_none() && !cfg!(feature = "tls") => {
            Err(without_feature("etcds://", "tls"))
        }
        "etcd" | "etcds" if kind.is_none() => open_etcd(url, options, clock),
        "zks" if kind.is_none() && !cfg!(feature = "tls") => Err(without_feature("zks://", "tls")),
        "zk" | "zks" if kind.is_none() => open_zookeeper(url, options, clock),
        "unix" if kind.is_none() => open_redis(url, options, clock),
        _ => Err(invalid_url(url, &format!("unknown scheme: {SCHEMES}"))),
    }
}

fn open_memory(url: &str, name: &str) -> Result<Arc<dyn Engine>> {
    match Namespace::new(name) {
        Ok(_) => Ok(memory::MemoryEngine::open(&format!("memory:{name}"))),
        Err(_) => Err(invalid_url(
            url,
            "the name after memory: must have at most 64 characters, out of A-Z a-z 0-9 . _ -",
        )),
    }
}

#[cfg(all(feature = "file", not(windows)))]
fn open_file(url: &str, rest: &str) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(super::file::FileEngine::open(url, rest)?))
}

#[cfg(windows)]
fn open_file(_url: &str, _rest: &str) -> Result<Arc<dyn Engine>> {
    let what =
        "file: on Windows, which has no FIFO that ends with its process: use memory: or a server"
            .into();
    Err(Error::Unsupported { what })
}

#[cfg(not(any(feature = "file", windows)))]
fn open_file(_url: &str, _rest: &str) -> Result<Arc<dyn Engine>> {
    Err(without_feature("file:", "file"))
}

#[cfg(feature = "redis")]
fn open_redis(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    super::redis::open(url, options, clock)
}

#[cfg(not(feature = "redis"))]
fn open_redis(_url: &str, _options: &Options, _clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let schemes = "redis://, rediss://, valkey://, valkeys:// and unix://";
    Err(without_feature(schemes, "redis"))
}

#[cfg(feature = "etcd")]
fn open_etcd(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    super::etcd::open(url, options, clock)
}

#[cfg(not(feature = "etcd"))]
fn open_etcd(_url: &str, _options: &Options, _clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    Err(without_feature("etcd:// and etcds://", "etcd"))
}

#[cfg(feature = "zookeeper")]
fn open_zookeeper(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    super::zookeeper::open(url, options, clock)
}

#[cfg(not(feature = "zookeeper"))]
fn open_zookeeper(
    _url: &str,
    _options: &Options,
    _clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Engine>> {
    Err(without_feature("zk:// and zks://", "zookeeper"))
}

/// An error for an engine that this build leaves out.
fn without_feature(schemes: &str, feature: &str) -> Error {
    let what = format!("{schemes} in this build: enable crosslock's feature `{feature}`");
    Error::Unsupported { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Locker;
    use crate::base::clock::BootClock;

    #[test]
    fn unknown_scheme_is_told_what_there_is() {
        for url in [
            "",
            "redis",
            "memory",
            "http://x/",
            "127.0.0.1:6379",
            "memory:x/y",
            "memory:/x",
            "memory:Ü",
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
    fn name_of_a_memory_is_checked() {
        for (name, is_right) in [
            ("A-z_0.9".to_owned(), true),
            ("x".repeat(64), true),
            ("x".repeat(65), false),
            ("a b".to_owned(), false),
            ("//a".to_owned(), false),
            ("a?b=1".to_owned(), false),
        ] {
            let opened = Locker::open(&format!("memory:{name}"));
            assert_eq!(opened.is_ok(), is_right, "{opened:?}");
        }
    }
}
