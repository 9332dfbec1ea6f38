//! Certificates of the tests' own making, and files of them for a server.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

/// An authority that no system trusts, and a directory in which its certificates lie.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
}

/// A certificate and its private key, in PEM and as files.
#[derive(Debug)]
pub struct Certificate {
    /// The certificate in PEM.
    pub chain: String,
    /// Its private key in PEM.
    pub key: String,
    chain_file: PathBuf,
    key_file: PathBuf,
    authority_file: PathBuf,
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    ///
    /// When its key or its directory cannot be made, as is so for what it issues.
    #[must_use]
    pub fn new() -> Self {
        let mut params = params(&[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it can sign itself");
        let dir = tempfile::tempdir().expect("a directory can be made");
        Self { issuer, dir }
    }

    /// What a client trusts, in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for these hosts, names or addresses, that is in force.
    #[must_use]
    pub fn issue(&self, hosts: &[&str]) -> Certificate {
        self.sign(&params(hosts))
    }

    /// A certificate whose time is over.
    #[must_use]
    pub fn issue_expired(&self, hosts: &[&str]) -> Certificate {
        let mut params = params(hosts);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Certificate {
        let key = KeyPair::generate().expect("a key can be made");
        let signed = params.signed_by(&key, &self.issuer);
        let chain = signed.expect("the authority signs").pem();
        let key = key.serialize_pem();
        let write = |name: &str, pem: &str| {
            let file = self.dir.path().join(format!(
                "{name}-{:016x}.pem",
                RandomState::new().hash_one(pem)
            ));
            fs::write(&file, pem).expect("a file can be written");
            file
        };
        Certificate {
            chain_file: write("chain", &chain),
            key_file: write("key", &key),
            authority_file: write("authority", &self.pem()),
            chain,
            key,
        }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

fn params(hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts).expect("the hosts are names or addresses");
    // Two of one name would be taken for each other's issuer.
    let name = format!("{:016x}", RandomState::new().hash_one(0));
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Certificate {
    /// The arguments by which a server shows this certificate on `port`, beside its port without TLS, which the harness
    /// uses. `demand` is what it asks of clients: `yes` for a certificate of the same authority, or `no`.
    #[must_use]
    pub fn arguments(&self, port: u16, demand: &str) -> Vec<String> {
        let file = |path: &PathBuf| path.display().to_string();
        [
            "--tls-port".to_owned(),
            port.to_string(),
            "--tls-cert-file".to_owned(),
            file(&self.chain_file),
            "--tls-key-file".to_owned(),
            file(&self.key_file),
            "--tls-ca-cert-file".to_owned(),
            file(&self.authority_file),
            "--tls-auth-clients".to_owned(),
            demand.to_owned(),
        ]
        .into()
    }
}
