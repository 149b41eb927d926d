//! Named steps with their elapsed time, and a summary of all of them at the end.
//!
//! It must not know what a step does.

use std::time::{Duration, Instant};

/// How one step ended, other than by an error.
pub enum Outcome {
    Done,
    /// Nothing was checked, and this is why. Shown in the summary so that it cannot pass for a success.
    Skipped(String),
}

struct Line {
    name: String,
    took: Duration,
    result: Result<Outcome, String>,
}

/// Runs steps one after the other and goes on after a failure, so that one run shows everything that is wrong.
#[derive(Default)]
pub struct Steps {
    lines: Vec<Line>,
}

impl Steps {
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Outcome, String>) {
        eprintln!("\n==> {name}");
        let started = Instant::now();
        let result = work();
        let took = started.elapsed();
        match &result {
            Ok(Outcome::Done) => eprintln!("    {name}: done in {}", seconds(took)),
            Ok(Outcome::Skipped(why)) => eprintln!("    {name}: SKIPPED, {why}"),
            Err(why) => eprintln!("    {name}: FAILED after {}, {why}", seconds(took)),
        }
        self.lines.push(Line { name: name.to_owned(), took, result });
    }

    pub fn has_failed(&self) -> bool {
        self.lines.iter().any(|line| line.result.is_err())
    }

    /// Prints the summary. An error when any step failed.
    pub fn finish(self) -> Result<(), String> {
        eprintln!("\n==> summary");
        let width = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        for line in &self.lines {
            let word = match &line.result {
                Ok(Outcome::Done) => "ok".to_owned(),
                Ok(Outcome::Skipped(why)) => format!("SKIPPED: {why}"),
                Err(why) => format!("FAILED: {why}"),
            };
            eprintln!("    {:width$}  {:>8}  {word}", line.name, seconds(line.took));
        }
        let failed = self.lines.iter().filter(|line| line.result.is_err()).count();
        if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} steps failed", self.lines.len())) }
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_whole_and_does_not_stop_the_next() {
        let mut steps = Steps::default();
        let mut ran = Vec::new();
        steps.step("one", || Err("broken".to_owned()));
        assert!(steps.has_failed());
        steps.step("two", || {
            ran.push("two");
            Ok(Outcome::Done)
        });
        assert_eq!(steps.finish(), Err("1 of 2 steps failed".to_owned()));
        assert_eq!(ran, ["two"]);
    }

    #[test]
    fn a_skipped_step_is_no_failure() {
        let mut steps = Steps::default();
        steps.step("one", || Ok(Outcome::Skipped("not here".to_owned())));
        assert_eq!(steps.finish(), Ok(()));
    }
}
