//! What is going on, on standard error: one line that changes on a terminal, one line a step elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Progress {
    is_terminal: bool,
    began_at: Instant,
    step: String,
}

/// How often a changing line changes.
pub const EVERY: Duration = Duration::from_millis(250);

impl Progress {
    pub fn start() -> Progress {
        Progress { is_terminal: std::io::stderr().is_terminal(), began_at: Instant::now(), step: String::new() }
    }

    /// A new step of the whole.
    pub fn step(&mut self, step: impl Into<String>) {
        self.step = step.into();
        self.line(&format!("{} …", self.step), !self.is_terminal);
    }

    /// How far the step is. Shown on a terminal only.
    pub fn at(&self, how_far: &str) {
        if self.is_terminal {
            self.line(&format!("{}: {how_far}", self.step), false);
        }
    }

    /// The step's result, which stays.
    pub fn done(&self, result: &str) {
        self.line(&format!("{}: {result}", self.step), true);
    }

    fn line(&self, text: &str, stays: bool) {
        let seconds = self.began_at.elapsed().as_secs();
        let mut out = std::io::stderr().lock();
        let (begin, end) = match (self.is_terminal, stays) {
            (true, true) => ("\r\x1b[K", "\n"),
            (true, false) => ("\r\x1b[K", ""),
            (false, _) => ("", "\n"),
        };
        // Nobody may be reading; the measurement goes on.
        let _ = write!(out, "{begin}[{:02}:{:02}] {text}{end}", seconds / 60, seconds % 60);
        let _ = out.flush();
    }
}
