//! The bucket, held against an independent model.

use super::*;
use proptest::prelude::*;

fn bucket(per_second: u32) -> TokenBucket {
    TokenBucket::new(NonZeroU32::new(per_second).unwrap())
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

#[test]
fn r04_one_a_second_is_one_each_second() {
    let mut bucket = bucket(1);
    assert_eq!((bucket.take(5, at(0)), bucket.take(5, at(999)), bucket.take(5, at(1000))), (1, 0, 1));
    assert_eq!(bucket.promise(1, at(1500)), (at(2000), 1));
    // What was promised is taken: the next one is promised the next second, and nobody is served between.
    assert_eq!(bucket.promise(9, at(1500)), (at(3000), 1));
    assert_eq!(bucket.take(1, at(2500)), 0);
    assert_eq!(bucket.take(1, at(4000)), 1);
}

#[test]
fn r04_after_a_rest_a_tenth_of_a_second_goes_at_once() {
    let mut bucket = bucket(100);
    assert_eq!((bucket.burst(), bucket.take(1000, at(0))), (10, 10));
    assert_eq!(bucket.take(1000, at(50)), 5);
    assert_eq!(bucket.take(1000, at(60_000)), 10, "never more, however long the rest");
}

#[test]
fn r04_what_is_not_used_comes_back() {
    let mut bucket = bucket(10);
    assert_eq!(bucket.take(1, at(0)), 1);
    bucket.give_back(1);
    assert_eq!(bucket.take(1, at(0)), 1);
    assert_eq!(bucket.take(1, at(0)), 0);
}

#[test]
fn r04_a_clock_that_is_set_back_does_not_stop_anybody() {
    let mut bucket = bucket(2);
    assert_eq!(bucket.take(1, at(10_000_000)), 1);
    assert_eq!(bucket.take(1, at(1_000)), 0, "no token for the jump");
    assert_eq!(bucket.take(1, at(1_500)), 1);
}

/// Tokens as an exact fraction that is counted up with time and down with each taking.
struct Model {
    rate: u128,
    capacity: u128,
    /// In thousandths of a token.
    tokens: u128,
    at: i64,
}

impl Model {
    fn take(&mut self, wanted: u32, now: i64) -> u32 {
        self.tokens = (self.tokens + (now - self.at).unsigned_abs() as u128 * self.rate).min(self.capacity * 1000);
        self.at = now;
        let taken = wanted.min(u32::try_from(self.tokens / 1000).unwrap());
        self.tokens -= u128::from(taken) * 1000;
        taken
    }
}

proptest! {
    /// Rates whose interval is a whole number of nanoseconds agree with the model to the token.
    #[test]
    fn r04_the_bucket_gives_what_the_model_gives(
        rate in prop::sample::select(vec![1_u32, 2, 4, 5, 8, 10, 20, 100, 250, 1000, 10_000]),
        steps in prop::collection::vec((0_i64..2000, 0_u32..200), 1..120),
    ) {
        let mut bucket = bucket(rate);
        let capacity = u128::from((rate / 10).max(1));
        let mut model = Model { rate: rate.into(), capacity, tokens: capacity * 1000, at: 0 };
        let mut now = 0;
        for (passed, wanted) in steps {
            now += passed;
            prop_assert_eq!(bucket.take(wanted, at(now)), model.take(wanted, now), "at {}", now);
            let ready = bucket.ready_at(1, at(now)).as_millis();
            prop_assert!({ bucket }.take(1, at(ready)) == 1, "a token at {}", ready);
            prop_assert!(ready == now || { bucket }.take(1, at(ready - 1)) == 0, "none before {}", ready);
        }
    }

    /// Whatever the rate and whoever asks, takes or is promised: no window of time sees more than its worth and one burst.
    #[test]
    fn r04_no_window_sees_more_than_the_rate_and_a_burst(
        rate in 1_u32..5000, steps in prop::collection::vec((0_i64..400, 1_u32..100, any::<bool>()), 1..150),
    ) {
        let mut bucket = bucket(rate);
        let mut uses: Vec<(i64, u32)> = Vec::new();
        let mut now = 0;
        for (passed, wanted, waits) in steps {
            now += passed;
            let there = bucket.take(wanted, at(now));
            uses.push((now, there));
            if waits && there == 0 {
                let (due, promised) = bucket.promise(wanted, at(now));
                prop_assert!(promised >= 1 && due.as_millis() >= now);
                uses.push((due.as_millis(), promised));
            }
        }
        uses.sort_unstable();
        for (index, (from, _)) in uses.iter().enumerate() {
            let mut sum = 0_u64;
            for (until, count) in &uses[index..] {
                sum += u64::from(*count);
                let worth = u64::from(rate) * (until - from).unsigned_abs() / 1000;
                prop_assert!(sum <= worth + u64::from((rate / 10).max(1)) + 1, "{sum} from {from} to {until} at {rate}/s");
            }
        }
    }

    /// Whoever asks again and again gets the whole rate.
    #[test]
    fn r04_the_whole_rate_is_given(rate in 1_u32..2000, every_ms in 1_i64..50) {
        let mut bucket = bucket(rate);
        let mut given = 0_u64;
        let until = 10_000;
        let mut now = 0;
        while now <= until {
            given += u64::from(bucket.take(u32::MAX, at(now)));
            now += every_ms;
        }
        // What is left to itself for longer than it takes to fill runs over; never more than that is lost.
        let (rate, burst, every_ms) = (u64::from(rate), u64::from((rate / 10).max(1)), every_ms.unsigned_abs());
        let least = burst * 10_000 * rate / (burst * 1000 + every_ms * rate);
        prop_assert!(given + burst + 1 >= least, "{given} of {least} at {rate}/s in 10 s");
    }
}
