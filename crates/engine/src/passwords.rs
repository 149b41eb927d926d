//! Passwords: hashed and checked with Argon2id (RFC 9106) on threads of their own, a few at a time.
//!
//! A name that does not exist costs the same work as one that does, so that time tells nothing. It must not know whose password it is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc};
use argon2::{Algorithm, Argon2, Params, Version};
use postrider_core::Secret;
use postrider_store::PasswordHash;
use tokio::sync::Semaphore;

use crate::dice::Dice;

/// Memory in KiB, passes and lanes as OWASP's password storage cheat sheet advises for Argon2id: 19 MiB, 2, 1.
const COSTS: (u32, u32, u32) = (19 * 1024, 2, 1);
/// `password_checks_max`: at a time; each takes the memory above and a processor for tens of milliseconds.
const CHECKS_MAX: usize = 2;
/// `password_waiting_max`: checks that wait for their turn; one more is refused at once.
const WAITING_MAX: usize = 64;

/// So many checks wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many passwords are being checked (`password_waiting_max`)")]
pub(crate) struct Busy;

#[derive(Debug)]
pub(crate) struct Passwords {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// A hash that no password fits, made with today's costs.
    decoy: Arc<OnceLock<PasswordHash>>,
}

impl Default for Passwords {
    fn default() -> Self {
        Passwords { turns: Arc::new(Semaphore::new(CHECKS_MAX)), waiting: AtomicUsize::new(0), decoy: Arc::default() }
    }
}

impl Passwords {
    pub async fn hash(&self, password: Secret, dice: &dyn Dice) -> Result<PasswordHash, Busy> {
        let salt = dice.bits().to_be_bytes();
        self.in_turn(move || hashed(&password, &salt)).await
    }

    /// Whether it is the password; `None`: there is nobody of that name, and it takes as long.
    pub async fn fits(&self, password: Secret, hash: Option<PasswordHash>) -> Result<bool, Busy> {
        let decoy = Arc::clone(&self.decoy);
        self.in_turn(move || {
            let decoy = decoy.get_or_init(|| hashed(&Secret::new("nobody has this one"), &[0; 16]));
            let is_known = hash.is_some();
            fits(&password, hash.as_ref().unwrap_or(decoy)) && is_known
        })
        .await
    }

    async fn in_turn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Busy> {
        let _place = Place::take(&self.waiting)?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Busy)?;
        let done = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(turn);
            result
        });
        done.await.map_err(|_| Busy)
    }
}

/// A place among those that wait, given back however the wait ends.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, Busy> {
        if waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Busy);
        }
        Ok(Place(waiting))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn argon2id() -> Argon2<'static> {
    let (memory, passes, lanes) = COSTS;
    let params = Params::new(memory, passes, lanes, None).unwrap_or(Params::DEFAULT);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// An empty text, which no password fits, for what cannot be hashed; a salt of 16 bytes and a short password always can.
fn hashed(password: &Secret, salt: &[u8]) -> PasswordHash {
    let made = argon2id().hash_password_with_salt(password.expose().as_bytes(), salt);
    PasswordHash(made.map(|hash: phc::PasswordHash| hash.to_string()).unwrap_or_default())
}

/// With the costs that the hash was made with. Compared in constant time.
fn fits(password: &Secret, hash: &PasswordHash) -> bool {
    let Ok(parsed) = phc::PasswordHash::new(&hash.0) else { return false };
    argon2id().verify_password(password.expose().as_bytes(), &parsed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SystemDice;

    fn secret(text: &str) -> Secret {
        Secret::new(text)
    }

    #[tokio::test]
    async fn p07_only_the_password_fits_and_its_text_is_nowhere() {
        let passwords = Passwords::default();
        let dice = SystemDice::seeded(1);
        let hash = passwords.hash(secret("correct horse"), &*dice).await.unwrap();
        assert!(hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.0);
        assert!(!hash.0.contains("correct") && format!("{hash:?}") == "PasswordHash(***)");
        let other = passwords.hash(secret("correct horse"), &*dice).await.unwrap();
        assert_ne!(hash, other, "each has a salt of its own");
        assert!(passwords.fits(secret("correct horse"), Some(hash.clone())).await.unwrap());
        for wrong in ["", "correct hors", "correct horse ", "Correct horse"] {
            assert!(!passwords.fits(secret(wrong), Some(hash.clone())).await.unwrap(), "{wrong}");
        }
        for broken in ["", "correct horse", "$argon2id$v=19$m=19456,t=2,p=1$"] {
            assert!(!passwords.fits(secret("correct horse"), Some(PasswordHash(broken.to_owned()))).await.unwrap());
        }
    }

    #[tokio::test]
    async fn p07_nobodys_password_fits_nothing_and_is_hashed_all_the_same() {
        let passwords = Passwords::default();
        assert!(!passwords.fits(secret("nobody has this one"), None).await.unwrap());
        let decoy = passwords.decoy.get().unwrap();
        assert!(decoy.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "the same costs: {}", decoy.0);
    }

    #[tokio::test]
    async fn p07_more_checks_than_may_wait_are_refused_at_once() {
        let passwords = Passwords::default();
        let places: Vec<_> = (0..WAITING_MAX).map(|_| Place::take(&passwords.waiting).unwrap()).collect();
        assert_eq!(passwords.fits(secret("x"), None).await, Err(Busy));
        drop(places);
        assert_eq!(passwords.fits(secret("x"), None).await, Ok(false));
    }
}
