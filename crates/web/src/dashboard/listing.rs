//! A list as a page: what can be made, a table, where it goes on, and what to do when there is nothing. It must not know what is listed.

use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;

use super::frame::Frame;
use super::parts::{Badge, Count, Moment, Paging, escaped};

/// One cell of a table.
pub enum Cell {
    Text(String),
    /// The second in small letters below the first.
    Two(String, String),
    Link {
        href: String,
        text: String,
        below: String,
    },
    Number(u64),
    /// A number that somebody should look at unless it is 0.
    Trouble(u64),
    Time(Option<Moment>),
    State(Badge),
    /// Markup of ours.
    Drawn(String),
    /// Each leads to a page that asks first.
    Acts(Vec<Act>),
}

pub struct Act {
    pub label: &'static str,
    /// Whose it is, for those who hear the page.
    pub of: String,
    pub href: String,
}

impl HtmlSafe for Cell {}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(&escaped(text)),
            Cell::Two(text, below) => write!(f, "{}<div class=\"muted clip\">{}</div>", escaped(text), escaped(below)),
            Cell::Link { href, text, below } => {
                write!(f, "<a href=\"{}\">{}</a>", escaped(href), escaped(text))?;
                if below.is_empty() { Ok(()) } else { write!(f, "<div class=\"muted clip\">{}</div>", escaped(below)) }
            }
            Cell::Number(number) => Count(*number).fmt(f),
            Cell::Trouble(0) => f.write_str("0"),
            Cell::Trouble(number) => write!(f, "<span class=\"is-bad\">{}</span>", Count(*number)),
            Cell::Time(moment) => moment.map_or(Ok(()), |moment| moment.fmt(f)),
            Cell::State(badge) => badge.fmt(f),
            Cell::Drawn(markup) => f.write_str(markup),
            Cell::Acts(acts) => acts.iter().try_for_each(|act| act.fmt(f)),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Act { label, of, href } = self;
        let (href, of) = (escaped(href), escaped(of));
        write!(f, "<a class=\"button small\" href=\"{href}\">{label}<span class=\"hidden\"> {of}</span></a> ")
    }
}

impl Cell {
    fn is_number(&self) -> bool {
        matches!(self, Cell::Number(_) | Cell::Trouble(_))
    }

    fn is_acts(&self) -> bool {
        matches!(self, Cell::Acts(_))
    }
}

/// A column: what stands above it, and whether it has numbers.
#[derive(Clone, Copy)]
pub struct Column {
    pub label: &'static str,
    pub is_number: bool,
}

pub const fn column(label: &'static str) -> Column {
    Column { label, is_number: false }
}

pub const fn numbers(label: &'static str) -> Column {
    Column { label, is_number: true }
}

/// A column of buttons, which has a name only for those who hear it.
pub const ACTS: Column = column("");

/// What there is to learn while there is nothing to list.
pub struct Empty {
    pub title: &'static str,
    pub text: &'static str,
    pub example: &'static str,
}

#[derive(Template)]
#[template(path = "listing.html")]
pub struct Listing {
    pub frame: Frame,
    pub title: String,
    pub intro: String,
    /// Buttons above the list.
    pub heads: Vec<(&'static str, String)>,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    pub paging: Paging,
    pub empty: Empty,
}
