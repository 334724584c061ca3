//! A certificate authority of its own for each server.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};

/// Writes `ca.pem`, `server.pem` with `server.key` for localhost and 127.0.0.1, `client.pem` with `client.key` for a
/// client, and `nameless.pem` with `nameless.key` for one that has no name, into `dir`.
pub(crate) fn write(dir: &Path) {
    let issuer = authority();
    write_pem(dir, "ca.pem", &issuer.pem());
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    write_signed(dir, "server", &issuer, names.to_vec());
    write_signed(dir, "client", &issuer, Vec::new());
    write_signed(dir, NAMELESS, &issuer, Vec::new());
}

/// Whose certificate has no common name.
const NAMELESS: &str = "nameless";

fn write_signed(
    dir: &Path,
    whose: &str,
    issuer: &CertifiedIssuer<'_, KeyPair>,
    names: Vec<String>,
) {
    let key = KeyPair::generate().expect("generate a key");
    let mut params = CertificateParams::new(names).expect("names");
    // That of the library is a name, too.
    params.distinguished_name = DistinguishedName::new();
    let (kind, name) = match whose {
        NAMELESS => (DnType::OrganizationName, "test".to_owned()),
        _ => (DnType::CommonName, format!("test {whose}")),
    };
    params.distinguished_name.push(kind, name);
    let signed = params.signed_by(&key, issuer).expect("sign");
    write_pem(dir, &format!("{whose}.pem"), &signed.pem());
    write_pem(dir, &format!("{whose}.key"), &key.serialize_pem());
}

fn write_pem(dir: &Path, name: &str, pem: &str) {
    fs::write(dir.join(name), pem).expect("write a PEM file");
}

/// Copies what `write` has written.
pub(crate) fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).expect("it is there").flatten() {
        fs::copy(file.path(), to.join(file.file_name())).expect("copy a PEM file");
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
