//! Some seeds in every test run; many more with `cargo run --release -p postrider-sim`.

use postrider_sim::{Plan, StoreKind, run_seed};

fn run(seeds: std::ops::Range<u64>, store: StoreKind) -> usize {
    let mut receipts = 0;
    for seed in seeds {
        let report = run_seed(&Plan::of_seed(seed, store)).expect("a run can be set up");
        let found: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "seed {seed} on {store:?}: {found:#?}");
        receipts += report.receipts;
    }
    receipts
}

// Seed 42, among others, has two workers over one store: each finds what the other one stored in its queues. In seed 116 a queue is put in
// order while something is claimed, and the owner dies.
// proves: Z11, Z13, Z14, Z16, Z17, Z18, Z21, Z22, Z30, R16
#[test]
fn simulated_seeds_on_the_reference_store() {
    assert!(run(0..400, StoreKind::Memory) > 10_000, "the runs hardly send anything");
}

// proves: Z13
#[test]
fn simulated_seeds_on_sqlite() {
    assert!(run(10_000..10_060, StoreKind::Sqlite) > 1_000, "the runs hardly send anything");
}

// Seed 20042 has two workers. Each call is a transaction with its fsync, so these are few; more by `--store postgres`.
// proves: Z13, P03
#[test]
fn simulated_seeds_on_postgres() {
    assert!(run(20_040..20_045, StoreKind::Postgres) > 50, "the runs hardly send anything");
}

#[test]
fn a_seed_replays_exactly() {
    for (seed, store) in
        (0..40).map(|seed| (seed, StoreKind::Memory)).chain([(3, StoreKind::Sqlite), (4, StoreKind::Sqlite)])
    {
        let plan = Plan::of_seed(seed, store);
        let (first, second) = (run_seed(&plan).expect("it runs"), run_seed(&plan).expect("it runs again"));
        assert_eq!(first.log, second.log, "seed {seed}");
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}
