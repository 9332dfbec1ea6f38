//! Leader election and leases for Tokio services.
