//! The scripts: their texts, and the digests under which a server knows them.

use std::sync::OnceLock;

use crate::client::sha1;

/// A script of `scripts/`, whose header tells its keys, arguments and replies.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    digest: OnceLock<String>,
}

pub(crate) static CLAIM: Script = Script::new(include_str!("scripts/claim.lua"));
pub(crate) static EXTEND: Script = Script::new(include_str!("scripts/extend.lua"));
pub(crate) static RELEASE: Script = Script::new(include_str!("scripts/release.lua"));
pub(crate) static INSPECT: Script = Script::new(include_str!("scripts/inspect.lua"));
pub(crate) static OBSERVE: Script = Script::new(include_str!("scripts/observe.lua"));
pub(crate) static EVICT: Script = Script::new(include_str!("scripts/evict.lua"));
pub(crate) static FENCED_SET: Script = Script::new(include_str!("scripts/fenced_set.lua"));
pub(crate) static FENCED_GET: Script = Script::new(include_str!("scripts/fenced_get.lua"));

impl Script {
    const fn new(source: &'static str) -> Self {
        Self {
            source,
            digest: OnceLock::new(),
        }
    }

    /// The text, for `EVAL`.
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }

    /// The digest, for `EVALSHA`.
    pub(crate) fn digest(&'static self) -> &'static str {
        self.digest.get_or_init(|| sha1(self.source))
    }
}
