//! `cargo xtask crash`: kill -9 of the real binary, many rounds, with the checker that keeps its own books.
//!
//! Only the front door: the run itself is the test `kill_nine` of the binary. It must not know what is checked.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::process;
use crate::workspace::cargo;

const ROUNDS: u64 = 200;

#[derive(Debug, PartialEq, Eq)]
struct Run {
    rounds: u64,
    /// `None`: another one each time.
    seed: Option<u64>,
}

pub fn run(args: &[String]) -> Result<(), String> {
    let run = parsed(args)?;
    let seed = run.seed.unwrap_or_else(fresh_seed);
    let mut test = cargo();
    test.args(["test", "--locked", "-p", "postrider", "--test", "kill_nine", "--", "--nocapture"]);
    test.env("POSTRIDER_KILL_ROUNDS", run.rounds.to_string()).env("POSTRIDER_KILL_SEED", seed.to_string());
    process::run(&mut test)
        .map_err(|error| format!("{error}; to replay: cargo xtask crash --rounds {} --seed {seed}", run.rounds))
}

fn parsed(args: &[String]) -> Result<Run, String> {
    let mut run = Run { rounds: ROUNDS, seed: None };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let given = words.next().ok_or_else(|| format!("`{word}` needs a number"))?;
        let number: u64 = given.parse().map_err(|_| format!("`{word} {given}`: not a whole number"))?;
        match word.as_str() {
            "--rounds" if number > 0 => run.rounds = number,
            "--rounds" => return Err("`--rounds` is at least 1".to_owned()),
            "--seed" => run.seed = Some(number),
            _ => return Err(format!("`{word}` is unknown; there are --rounds N and --seed N")),
        }
    }
    Ok(run)
}

/// Short enough to be typed again.
fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_millis() as u64 % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<Run, String> {
        parsed(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn rounds_and_seed_are_read_and_all_else_refused() {
        assert_eq!(of(&[]), Ok(Run { rounds: 200, seed: None }));
        assert_eq!(of(&["--seed", "0", "--rounds", "3"]), Ok(Run { rounds: 3, seed: Some(0) }));
        for bad in [&["--rounds"][..], &["--rounds", "0"], &["--rounds", "x"], &["--speed", "1"]] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
