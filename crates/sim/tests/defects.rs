//! The oracle can fail: each deliberate defect is reported, under the invariant that it breaks.

use postrider_sim::{Defect, Plan, StoreKind, run_tampered};

/// Seeds are tried until the defect shows; far fewer than a test run goes through without it.
const SEEDS: u64 = 300;

/// The invariants that were reported for the first seed in which the defect showed.
fn reported(defect: Defect) -> Vec<u8> {
    for seed in 0..SEEDS {
        let plan = Plan::of_seed(seed, StoreKind::Memory);
        let report = run_tampered(&plan, Some(defect)).expect("a run can be set up");
        if !report.violations.is_empty() {
            return report.violations.iter().map(|violation| violation.invariant).collect();
        }
    }
    panic!("{defect:?} was not noticed in {SEEDS} seeds");
}

#[track_caller]
fn is_reported_as(defect: Defect, invariants: &[u8]) {
    let found = reported(defect);
    assert!(found.iter().any(|number| invariants.contains(number)), "{defect:?} is reported as {found:?}");
}

#[test]
fn a_lost_request_is_noticed() {
    is_reported_as(Defect::LosesAnEnqueue, &[1]);
}

#[test]
fn two_swapped_requests_are_noticed() {
    is_reported_as(Defect::SwapsTwo, &[2]);
}

#[test]
fn an_attempt_written_twice_is_noticed() {
    is_reported_as(Defect::SettlesTwice, &[4]);
}

#[test]
fn a_write_under_an_old_token_is_noticed() {
    is_reported_as(Defect::TakesOldTokens, &[3]);
}

#[test]
fn an_early_attempt_is_noticed() {
    is_reported_as(Defect::ClaimsEarly, &[5]);
}

#[test]
fn a_missing_attempt_is_noticed() {
    is_reported_as(Defect::DropsAnAttempt, &[4]);
}

#[test]
fn a_forgotten_settlement_is_noticed() {
    is_reported_as(Defect::ForgetsASettlement, &[1, 2, 7, 9]);
}

#[test]
fn a_forgotten_idempotency_key_is_noticed() {
    is_reported_as(Defect::ForgetsKeys, &[6]);
}

#[test]
fn a_forward_that_reaches_no_topic_is_noticed() {
    is_reported_as(Defect::ForwardsNothing, &[1]);
}

#[test]
fn a_changed_body_is_noticed() {
    is_reported_as(Defect::ChangesBodies, &[8]);
}

#[test]
fn a_request_sent_twice_is_noticed() {
    is_reported_as(Defect::SendsTwice, &[5]);
}

#[test]
fn a_job_that_loses_count_is_noticed() {
    is_reported_as(Defect::ForgetsProgress, &[10]);
}

// proves: V04 (an endpoint's health is written with the attempt)
#[test]
fn v04_a_failure_that_an_endpoint_never_hears_of_is_noticed() {
    is_reported_as(Defect::ForgetsHealth, &[11]);
}
