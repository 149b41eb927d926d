//! The waits of rounds and of ladders, in seconds and with plain loops, as the seeds' prose has them.
//!
//! From the first seed: "Each next wait is the previous one times the multiplier, 1 second at least, and no wait goes past 8 seconds
//! or past what is left of the total." From the second: each wait is a step of the ladder, the last one repeats.

/// The settings of rounds as people write them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    pub max_retries: u32,
    pub first_s: f64,
    pub multiplier: f64,
    pub total_s: f64,
}

impl Rounds {
    /// The wait before a retry (from 1), when so many seconds have been waited; `None` when it does not take place.
    pub fn wait_s(&self, retry: u32, waited_s: f64) -> Option<f64> {
        let left_s = self.total_s - waited_s;
        // Waits are kept to the millisecond; less than half of one is nothing.
        if retry < 1 || retry > self.max_retries || left_s < 0.0005 {
            return None;
        }
        let mut wait_s = self.first_s;
        if wait_s > 8.0 {
            wait_s = 8.0;
        }
        let mut number = 1;
        while number < retry {
            wait_s *= self.multiplier;
            wait_s = wait_s.clamp(1.0, 8.0);
            number += 1;
        }
        if wait_s > left_s {
            wait_s = left_s;
        }
        Some(wait_s)
    }
}

/// The settings of a ladder as people write them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rungs {
    pub max_attempts: u32,
    pub delays_s: Vec<f64>,
    pub has_jitter: bool,
}

impl Rungs {
    /// The wait after an attempt (from 1) with a roll from 0 up to 1; `None` after the last one.
    pub fn wait_s(&self, attempt: u32, roll: f64) -> Option<f64> {
        if attempt >= self.max_attempts {
            return None;
        }
        let mut step_s = 0.0;
        for (number, delay_s) in (0..).zip(&self.delays_s) {
            if number < attempt {
                step_s = *delay_s;
            }
        }
        Some(if self.has_jitter { step_s / 2.0 + step_s * roll } else { step_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_s(max_retries: u32, first_s: f64, multiplier: f64, total_s: f64) -> Vec<f64> {
        let rounds = Rounds { max_retries, first_s, multiplier, total_s };
        let (mut waits_s, mut waited_s) = (Vec::new(), 0.0);
        for retry in 1.. {
            let Some(wait_s) = rounds.wait_s(retry, waited_s) else { break };
            waits_s.push(wait_s);
            waited_s += wait_s;
        }
        waits_s
    }

    /// The model itself is held against the seed's own examples.
    #[test]
    fn z03_the_model_gives_the_seven_examples_of_the_seed() {
        assert_eq!(waits_s(0, 2.0, 2.0, 60.0), [0.0; 0]);
        assert_eq!(waits_s(5, 2.0, 2.0, 60.0), [2.0, 4.0, 8.0, 8.0, 8.0]);
        assert_eq!(waits_s(10, 2.0, 2.0, 60.0), [2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 6.0]);
        assert_eq!(waits_s(3, 20.0, 2.0, 60.0), [8.0, 8.0, 8.0]);
        assert_eq!(waits_s(3, 10.0, 2.0, 5.0), [5.0]);
        assert_eq!(waits_s(4, 3.0, 1.0, 60.0), [3.0, 3.0, 3.0, 3.0]);
        assert_eq!(waits_s(4, 3.0, 0.0, 60.0), [3.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn r03_the_model_gives_the_default_ladder_of_the_seed() {
        let rungs = Rungs {
            max_attempts: 7,
            delays_s: [1.0, 5.0, 15.0, 60.0, 360.0, 1440.0].map(|minutes| minutes * 60.0).to_vec(),
            has_jitter: true,
        };
        let waits: Vec<f64> = (1..).map_while(|attempt| rungs.wait_s(attempt, 0.5)).collect();
        assert_eq!(waits, rungs.delays_s);
        assert_eq!((rungs.wait_s(1, 0.0), rungs.wait_s(1, 0.75)), (Some(30.0), Some(75.0)));
        let short = Rungs { max_attempts: 4, delays_s: vec![10.0, 20.0], has_jitter: false };
        assert_eq!((1..).map_while(|attempt| short.wait_s(attempt, 0.9)).collect::<Vec<_>>(), [10.0, 20.0, 20.0]);
    }
}
