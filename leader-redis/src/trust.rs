//! [`Trust`]: whose certificates are believed, and which is shown, where a connection is by TLS.

/// Certificates in PEM, as they were given.
#[derive(Clone, Default)]
pub(crate) struct Trust {
    /// Believed instead of those that the system believes.
    pub(crate) authorities: Option<Vec<u8>>,
    /// Shown to servers that ask clients for one.
    pub(crate) own: Option<Own>,
}

/// A certificate, those between it and the authority, and its private key.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) chain: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// Which of the options cannot be used, and why.
pub(crate) type Unusable = (&'static str, String);

pub(crate) const AUTHORITIES: &str = "ca_certificates";
pub(crate) const OWN: &str = "client_certificate";

impl Trust {
    /// The first option that is set.
    pub(crate) fn set(&self) -> Option<&'static str> {
        let authorities = self.authorities.as_ref().map(|_| AUTHORITIES);
        authorities.or(self.own.as_ref().map(|_| OWN))
    }
}
