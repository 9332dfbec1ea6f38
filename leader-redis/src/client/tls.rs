//! TLS as fred is told it. What it does by default with rustls panics where another crate of the service has enabled a
//! second cryptography library of rustls, and gives up when a single certificate of the system's cannot be read.

use fred::types::config::TlsConfig;

use crate::trust::{AUTHORITIES, OWN, Trust, Unusable};

pub(super) fn config(trust: &Trust) -> Result<TlsConfig, Unusable> {
    #[cfg(feature = "enable-native-tls")]
    return native::config(trust);
    #[cfg(not(feature = "enable-native-tls"))]
    return with_rustls::config(trust);
}

#[cfg(not(feature = "enable-native-tls"))]
mod with_rustls {
    use std::sync::Arc;

    use fred::rustls::client::WebPkiServerVerifier;
    use fred::rustls::crypto::CryptoProvider;
    use fred::rustls::pki_types::pem::PemObject;
    use fred::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use fred::rustls::{ClientConfig, RootCertStore};
    use fred::rustls_native_certs::load_native_certs;

    use super::{AUTHORITIES, OWN, TlsConfig, Trust, Unusable};
    use crate::trust::Own;

    pub(super) fn config(trust: &Trust) -> Result<TlsConfig, Unusable> {
        let untrusted = |why: String| (AUTHORITIES, why);
        let roots = roots(trust.authorities.as_deref()).map_err(untrusted)?;
        let provider = provider();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .map_err(|error| untrusted(error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| untrusted(error.to_string()))?
            .with_webpki_verifier(verifier);
        let config = match &trust.own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let (chain, key) = identity(own)?;
                let with_own = builder.with_client_auth_cert(chain, key);
                with_own.map_err(|error| (OWN, error.to_string()))?
            }
        };
        Ok(config.into())
    }

    /// What the service has chosen for all its TLS; else what this crate's feature has brought.
    fn provider() -> Arc<CryptoProvider> {
        #[cfg(not(feature = "enable-rustls-ring"))]
        use fred::rustls::crypto::aws_lc_rs as brought;
        #[cfg(feature = "enable-rustls-ring")]
        use fred::rustls::crypto::ring as brought;
        let chosen = CryptoProvider::get_default().cloned();
        chosen.unwrap_or_else(|| Arc::new(brought::default_provider()))
    }

    fn roots(pem: Option<&[u8]>) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        if let Some(pem) = pem {
            for certificate in certificates(pem)? {
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
            return Ok(roots);
        }
        let (_, unread) = roots.add_parsable_certificates(load_native_certs().certs);
        if unread > 0 {
            tracing::debug!(unread, "some of the system's certificates cannot be read");
        }
        if roots.is_empty() {
            return Err("the system has no certificates to believe; give some".to_owned());
        }
        Ok(roots)
    }

    fn identity(
        own: &Own,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Unusable> {
        let chain = certificates(&own.chain).map_err(|why| (OWN, why))?;
        // Not its own words: what it says of a key should not be shown.
        let key = PrivateKeyDer::from_pem_slice(&own.key);
        let key = key.map_err(|_| (OWN, "there is no private key in its PEM".to_owned()))?;
        Ok((chain, key))
    }

    fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let read = read.map_err(|error| format!("its PEM cannot be read: {error}"))?;
        if read.is_empty() {
            return Err("there is no certificate in its PEM".to_owned());
        }
        Ok(read)
    }
}

#[cfg(feature = "enable-native-tls")]
mod native {
    use fred::native_tls::{Certificate, Identity, TlsConnector};
    use fred::types::config::TlsConnector as Connector;

    use super::{AUTHORITIES, OWN, TlsConfig, Trust, Unusable};

    pub(super) fn config(trust: &Trust) -> Result<TlsConfig, Unusable> {
        let mut builder = TlsConnector::builder();
        if let Some(pem) = &trust.authorities {
            let unread = |error: fred::native_tls::Error| {
                (AUTHORITIES, format!("its PEM cannot be read: {error}"))
            };
            let certificates = Certificate::stack_from_pem(pem).map_err(unread)?;
            if certificates.is_empty() {
                let why = "there is no certificate in its PEM".to_owned();
                return Err((AUTHORITIES, why));
            }
            builder.disable_built_in_roots(true);
            for certificate in certificates {
                builder.add_root_certificate(certificate);
            }
        }
        if let Some(own) = &trust.own {
            // Not its own words: what it says of a key should not be shown.
            let unread = |_| {
                (
                    OWN,
                    "it is no certificate and its private key in PEM".to_owned(),
                )
            };
            builder.identity(Identity::from_pkcs8(&own.chain, &own.key).map_err(unread)?);
        }
        let connector = Connector::try_from(builder);
        let connector = connector.map_err(|error| (AUTHORITIES, error.details().to_owned()))?;
        Ok(connector.into())
    }
}
