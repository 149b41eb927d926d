//! Nobody else has this store, so there is never any news.

use super::SqliteStore;
use crate::Signals;

impl Signals for SqliteStore {}
