use std::thread;

use super::*;

fn resolver(host: &str) -> Resolver {
    let host = host.to_owned();
    Resolver::new(HostPort { host, port: 7 })
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
