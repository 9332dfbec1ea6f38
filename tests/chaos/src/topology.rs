//! The topologies that chaos is played on, and what each allows for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where leases are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Topology {
    /// One server that keeps on disk what it acknowledges.
    Single,
    /// A primary and a replica; a lease counts once the replica has it.
    Replicated,
    /// Five independent servers, of which a minority is lost at a time.
    Quorum,
    /// Three primaries with a replica each, which follow behind.
    Cluster,
}

impl Topology {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Single, Self::Replicated, Self::Quorum, Self::Cluster];

    /// Its name, as in `--topology`.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Replicated => "replicated",
            Self::Quorum => "quorum",
            Self::Cluster => "cluster",
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Topology {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == name);
        found.ok_or_else(|| {
            format!("there is no topology `{name}`: single, replicated, quorum, cluster, or all")
        })
    }
}
