//! A certificate authority of its own for each server.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Writes `ca.pem`, and `server.pem` with `server.key` for localhost and 127.0.0.1, into `dir`.
pub(crate) fn write(dir: &Path) {
    let issuer = authority();
    let key = KeyPair::generate().expect("generate a key");
    let mut params =
        CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("names");
    params
        .distinguished_name
        .push(DnType::CommonName, "test server");
    let server = params.signed_by(&key, &issuer).expect("sign");
    let files = [
        ("ca.pem", issuer.pem()),
        ("server.pem", server.pem()),
        ("server.key", key.serialize_pem()),
    ];
    for (name, pem) in files {
        fs::write(dir.join(name), pem).expect("write a PEM file");
    }
}

/// Copies what `write` has written.
pub(crate) fn copy(from: &Path, to: &Path) {
    for name in ["ca.pem", "server.pem", "server.key"] {
        fs::copy(from.join(name), to.join(name)).expect("copy a PEM file");
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Verifiers look an issuer up by its name, so it mustn't be the server's.
    params
        .distinguished_name
        .push(DnType::CommonName, "test authority");
    let key = KeyPair::generate().expect("generate a key");
    CertifiedIssuer::self_signed(params, key).expect("sign")
}
