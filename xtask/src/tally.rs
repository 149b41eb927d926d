//! Adds up what test runners print in their closing lines: cargo test, nextest and pytest.
//!
//! A run that says it succeeded without having run a test is the worst kind of green, so somebody has to count.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Tally {
    /// Adds the counts of `line` when it is a closing line, and nothing otherwise.
    pub fn add_line(&mut self, line: &str) {
        let line = without_colour(line);
        let line = line.trim().trim_matches('=').trim();
        let counts = if let Some(rest) = line.strip_prefix("test result: ") {
            rest
        } else if line.starts_with("Summary [") {
            line.split_once("run:").map_or("", |(_, counts)| counts)
        } else if is_pytest_summary(line) {
            line
        } else {
            return;
        };
        self.add_counts(counts);
    }

    fn add_counts(&mut self, counts: &str) {
        let words: Vec<&str> =
            counts.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" | "error" | "errors" => self.failed += count,
                "ignored" | "skipped" => self.skipped += count,
                _ => {}
            }
        }
    }
}

/// `3 passed, 1 skipped in 0.12s`, and nothing that merely contains these words.
fn is_pytest_summary(line: &str) -> bool {
    let Some((counts, took)) = line.rsplit_once(" in ") else { return false };
    took.starts_with(|c: char| c.is_ascii_digit())
        && counts.split(", ").all(|part| {
            part.split_once(' ').is_some_and(|(number, word)| {
                number.parse::<u64>().is_ok() && word.chars().all(|c| c.is_ascii_alphabetic())
            })
        })
}

/// Drops the escape sequences that colour a terminal.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> (u64, u64, u64) {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.add_line(line));
        (tally.passed, tally.failed, tally.skipped)
    }

    #[test]
    fn reads_each_runner() {
        let cargo = "test result: ok. 12 passed; 1 failed; 2 ignored; 0 measured; 7 filtered out; finished in 0.1s";
        assert_eq!(tally(&[cargo, cargo]), (24, 2, 4));
        assert_eq!(tally(&["test result: \u{1b}[32mok\u{1b}[0m. 3 passed; 0 failed; 0 ignored"]), (3, 0, 0));
        assert_eq!(tally(&["     Summary [   0.123s] 5 tests run: 4 passed, 1 failed, 6 skipped"]), (4, 1, 6));
        assert_eq!(tally(&["===== 1 failed, 4 passed, 2 errors in 3.21s ====="]), (4, 3, 0));
        assert_eq!(tally(&["4 passed in 0.05s"]), (4, 0, 0));
    }

    #[test]
    fn ignores_other_lines() {
        assert_eq!(tally(&["running 4 tests", "4 passed the door", "we saw 4 passed in May", ""]), (0, 0, 0));
    }
}
