//! How many queues a worker takes or gives back, so that each has about as many as the others. Pure: every worker comes to the same numbers.
//!
//! It must not know which queues, nor whose they are.

/// Everybody's part, rounded up: what all may take together is never less than what there is.
fn share(loads: &[u64], free: u64) -> u64 {
    let workers = loads.len().max(1) as u64;
    (loads.iter().sum::<u64>() + free).div_ceil(workers)
}

/// Of `free` queues, how many a worker with `mine` takes. `loads`: the queues of every worker, its own included.
pub fn to_take(mine: u64, loads: &[u64], free: u64) -> u64 {
    share(loads, free).saturating_sub(mine).min(free)
}

/// How many it gives back. A tenth more than its part it keeps, so that queues do not go to and fro; and it gives a quarter at a time, so
/// that a worker that joins is not flooded.
pub fn to_give_back(mine: u64, loads: &[u64], free: u64) -> u64 {
    let share = share(loads, free);
    if loads.len() < 2 || mine <= share + (share / 10).max(1) {
        return 0;
    }
    (mine - share).min((mine / 4).max(1))
}

/// A worker's part of a limit that all share, rounded up: together they keep it to within one for each, and nobody's part is nothing.
pub fn part_of(limit: u32, workers: u32) -> u32 {
    limit.div_ceil(workers.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn d05_a_worker_alone_takes_all_and_keeps_all() {
        assert_eq!(to_take(0, &[0], 500), 500);
        assert_eq!(to_give_back(500, &[500], 0), 0);
    }

    #[test]
    fn d05_one_who_joins_gets_its_part_in_a_few_steps() {
        let (mut old, mut new) = (100, 0);
        for _ in 0..10 {
            let given = to_give_back(old, &[old, new], 0);
            old -= given;
            new += to_take(new, &[old, new], given);
        }
        assert!(old <= 55 && old + new == 100, "{old} {new}");
    }

    #[test]
    fn r04_a_limit_is_shared_evenly_and_nobody_goes_without() {
        assert_eq!((part_of(100, 1), part_of(100, 4), part_of(100, 3), part_of(2, 5)), (100, 25, 34, 1));
        assert_eq!(part_of(7, 0), 7);
    }

    proptest! {
        #[test]
        fn d05_all_that_is_free_is_taken_and_nobody_goes_without(loads in prop::collection::vec(0_u64..2000, 1..20), free in 0_u64..5000) {
            let taken: u64 = loads.iter().map(|mine| to_take(*mine, &loads, free)).sum();
            prop_assert!(taken >= free);
        }

        #[test]
        fn d05_giving_back_comes_to_rest_near_an_even_spreading(mut loads in prop::collection::vec(0_u64..500, 2..8)) {
            for _ in 0..200 {
                let before = loads.clone();
                let mut free: u64 = 0;
                for mine in &mut loads {
                    let given = to_give_back(*mine, &before, 0);
                    *mine -= given;
                    free += given;
                }
                // All look at the same time, and who comes later finds less.
                let (now, seen) = (loads.clone(), free);
                for mine in &mut loads {
                    let taken = to_take(*mine, &now, seen).min(free);
                    *mine += taken;
                    free -= taken;
                }
                prop_assert_eq!(free, 0);
            }
            let most = loads.iter().max().unwrap();
            let share = loads.iter().sum::<u64>().div_ceil(loads.len() as u64);
            prop_assert!(*most <= share + (share / 10).max(1), "{:?}", loads);
        }
    }
}
