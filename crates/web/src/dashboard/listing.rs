//! A list as a page: what can be made, a table, where it goes on, and what to do when there is nothing. It must not know what is listed.

use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;

use super::frame::Frame;
use super::order::Order;
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
    /// How many wait, and since when the oldest does.
    Waiting(u64, Option<Moment>),
    /// A number that somebody should look at unless it is 0.
    Trouble(u64),
    Time(Option<Moment>),
    State(Badge),
    /// What went wrong last, and when.
    Error(Option<(Moment, String, String)>),
    /// Markup of ours.
    Drawn(String),
    /// Links, and buttons for what needs no question.
    Acts(Vec<Act>),
}

pub struct Act {
    pub label: &'static str,
    /// Whose it is, for those who hear the page.
    pub of: String,
    pub href: String,
    /// A form that is sent there: its token, and where to come back to. `None`: a link.
    pub form: Option<(String, String)>,
}

impl Act {
    pub fn link(label: &'static str, of: impl Into<String>, href: String) -> Act {
        Act { label, of: of.into(), href, form: None }
    }

    /// Done at once.
    pub fn button(label: &'static str, of: impl Into<String>, href: String, frame: &Frame) -> Act {
        Act { label, of: of.into(), href, form: Some((frame.csrf.clone(), frame.way.clone())) }
    }
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
            Cell::Waiting(number, None) => Count(*number).fmt(f),
            Cell::Waiting(number, Some(oldest)) => {
                write!(f, "{}<div class=\"muted\">oldest {oldest}</div>", Count(*number))
            }
            Cell::Trouble(0) => f.write_str("0"),
            Cell::Trouble(number) => write!(f, "<span class=\"is-bad\">{}</span>", Count(*number)),
            Cell::Time(moment) => moment.map_or(Ok(()), |moment| moment.fmt(f)),
            Cell::State(badge) => badge.fmt(f),
            Cell::Error(None) => Ok(()),
            Cell::Error(Some((at, code, error))) => {
                let (code, error) = (escaped(code), escaped(error));
                write!(
                    f,
                    "<code>{code}</code> <span class=\"muted\">{at}</span><div class=\"muted clip clip-short\" title=\"{error}\">{error}</div>"
                )
            }
            Cell::Drawn(markup) => f.write_str(markup),
            Cell::Acts(acts) => acts.iter().try_for_each(|act| act.fmt(f)),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Act { label, of, href, form } = self;
        let (href, of) = (escaped(href), escaped(of));
        let Some((csrf, back)) = form else {
            return write!(
                f,
                "<a class=\"button small\" href=\"{href}\">{label}<span class=\"hidden\"> {of}</span></a> "
            );
        };
        let (csrf, back) = (escaped(csrf), escaped(back));
        write!(
            f,
            "<form method=\"post\" action=\"{href}\"><input type=\"hidden\" name=\"csrf\" value=\"{csrf}\"><input type=\"hidden\" name=\"back\" value=\"{back}\">\
             <button class=\"small\">{label}<span class=\"hidden\"> {of}</span></button></form> "
        )
    }
}

impl Cell {
    fn is_number(&self) -> bool {
        matches!(self, Cell::Number(_) | Cell::Trouble(_) | Cell::Waiting(..))
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
    /// What the API calls it, where the list can go by it.
    pub by: &'static str,
}

pub const fn column(label: &'static str) -> Column {
    Column { label, is_number: false, by: "" }
}

pub const fn numbers(label: &'static str) -> Column {
    Column { label, is_number: true, by: "" }
}

impl Column {
    /// The list can go by it.
    pub const fn by(self, by: &'static str) -> Column {
        Column { by, ..self }
    }
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
    /// What it goes by, where its columns can be chosen.
    pub order: Option<Order>,
    pub rows: Vec<Vec<Cell>>,
    pub paging: Paging,
    pub empty: Empty,
}

impl Listing {
    /// The head of a column: a link where the list can go by it.
    fn head(&self, column: &Column) -> String {
        let Column { label, is_number, by } = *column;
        let class = if is_number { " class=\"number\"" } else { "" };
        match &self.order {
            Some(order) if !by.is_empty() => {
                let said = order.said(by);
                let sorted = if said.is_empty() { String::new() } else { format!(" aria-sort=\"{said}\"") };
                let href = escaped(&order.link(by, is_number));
                format!("<th scope=\"col\"{class}{sorted}><a class=\"sort\" href=\"{href}\">{label}</a></th>")
            }
            _ if label.is_empty() => format!("<th scope=\"col\"{class}><span class=\"hidden\">Actions</span></th>"),
            _ => format!("<th scope=\"col\"{class}>{label}</th>"),
        }
    }
}
