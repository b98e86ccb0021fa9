//! Encrypted connections, with certificates of the tests' own.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use super::guard::Names;
use super::server::{Server, head, html, redirect};
use crate::web::{Client, FetchError};

/// A server for `page.example` that answers each request by its path, and who trusts it.
async fn server() -> (Server, RootCertStore) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["page.example".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::serving(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let name = stream.get_ref().1.server_name().unwrap_or_default().to_owned();
            let answer = match head(&mut stream).await.split(' ').nth(1).unwrap() {
                "/down" => redirect("http://page.example/"),
                _ => html(&format!("for {name}")),
            };
            drop(stream.write_all(&answer).await);
            drop(stream.shutdown().await);
        }
    });
    (server.await, roots)
}

#[tokio::test]
async fn the_certificate_is_that_of_the_name() {
    let (server, roots) = server().await;
    let names = Names::of(&[("page.example", &["127.0.0.1"]), ("other.example", &["127.0.0.1"])]);
    let client = Client::reaching(vec![server.address]).with(names.clone(), roots);
    let port = server.address.port();
    let page = client.fetch(&format!("https://page.example:{port}/"), &server.limits()).await.unwrap();
    assert_eq!(page.text, "for page.example");
    for url in [format!("https://other.example:{port}/"), format!("https://127.0.0.1:{port}/")] {
        assert!(matches!(client.fetch(&url, &server.limits()).await, Err(FetchError::Tls(..))), "{url}");
    }
    let strict = Client::reaching(vec![server.address]).with(names, RootCertStore::empty());
    let error = strict.fetch(&format!("https://page.example:{port}/"), &server.limits()).await.unwrap_err();
    assert!(matches!(error, FetchError::Tls(..)), "{error}");
}

#[tokio::test]
async fn https_is_not_given_up() {
    let (server, roots) = server().await;
    let client = Client::reaching(vec![server.address]).with(Names::of(&[("page.example", &["127.0.0.1"])]), roots);
    let url = format!("https://page.example:{}/down", server.address.port());
    assert_eq!(client.fetch(&url, &server.limits()).await, Err(FetchError::Downgrade));
}
