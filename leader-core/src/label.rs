//! [`Label`]: a name as spans and metrics show it.

use std::fmt;
use std::sync::Arc;

use crate::name::LockName;
use crate::options::LeaseOptions;

/// The pattern of a name that is filled in from data, else the name itself: tenants must not explode a dashboard.
#[derive(Clone)]
pub(crate) enum Label {
    Name(LockName),
    Pattern(Arc<str>),
}

impl Label {
    pub(crate) fn new(name: &LockName, options: &LeaseOptions) -> Self {
        options
            .shared_pattern()
            .map_or_else(|| Self::Name(name.clone()), Self::Pattern)
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Name(name) => name.as_str(),
            Self::Pattern(pattern) => pattern,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
