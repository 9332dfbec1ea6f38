//! What TLS libraries say of a handshake that came to nothing, in plain words.

/// What each piece of a library's text means; rustls prints its errors as variables, OpenSSL as phrases.
const MEANINGS: [(&[&str], &str); 7] = [
    (
        &[
            "UnknownIssuer",
            "InvalidCertificate(BadSignature",
            "local issuer certificate",
            "self-signed certificate",
            "self signed certificate",
        ],
        "its certificate is of an authority that is not trusted here; `ca_certificates` says which are",
    ),
    (
        &[
            "NotValidForName",
            "Hostname mismatch",
            "IP address mismatch",
        ],
        "its certificate is for another host",
    ),
    (
        &["InvalidCertificate(Expired", "certificate has expired"],
        "its certificate has expired",
    ),
    (
        &[
            "InvalidCertificate(NotValidYet",
            "certificate is not yet valid",
        ],
        "its certificate is not valid yet",
    ),
    (
        &[
            "InvalidMessage(",
            "wrong version number",
            "packet length too long",
        ],
        "what it answers is not TLS",
    ),
    (
        &["CertificateRequired", "certificate required"],
        "it asks for a certificate of ours; `client_certificate` sets it",
    ),
    (
        &[
            "AlertReceived(UnknownCA",
            "AlertReceived(BadCertificate",
            "alert unknown ca",
            "alert bad certificate",
        ],
        "it does not accept our certificate; `client_certificate` sets it",
    ),
];

/// The meaning of `words`, if that is what they are about.
pub(super) fn meaning(words: &str) -> Option<&'static str> {
    let meaning = |(texts, _): &&(&[&str], _)| texts.iter().any(|text| words.contains(text));
    MEANINGS.iter().find(meaning).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::meaning;

    #[test]
    fn handshakes_fail_in_plain_words() {
        for (words, part) in [
            (
                "Custom { kind: InvalidData, error: InvalidCertificate(UnknownIssuer) }",
                "authority",
            ),
            (
                "Custom { kind: InvalidData, error: InvalidCertificate(NotValidForNameContext { expected: DnsName(\"cache\"), presented: [] }) }",
                "another host",
            ),
            (
                "Custom { kind: InvalidData, error: InvalidCertificate(ExpiredContext { time: UnixTime(1), not_after: UnixTime(0) }) }",
                "expired",
            ),
            (
                "Custom { kind: InvalidData, error: InvalidMessage(InvalidContentType) }",
                "not TLS",
            ),
            (
                "Custom { kind: InvalidData, error: AlertReceived(CertificateRequired) }",
                "`client_certificate`",
            ),
            (
                "error:0A000086:SSL routines::certificate verify failed (unable to get local issuer certificate)",
                "authority",
            ),
        ] {
            assert!(
                meaning(words).is_some_and(|meaning| meaning.contains(part)),
                "{words}"
            );
        }
        assert_eq!(meaning("Connection refused"), None);
    }
}
