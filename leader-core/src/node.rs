//! [`NodeId`]: who is a candidate, for people.

use std::fmt;
use std::sync::{Arc, OnceLock};

use uuid::Uuid;

/// Who is a candidate, for people: shown in states, events and spans. It decides nothing; ownership is proved by a
/// secret token of its own, so two candidates with the same node id are still two.
///
/// The default is `host:pid:random`. Text that is set by hand is made printable and cut to 128 characters: blanks in front
/// are left out, control characters become `?`, an empty text becomes the default.
///
/// ```
/// use leader_core::NodeId;
///
/// assert_eq!(NodeId::new("billing-3"), "billing-3");
/// assert_ne!(NodeId::random(), NodeId::random());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The longest node id, in characters.
    pub const MAX_LEN: usize = 128;

    /// The node id `id`, made printable.
    #[must_use]
    pub fn new(id: impl AsRef<str>) -> Self {
        // Blanks in front could be all that is left when the rest is cut off.
        let id = id.as_ref().trim_start();
        if id.is_empty() {
            return Self::random();
        }
        let printable = |c: char| if c.is_control() { '?' } else { c };
        let id: String = id.chars().take(Self::MAX_LEN).map(printable).collect();
        Self(Arc::from(id))
    }

    /// A node id of the form `host:pid:random`.
    #[must_use]
    pub fn random() -> Self {
        let random = Uuid::new_v4().simple().to_string();
        Self(Arc::from(format!(
            "{}:{}:{}",
            host(),
            std::process::id(),
            &random[..8]
        )))
    }

    /// The node id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The host's name without a dependency: containers and shells set `HOSTNAME`, Linux has it in `/proc`.
fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let named = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .or_else(|| std::env::var("HOSTNAME").ok())
            .or_else(|| std::env::var("COMPUTERNAME").ok())
            .unwrap_or_default();
        let host: String = named
            .trim()
            .chars()
            .filter(char::is_ascii_graphic)
            .take(64)
            .collect();
        if host.is_empty() {
            "host".to_owned()
        } else {
            host
        }
    })
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for NodeId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for NodeId {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for NodeId {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl From<&str> for NodeId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<String> for NodeId {
    fn from(id: String) -> Self {
        Self::new(id)
    }
}

impl From<&NodeId> for NodeId {
    fn from(id: &NodeId) -> Self {
        id.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_names_host_and_process() {
        let id = NodeId::random();
        let parts: Vec<&str> = id.as_str().rsplitn(3, ':').collect();
        assert_eq!(parts.len(), 3, "{id}");
        assert_eq!(parts[1], std::process::id().to_string());
        assert_eq!(parts[0].len(), 8);
    }

    #[test]
    fn text_is_made_printable_and_short() {
        assert_eq!(NodeId::new("a\r\nb"), "a??b");
        assert_eq!(NodeId::new("x".repeat(1000)).as_str().len(), 128);
        assert!(NodeId::new(" \t").as_str().contains(':'));
    }

    #[test]
    fn what_is_cut_off_does_not_leave_a_blank() {
        let id = NodeId::new(" ".repeat(NodeId::MAX_LEN) + "billing-3");
        assert_eq!(id, "billing-3");
    }
}
