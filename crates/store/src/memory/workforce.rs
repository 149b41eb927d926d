//! One process has this store for itself, and so has its one worker.

use super::MemoryStore;
use crate::Spreading;

impl Spreading for MemoryStore {}
