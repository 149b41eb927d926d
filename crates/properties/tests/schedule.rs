//! Whole calls and deliveries with settings, answers and `Retry-After` values that nobody chose, against the model of the waits.

use postrider_properties::call::{Turn, Waits, check};
use postrider_properties::delivery;
use postrider_properties::model::waits::{Rounds, Rungs};
use proptest::prelude::*;

prop_compose! {
    /// Seconds with up to three decimals, and multipliers of all kinds.
    fn any_rounds()(
        max_retries in 0u32..40, first_ms in 0u32..30_000, multiplier in prop_oneof![Just(0.0), Just(1.0), Just(2.0), 0.0..100.0f64],
        total_ms in prop_oneof![Just(0u32), 0u32..20_000, 0u32..400_000],
    ) -> Waits {
        let [first_s, total_s] = [first_ms, total_ms].map(|ms| f64::from(ms) / 1000.0);
        Waits::Rounds(Rounds { max_retries, first_s, multiplier, total_s })
    }
}

prop_compose! {
    fn any_ladder()(
        max_attempts in 1u32..=20, delays in prop::collection::vec(1u32..200_000, 1..8), has_jitter: bool,
    ) -> Waits {
        Waits::Ladder(Rungs { max_attempts, delays_s: delays.into_iter().map(f64::from).collect(), has_jitter })
    }
}

fn any_retry_after() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u64..90).prop_map(|seconds| seconds.to_string()),
        any::<u64>().prop_map(|seconds| seconds.to_string()),
        // Dates around the moment at which the calls are made, and one long ago.
        (0u32..60).prop_map(|second| format!("Thu, 12 Mar 2026 12:05:{second:02} GMT")),
        (0u32..60).prop_map(|minute| format!("Thu, 12 Mar 2026 12:{minute:02}:00 GMT")),
        Just("Sunday, 06-Nov-94 08:49:37 GMT".to_owned()),
        "[0-9a-z .:-]{0,6}",
    ]
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let status = prop_oneof![5 => Just(Some(429)), 3 => Just(None), 1 => prop::sample::select(vec![Some(204), Some(302), Some(404), Some(408), Some(500), Some(503)])];
    (status, prop::option::of(any_retry_after()), 0.0..1.0f64).prop_map(|(status, retry_after, roll)| Turn {
        status,
        retry_after,
        roll,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    // proves: Z01, Z02, Z03, Z04
    #[test]
    fn z04_calls_in_rounds_wait_as_the_seed_says(waits in any_rounds(), turns in prop::collection::vec(any_turn(), 1..45)) {
        check(&waits, &turns);
    }

    // proves: R03, R08
    #[test]
    fn r08_calls_on_a_ladder_wait_as_the_seed_says(waits in any_ladder(), turns in prop::collection::vec(any_turn(), 1..25)) {
        check(&waits, &turns);
    }

    // proves: Z03, Z15, Z16
    #[test]
    fn z15_deliveries_in_rounds_wait_as_the_seed_says(
        waits in any_rounds(), turns in prop::collection::vec(any_turn(), 1..45),
    ) {
        delivery::check(&waits, &turns);
    }

    // proves: R02, R03, R07, R08
    #[test]
    fn r03_deliveries_on_a_ladder_wait_as_the_seed_says(
        waits in any_ladder(), turns in prop::collection::vec(any_turn(), 1..25),
    ) {
        delivery::check(&waits, &turns);
    }
}
