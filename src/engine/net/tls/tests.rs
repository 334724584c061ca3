use super::*;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};

/// The cache of a parent. A child that looks into it may wait for ever.
#[derive(Debug)]
struct OfParent;

impl ClientSessionStore for OfParent {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {
        panic!("it is the parent's")
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        panic!("it is the parent's")
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {
        panic!("it is the parent's")
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        panic!("it is the parent's")
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        panic!("it is the parent's")
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, _: Tls13ClientSessionValue) {
        panic!("it is the parent's")
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        panic!("it is the parent's")
    }
}

/// A server that has said something, and hung up.
struct HungUp<'a>(&'a [u8]);

impl Read for HungUp<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for HungUp<'_> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn alert_of_a_server_that_hung_up_is_told_instead_of_the_broken_pipe() {
    let trust = trusting_nobody(Resumption::default())
        .in_server("h")
        .unwrap();
    let outcome = |said: &[u8]| {
        let client = ClientConnection::new(trust.config.clone(), trust.server.clone());
        let error = shake_hands(&mut client.unwrap(), &mut HungUp(said)).unwrap_err();
        explained(error, "zk")
    };
    // A record of TLS 1.2, as long as two bytes: the fatal alert certificate_required.
    let told = outcome(&[21, 3, 3, 0, 2, 2, 116]);
    assert!(told.to_string().ends_with(OWN_CERTIFICATE), "{told}");
    assert_eq!(outcome(&[]).kind(), ErrorKind::BrokenPipe);
}

fn trusting_nobody(resumption: Resumption) -> Trust {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.resumption = resumption;
    Trust {
        config: Arc::new(config),
        plain: "redis".into(),
    }
}

#[test]
fn forked_child_has_a_cache_of_sessions_of_its_own() {
    let parent = trusting_nobody(Resumption::store(Arc::new(OfParent)));
    let child = parent.after_fork().in_server("h").unwrap();
    // It looks for a session that it could resume.
    let hello = ClientConnection::new(child.config, child.server);
    assert!(hello.unwrap().wants_write());
}
