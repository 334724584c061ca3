//! A certificate authority of its own for each server.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Writes `ca.pem`, `server.pem` with `server.key` for localhost and 127.0.0.1, and `client.pem` with `client.key` for a
/// client, into `dir`.
pub(crate) fn write(dir: &Path) {
    let issuer = authority();
    write_pem(dir, "ca.pem", &issuer.pem());
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    write_signed(dir, "server", &issuer, names.to_vec());
    write_signed(dir, "client", &issuer, Vec::new());
}

fn write_signed(
    dir: &Path,
    whose: &str,
    issuer: &CertifiedIssuer<'_, KeyPair>,
    names: Vec<String>,
) {
    let key = KeyPair::generate().expect("generate a key");
    let mut params = CertificateParams::new(names).expect("names");
    params
        .distinguished_name
        .push(DnType::CommonName, format!("test {whose}"));
    let signed = params.signed_by(&key, issuer).expect("sign");
    write_pem(dir, &format!("{whose}.pem"), &signed.pem());
    write_pem(dir, &format!("{whose}.key"), &key.serialize_pem());
}

fn write_pem(dir: &Path, name: &str, pem: &str) {
    fs::write(dir.join(name), pem).expect("write a PEM file");
}

/// Copies what `write` has written.
pub(crate) fn copy(from: &Path, to: &Path) {
    let all = [
        "ca.pem",
        "server.pem",
        "server.key",
        "client.pem",
        "client.key",
    ];
    for name in all {
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
