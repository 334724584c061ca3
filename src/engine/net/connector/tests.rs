use std::thread;
use std::time::Duration;

use super::*;

fn resolver(host: &str) -> Resolver {
    let host = host.to_owned();
    Resolver::new(HostPort { host, port: 7 })
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

#[test]
fn addresses_need_no_lookup() {
    for host in ["127.0.0.1", "::1"] {
        let resolver = resolver(host);
        let found = resolver.resolve(&Deadline::after(Duration::ZERO)).unwrap();
        assert_eq!(found, [SocketAddr::new(host.parse().unwrap(), 7)]);
        assert!(resolver.lookup.lock().is_none());
    }
}

#[test]
fn localhost_is_found_again_and_again() {
    let resolver = resolver("localhost");
    for _ in 0..3 {
        let found = resolver.resolve(&soon()).unwrap();
        assert!(
            found.iter().all(|address| address.ip().is_loopback()),
            "{found:?}"
        );
    }
}

#[test]
fn lookup_past_its_deadline_is_left() {
    let resolver = resolver("host.invalid");
    *resolver.lookup.lock() = Some(Arc::new(Lookup::default()));
    let error = resolver
        .resolve(&Deadline::after(Duration::ZERO))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
#[test]
fn lookup_that_hangs_is_left_when_the_call_is_cancelled() {
    let resolver = resolver("host.invalid");
    *resolver.lookup.lock() = Some(Arc::new(Lookup::default()));
    let cancel = crate::base::cancel::Cancel::default();
    let deadline = Deadline::NEVER.or(&cancel);
    let error = thread::scope(|scope| {
        let looks = scope.spawn(|| resolver.resolve(&deadline).unwrap_err());
        cancel.set();
        looks.join().unwrap()
    });
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
