//! `cargo xtask crash`: kill -9 of the real binary, many rounds, with the checker that keeps its own books; with `--postgres`, of workers that
//! share a database.
//!
//! Only the front door: the runs themselves are the tests `kill_nine` and `workers_killed` of the binary. It must not know what is checked.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::workspace::cargo;
use crate::{postgres, process};

const ROUNDS: u64 = 200;
/// Requests of a run on PostgreSQL.
const MESSAGES: u64 = 1_000_000;

#[derive(Debug, PartialEq, Eq)]
struct Run {
    /// Workers on one database, in place of a server with its own store.
    postgres: bool,
    /// Rounds, or with `postgres` messages.
    many: u64,
    /// `None`: another one each time.
    seed: Option<u64>,
}

pub fn run(args: &[String]) -> Result<(), String> {
    let run = parsed(args)?;
    let seed = run.seed.unwrap_or_else(fresh_seed);
    let mut test = cargo();
    let (name, variable, word) = if run.postgres {
        ("workers_killed", "POSTRIDER_KILL_MESSAGES", "--postgres --messages")
    } else {
        ("kill_nine", "POSTRIDER_KILL_ROUNDS", "--rounds")
    };
    let server = if run.postgres { Some(postgres::ready()?) } else { None };
    test.args(["test", "--locked", "-p", "postrider", "--test", name, "--", "--nocapture"]);
    test.env(variable, run.many.to_string()).env("POSTRIDER_KILL_SEED", seed.to_string());
    test.envs(server.iter().flat_map(postgres::Server::variables));
    process::run(&mut test)
        .map_err(|error| format!("{error}; to replay: cargo xtask crash {word} {} --seed {seed}", run.many))
}

fn parsed(args: &[String]) -> Result<Run, String> {
    let postgres = args.iter().any(|word| word == "--postgres");
    let mut run = Run { postgres, many: if postgres { MESSAGES } else { ROUNDS }, seed: None };
    let mut words = args.iter().filter(|word| *word != "--postgres");
    while let Some(word) = words.next() {
        let given = words.next().ok_or_else(|| format!("`{word}` needs a number"))?;
        let number: u64 = given.parse().map_err(|_| format!("`{word} {given}`: not a whole number"))?;
        match (word.as_str(), postgres) {
            ("--rounds", false) | ("--messages", true) if number > 0 => run.many = number,
            ("--rounds", false) | ("--messages", true) => return Err(format!("`{word}` is at least 1")),
            ("--seed", _) => run.seed = Some(number),
            (_, false) => return Err(format!("`{word}` is unknown; there are --rounds N, --seed N and --postgres")),
            (_, true) => {
                return Err(format!("`{word}` is unknown with --postgres; there are --messages N and --seed N"));
            }
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
        assert_eq!(of(&[]), Ok(Run { postgres: false, many: 200, seed: None }));
        assert_eq!(of(&["--seed", "0", "--rounds", "3"]), Ok(Run { postgres: false, many: 3, seed: Some(0) }));
        assert_eq!(of(&["--postgres"]), Ok(Run { postgres: true, many: 1_000_000, seed: None }));
        assert_eq!(of(&["--messages", "9", "--postgres"]), Ok(Run { postgres: true, many: 9, seed: None }));
        for bad in [
            &["--rounds"][..],
            &["--rounds", "0"],
            &["--rounds", "x"],
            &["--speed", "1"],
            &["--messages", "1"],
            &["--postgres", "--rounds", "1"],
        ] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
