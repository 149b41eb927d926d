//! One process has this store for itself, and so has its one worker.

use super::SqliteStore;
use crate::Spreading;

impl Spreading for SqliteStore {}
