//! The only file that reads randomness. Everybody else is handed a roll.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the one place that reads randomness")]

use std::sync::{Arc, Mutex, PoisonError};

use postrider_core::roll::Roll;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub trait Dice: Send + Sync {
    /// 128 random bits, for identifiers.
    fn bits(&self) -> u128;

    /// For jitter.
    fn roll(&self) -> Roll;
}

/// Seeded from the operating system, or from a number so that a run replays exactly.
#[derive(Debug)]
pub struct SystemDice(Mutex<StdRng>);

impl SystemDice {
    pub fn shared() -> Arc<dyn Dice> {
        Arc::new(SystemDice(Mutex::new(StdRng::from_os_rng())))
    }

    pub fn seeded(seed: u64) -> Arc<dyn Dice> {
        Arc::new(SystemDice(Mutex::new(StdRng::seed_from_u64(seed))))
    }
}

impl Dice for SystemDice {
    fn bits(&self) -> u128 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    fn roll(&self) -> Roll {
        let value: f64 = self.0.lock().unwrap_or_else(PoisonError::into_inner).random();
        Roll::new(value).unwrap_or(Roll::MIDDLE)
    }
}
