//! Connections: their limits, and the certificates that they trust.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fathom_core::{EngineError, EngineStep, Nanos};
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::options::{Options, Tls};
use crate::small_file;

/// Creates a client with one connection, which is kept.
///
/// Redirections are not followed, and proxies not used: either would be measured in place of the
/// server.
pub(crate) fn agent(options: &Options) -> Result<Agent, EngineError> {
    let connect = Some(duration(options.connect_timeout));
    let reply = Some(duration(options.reply_timeout));
    let config = Agent::config_builder()
        .tls_config(tls(options.tls)?)
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .no_delay(true)
        .user_agent(concat!("fathom/", env!("CARGO_PKG_VERSION")))
        .max_idle_connections(1)
        .max_idle_connections_per_host(1)
        .max_idle_age(KEPT)
        .timeout_resolve(connect)
        .timeout_connect(connect)
        .timeout_per_read(reply)
        .timeout_per_write(reply)
        .timeout_recv_response(reply);
    Ok(config.build().new_agent())
}

fn tls(tls: Tls) -> Result<TlsConfig, EngineError> {
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
    Ok(match tls {
        Tls::Off => config.build(),
        Tls::Unchecked => config.disable_verification(true).build(),
        Tls::Checked => config.root_certs(roots()?).build(),
    })
}

/// Returns the certificates of SSL_CERT_FILE, or of the system.
fn roots() -> Result<RootCerts, EngineError> {
    let named = std::env::var("SSL_CERT_FILE").ok();
    let refused = |target: String| EngineError {
        step: EngineStep::Option("https"),
        target,
        errno: None,
        hint: "install the package ca-certificates, or name a file of CA certificates in \
               SSL_CERT_FILE"
            .into(),
    };
    let read = |place: &str| small_file::read(Path::new(place));
    let (place, text) = match &named {
        Some(named) => {
            let text = read(named);
            let text = text.map_err(|error| refused(format!("cannot read {named}: {error}")))?;
            (named.as_str(), text)
        }
        None => {
            let mut bundles = BUNDLES.iter().copied();
            let found = bundles.find_map(|place| Some((place, read(place).ok()?)));
            found.ok_or_else(|| refused("this host has no CA certificates".into()))?
        }
    };
    let certificates = parse_pem(&text).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<Certificate<'static>> = certificates.collect();
    match certificates.is_empty() {
        true => Err(refused(format!("no certificate in {place}"))),
        false => Ok(RootCerts::from(certificates)),
    }
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.get())
}

/// Age of a connection that is not used again: none. Servers close theirs.
const KEPT: Duration = Duration::from_secs(86_400);

/// Files of CA certificates: Debian and Alpine, Fedora, openSUSE.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];
