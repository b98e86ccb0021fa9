//! Certificates of the tests' own, and who serves with them.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate that vouches for itself, and its key, in a folder: `cert.pem` and `key.pem`. Names are such as `DNS:localhost`.
pub(crate) fn certificate(folder: &Path, names: &str) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", &format!("subjectAltName={names}"), "-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join("cert.pem"))
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A server that shows the certificate of a folder.
pub(crate) fn config(folder: &Path) -> rustls::ServerConfig {
    let chain = CertificateDer::pem_file_iter(folder.join("cert.pem")).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap())
        .unwrap()
}
