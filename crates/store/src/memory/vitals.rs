//! A store in memory fills no disk.

use super::MemoryStore;
use crate::StoreVitals;

impl StoreVitals for MemoryStore {}
