//! Colour, on a terminal only and never where `NO_COLOR` is set (no-color.org).

use std::io::IsTerminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    Good,
    Waiting,
    Bad,
    Faint,
}

impl Tint {
    const fn code(self) -> &'static str {
        match self {
            Tint::Good => "\u{1b}[32m",
            Tint::Waiting => "\u{1b}[33m",
            Tint::Bad => "\u{1b}[31m",
            Tint::Faint => "\u{1b}[2m",
        }
    }

    pub fn paint(self, text: &str, coloured: bool) -> String {
        if coloured { format!("{}{text}\u{1b}[0m", self.code()) } else { text.to_owned() }
    }
}

/// The colour of a delivery's status.
pub fn status_tint(status: &str) -> Option<Tint> {
    match status {
        "SUCCESS" => Some(Tint::Good),
        "PENDING" | "PROCESSING" => Some(Tint::Waiting),
        "FAILED" | "DLQ" | "EXPIRED" => Some(Tint::Bad),
        "DISCARDED" | "FORWARDED" => Some(Tint::Faint),
        _ => None,
    }
}

pub fn stdout_is_coloured() -> bool {
    coloured(std::io::stdout().is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

fn coloured(terminal: bool, no_color: Option<&std::ffi::OsStr>) -> bool {
    terminal && no_color.is_none_or(std::ffi::OsStr::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        assert!(coloured(true, None));
        assert!(coloured(true, Some("".as_ref())));
        assert!(!coloured(true, Some("1".as_ref())));
        assert!(!coloured(false, None));
        assert_eq!(Tint::Bad.paint("DLQ", false), "DLQ");
        assert_eq!(Tint::Bad.paint("DLQ", true), "\u{1b}[31mDLQ\u{1b}[0m");
    }
}
