//! The token that is held, and when it is time for the next one. Pure: the time is an argument.
//!
//! It must not know how a token is fetched.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use postrider_core::MASK;
use tokio::time::Instant;

/// A token is replaced when a fifth of its life is left, and this long before its end at most.
const REFRESH_BEFORE_END_MAX: Duration = Duration::from_secs(60);
/// A refresh that failed is not tried again sooner than this, while the old token is still good.
const REFRESH_REST: Duration = Duration::from_secs(5);

/// A token, as the header that carries it.
pub(super) struct Token {
    pub(super) header: HeaderValue,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({MASK})")
    }
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    token: Arc<Token>,
    refresh_at: Instant,
    ends_at: Instant,
}

/// What there is for an attempt that begins now.
#[derive(Debug)]
pub(super) enum Look {
    Fresh(Arc<Token>),
    /// Still good, and the next one should be fetched meanwhile.
    Ageing(Arc<Token>),
    Nothing,
}

impl Cache {
    pub(super) fn look(&self, now: Instant) -> Look {
        match &self.held {
            Some(held) if now >= held.ends_at => Look::Nothing,
            Some(held) if now < held.refresh_at => Look::Fresh(Arc::clone(&held.token)),
            Some(held) => Look::Ageing(Arc::clone(&held.token)),
            None => Look::Nothing,
        }
    }

    /// `lives` is counted from when the token was asked for, so that the way here does not make it look younger.
    pub(super) fn hold(&mut self, token: Arc<Token>, asked_at: Instant, lives: Duration) {
        let margin = (lives / 5).min(REFRESH_BEFORE_END_MAX);
        let ends_at = asked_at + lives;
        self.held = Some(Held { token, refresh_at: ends_at - margin, ends_at });
    }

    /// The next one could not be had.
    pub(super) fn not_refreshed(&mut self, now: Instant) {
        if let Some(held) = &mut self.held {
            held.refresh_at = held.refresh_at.max(now + REFRESH_REST);
        }
    }

    /// The remote system refused it. Another one, fetched since, stays.
    pub(super) fn drop_token(&mut self, refused: &Arc<Token>) {
        if self.held.as_ref().is_some_and(|held| Arc::ptr_eq(&held.token, refused)) {
            self.held = None;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "any instant will do as the first one")]

    use super::*;
    use proptest::prelude::*;

    fn token() -> Arc<Token> {
        Arc::new(Token { header: HeaderValue::from_static("Bearer x") })
    }

    proptest! {
        #[test]
        fn a_token_is_fresh_then_ageing_then_gone(lives_s in 1u64..100_000, share in 0.0f64..1.5) {
            let begin = Instant::now();
            let lives = Duration::from_secs(lives_s);
            let mut cache = Cache::default();
            prop_assert!(matches!(cache.look(begin), Look::Nothing));
            cache.hold(token(), begin, lives);
            let now = begin + lives.mul_f64(share);
            match cache.look(now) {
                Look::Fresh(_) => prop_assert!(now + (lives / 5).min(Duration::from_secs(60)) < begin + lives),
                Look::Ageing(_) => prop_assert!((0.79..1.0).contains(&share)),
                Look::Nothing => prop_assert!(now >= begin + lives),
            }
            cache.not_refreshed(now);
            prop_assert!(!matches!(cache.look(now), Look::Ageing(_)));
            // A failure to refresh makes nothing live longer.
            prop_assert!(matches!(cache.look(begin + lives), Look::Nothing));
        }
    }

    #[test]
    fn only_the_token_that_was_refused_is_dropped() {
        let begin = Instant::now();
        let (old, new) = (token(), token());
        let mut cache = Cache::default();
        cache.hold(Arc::clone(&old), begin, Duration::from_secs(60));
        cache.hold(Arc::clone(&new), begin, Duration::from_secs(60));
        cache.drop_token(&old);
        assert!(matches!(cache.look(begin), Look::Fresh(held) if Arc::ptr_eq(&held, &new)));
        cache.drop_token(&new);
        assert!(matches!(cache.look(begin), Look::Nothing));
    }

    #[test]
    fn a_token_that_lives_no_time_serves_nobody_else() {
        let begin = Instant::now();
        let mut cache = Cache::default();
        cache.hold(token(), begin, Duration::ZERO);
        assert!(matches!(cache.look(begin), Look::Nothing));
    }
}
