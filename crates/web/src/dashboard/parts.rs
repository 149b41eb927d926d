//! The small things that pages are made of: times, states, numbers. Each writes its own markup, escaped.
//!
//! It must not know of any page.

use std::borrow::Borrow;
use std::fmt;

use askama::filters::HtmlSafe;
use postrider_core::{Timestamp, Wait};

/// A time as people say it; the exact one, in UTC, is its title, and the script adds the local one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at: Timestamp,
    pub now: Timestamp,
}

impl Moment {
    /// Templates hand in both as references.
    pub fn of(at: impl Borrow<Timestamp>, now: impl Borrow<Timestamp>) -> Moment {
        Moment { at: *at.borrow(), now: *now.borrow() }
    }
}

impl HtmlSafe for Moment {}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { at, now } = *self;
        write!(f, "<time datetime=\"{at}\" title=\"{} UTC\">", plain(at))?;
        match (at <= now, Span(if at <= now { now.since(at) } else { at.since(now) })) {
            (_, Span(span)) if span < Wait::from_secs(1) => f.write_str("now")?,
            (true, span) => write!(f, "{span} ago")?,
            (false, span) => write!(f, "in {span}")?,
        }
        f.write_str("</time>")
    }
}

/// `2026-03-12 12:05:34`
pub fn plain(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

/// A length of time in its one or two largest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Wait);

impl HtmlSafe for Span {}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let seconds = millis / 1000;
        let two = |f: &mut fmt::Formatter<'_>, large: u64, unit: &str, small: u64, small_unit: &str| {
            write!(f, "{large} {unit}")?;
            if small > 0 { write!(f, " {small} {small_unit}") } else { Ok(()) }
        };
        match seconds {
            0 => write!(f, "{millis} ms"),
            1..60 => write!(f, "{seconds} s"),
            60..600 => two(f, seconds / 60, "min", seconds % 60, "s"),
            600..3600 => write!(f, "{} min", seconds / 60),
            3600..86_400 => two(f, seconds / 3600, "h", seconds % 3600 / 60, "min"),
            _ => two(f, seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
        }
    }
}

/// How something stands, in a word and a colour; the word says it all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Badge {
    pub tone: Tone,
    pub word: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// On its way.
    Waiting,
    /// Somebody should look.
    Warning,
    /// It does not go on by itself.
    Bad,
    /// Switched off on purpose, or over.
    Quiet,
}

impl Tone {
    pub const fn as_str(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Waiting => "waiting",
            Tone::Warning => "warning",
            Tone::Bad => "bad",
            Tone::Quiet => "quiet",
        }
    }
}

impl HtmlSafe for Badge {}

impl fmt::Display for Badge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<span class=\"badge badge-{}\">{}</span>", self.tone.as_str(), self.word)
    }
}

/// A number with its thousands apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

impl Count {
    /// Templates hand it in as a reference.
    pub fn of(number: impl Borrow<u64>) -> Count {
        Count(*number.borrow())
    }
}

impl HtmlSafe for Count {}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                // A thin space that does not break.
                f.write_str("\u{202f}")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// Text within markup.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A sentence of ours as markup: what stands between backticks is code.
pub fn with_code(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    // A last one without its end is no code.
    let last = text.matches('`').count();
    pieces
        .map(|(at, piece)| match (at % 2 == 1 && at < last, at % 2 == 1) {
            (true, _) => format!("<code>{}</code>", escaped(piece)),
            (false, true) => format!("`{}", escaped(piece)),
            (false, false) => escaped(piece),
        })
        .collect()
}

/// Where a list goes on.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    /// The address of the first page, if this is not it.
    pub first: Option<String>,
    pub next: Option<String>,
}

impl Paging {
    /// `base` is the page with its filters, without a cursor.
    pub fn of(base: &str, cursor: Option<&str>, next_cursor: Option<&str>) -> Paging {
        let joint = if base.contains('?') { '&' } else { '?' };
        Paging {
            first: cursor.map(|_| base.to_owned()),
            next: next_cursor.map(|next| format!("{base}{joint}cursor={}", super::visit::segment(next))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_their_largest_units() {
        let now = Timestamp::from_millis(1_773_317_134_000);
        let at =
            |seconds: i64| Moment { at: Timestamp::from_millis(now.as_millis() - seconds * 1000), now }.to_string();
        assert_eq!(at(0), "<time datetime=\"2026-03-12T12:05:34.000Z\" title=\"2026-03-12 12:05:34 UTC\">now</time>");
        for (seconds, words) in [
            (1, ">1 s ago<"),
            (75, ">1 min 15 s ago<"),
            (120, ">2 min ago<"),
            (3599, ">59 min ago<"),
            (3660, ">1 h 1 min ago<"),
            (90_000, ">1 d 1 h ago<"),
            (-30, ">in 30 s<"),
        ] {
            assert!(at(seconds).contains(words), "{}", at(seconds));
        }
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_nothing_is_markup() {
        assert_eq!(with_code("`a` is <b> and `c`"), "<code>a</code> is &lt;b&gt; and <code>c</code>");
        assert_eq!(with_code("a ` b"), "a ` b");
        assert_eq!(with_code("`<x>` and `y"), "<code>&lt;x&gt;</code> and `y");
    }

    #[test]
    fn numbers_have_their_thousands_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1\u{202f}000"), (1_234_567, "1\u{202f}234\u{202f}567")] {
            assert_eq!(Count(number).to_string(), text);
        }
    }
}
