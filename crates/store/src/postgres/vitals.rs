//! What the store tells about itself without asking the database.

use super::PostgresStore;
use crate::StoreVitals;

/// The disk is the database's, and its own monitoring's to watch.
impl StoreVitals for PostgresStore {}
