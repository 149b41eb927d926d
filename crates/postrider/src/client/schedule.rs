//! When the attempts of a connection's policy would be made if all of them failed (P08).

use serde::{Deserialize, Serialize};

use super::{Client, ClientError};

/// The attempts of one round, or of a whole ladder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// `backoff` or `ladder`.
    pub schedule: String,
    pub timeout_seconds: f64,
    #[serde(default)]
    pub age_cap_seconds: Option<f64>,
    pub data: Vec<PlannedAttempt>,
}

/// One attempt that would be made. Without jitter, earliest and latest are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedAttempt {
    /// 1, 2, 3, …
    pub attempt: u32,
    /// Since the attempt before, without jitter.
    pub wait_seconds: f64,
    pub wait_min_seconds: f64,
    pub wait_max_seconds: f64,
    /// Since the first attempt, without jitter.
    pub after_first_seconds: f64,
    pub earliest_seconds: f64,
    pub latest_seconds: f64,
}

impl Client {
    pub async fn schedule(&self, connection: &str) -> Result<Schedule, ClientError> {
        self.transport.get(&self.under_connection(connection, "/schedule")).await
    }
}
