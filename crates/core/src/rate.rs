//! A rate limit: a bucket of tokens that fills as time passes, from which attempts are taken (R04).
//!
//! Pure: every question brings its time. Kept as the one instant at which the bucket would be full again, so that nothing is ever counted
//! up or down and no time has to pass for it. It must not know what is limited, nor who waits.

use std::num::NonZeroU32;

use crate::Timestamp;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
/// Before every time that is ever asked about, and far from where a number ends.
const LONG_AGO: i128 = i64::MIN as i128 * NANOS_PER_MILLI;
/// A tenth of a second's worth may go at once after a rest.
const BURST_PARTS: u32 = 10;
/// A promise is at most a twentieth of a second's worth.
const PROMISE_PARTS: u32 = 20;
/// Longer waits than this come only of a clock that was set back: then the bucket starts anew.
const PROMISED_AHEAD_MAX: i128 = 3_600 * NANOS_PER_SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    per_second: NonZeroU32,
    /// When the bucket is full, in nanoseconds since 1970; before now: it is full.
    full_at: i128,
    /// When it was last asked.
    asked_at: i128,
}

impl TokenBucket {
    /// A full one. `per_second`: from 1 on.
    pub const fn new(per_second: NonZeroU32) -> Self {
        TokenBucket { per_second, full_at: LONG_AGO, asked_at: LONG_AGO }
    }

    pub const fn per_second(&self) -> NonZeroU32 {
        self.per_second
    }

    /// Another rate from now on; what was taken stays taken.
    pub fn set_rate(&mut self, per_second: NonZeroU32) {
        self.per_second = per_second;
    }

    /// Tokens that a full bucket holds: so many attempts may go at once.
    pub fn burst(&self) -> u32 {
        (self.per_second.get() / BURST_PARTS).max(1)
    }

    /// Between two tokens, rounded up: never faster than the rate.
    fn interval(&self) -> i128 {
        let rate = i128::from(self.per_second.get());
        (NANOS_PER_SECOND + rate - 1) / rate
    }

    /// Takes up to `wanted` tokens and says how many were there.
    pub fn take(&mut self, wanted: u32, now: Timestamp) -> u32 {
        let now = self.look(now);
        let room = i128::from(self.burst()) * self.interval() - (self.full_at - now).max(0);
        let there = u32::try_from((room / self.interval()).max(0)).unwrap_or(u32::MAX);
        let taken = wanted.min(there);
        self.full_at = self.full_at.max(now) + i128::from(taken) * self.interval();
        taken
    }

    /// When up to `wanted` tokens will be there together, at most a short while's worth, if nobody takes any before.
    pub fn ready_at(&self, wanted: u32, now: Timestamp) -> Timestamp {
        let wanted = i128::from(self.at_once(wanted));
        let room = (i128::from(self.burst()) - wanted) * self.interval();
        let nanos = (self.full_at - room).max(i128::from(now.as_millis()) * NANOS_PER_MILLI);
        ms_from(nanos)
    }

    fn at_once(&self, wanted: u32) -> u32 {
        wanted.clamp(1, (self.per_second.get() / PROMISE_PARTS).max(1).min(self.burst()))
    }

    /// Promises up to `wanted` tokens, at most a short while's worth: when they may be used, and how many. They are taken from now on, so
    /// several who ask one after another get one time after another, and none of them is passed over.
    pub fn promise(&mut self, wanted: u32, now: Timestamp) -> (Timestamp, u32) {
        let now = self.look(now);
        let promised = self.at_once(wanted);
        self.full_at = self.full_at.max(now) + i128::from(promised) * self.interval();
        let due = self.full_at - i128::from(self.burst()) * self.interval();
        (ms_from(due.max(now)), promised)
    }

    /// Gives back what was taken or promised and not used.
    pub fn give_back(&mut self, count: u32) {
        self.full_at = self.full_at.saturating_sub(i128::from(count) * self.interval());
    }

    /// The time in nanoseconds. A clock that goes backwards moves the bucket with it, so that nobody waits for the old time to come again.
    fn look(&mut self, now: Timestamp) -> i128 {
        let now = i128::from(now.as_millis()) * NANOS_PER_MILLI;
        if now < self.asked_at {
            self.full_at = self.full_at.saturating_sub(self.asked_at - now);
        }
        if self.full_at - now > PROMISED_AHEAD_MAX {
            self.full_at = now;
        }
        self.asked_at = now;
        now
    }
}

/// Rounded up to the millisecond.
fn ms_from(nanos: i128) -> Timestamp {
    let ms = (nanos + NANOS_PER_MILLI - 1).div_euclid(NANOS_PER_MILLI);
    Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
