//! What goes on beside deliveries: the lease, the DLQ's actions, retention.
//!
//! None of it may hold up a runner.

pub(crate) mod dlq_sweeper;
pub(crate) mod health_sweeper;
pub(crate) mod key_keeper;
pub(crate) mod lease_keeper;
pub(crate) mod pruner;
