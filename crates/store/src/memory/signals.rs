//! Nobody else has this store, so there is never any news.

use super::MemoryStore;
use crate::Signals;

impl Signals for MemoryStore {}
