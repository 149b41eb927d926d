//! A form as a page: fields in tabs and groups, what was wrong in place, and for settings of a delivery the schedule that they give.
//!
//! It must not know what a form is for.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use super::answer::page_with;
use super::ask::{Refused, RefusedField};
use super::fault::{Fault, sentence};
use super::fields::{Field, refuse, typed};
use super::form::Posted;
use super::frame::Frame;
use super::schedule::Picture;

/// Fields that belong together. A folded one says in its line what is so.
pub struct Group {
    pub title: String,
    pub is_folded: bool,
    /// Behind the title of a folded one.
    pub summary: String,
    pub fields: Vec<Field>,
}

impl Group {
    pub fn open(title: &str, fields: Vec<Field>) -> Group {
        Group { title: title.to_owned(), is_folded: false, summary: String::new(), fields }
    }

    pub fn folded(title: &str, summary: String, fields: Vec<Field>) -> Group {
        Group { title: title.to_owned(), is_folded: true, summary, fields }
    }

    fn is_wrong(&self) -> bool {
        self.fields.iter().any(|field| field.error.is_some())
    }
}

pub struct Tab {
    pub id: &'static str,
    pub label: &'static str,
    pub groups: Vec<Group>,
}

impl Tab {
    fn is_wrong(&self) -> bool {
        self.groups.iter().any(Group::is_wrong)
    }
}

/// What the page shows beside its frame.
pub struct Sheet {
    pub title: String,
    /// A sentence above the fields.
    pub intro: String,
    pub action: String,
    pub back: String,
    pub button: &'static str,
    pub hidden: Vec<(&'static str, String)>,
    pub tabs: Vec<Tab>,
    /// What is wrong and belongs to no field.
    pub wrong: Vec<String>,
    /// A link to the question whether it shall go.
    pub end: Option<(&'static str, String)>,
    /// Where the schedule is drawn as somebody types, and how it is now.
    pub schedule: Option<(String, Picture)>,
}

impl Sheet {
    fn fields(&mut self) -> impl Iterator<Item = &mut Field> {
        self.tabs.iter_mut().flat_map(|tab| &mut tab.groups).flat_map(|group| &mut group.fields)
    }

    /// What somebody typed stays.
    #[must_use]
    pub fn with_typed(mut self, posted: &Posted) -> Sheet {
        for group in self.tabs.iter_mut().flat_map(|tab| &mut tab.groups) {
            typed(&mut group.fields, posted);
        }
        self
    }

    /// The API has refused it: shown again with what was typed and what was wrong. What is not about the form is a fault.
    pub fn refused(self, frame: Frame, posted: &Posted, refused: Refused) -> Result<Response, Fault> {
        let is_about_it = matches!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY
                | StatusCode::CONFLICT
                | StatusCode::BAD_REQUEST
                | StatusCode::PAYLOAD_TOO_LARGE
        );
        if !is_about_it {
            return Err(refused.into());
        }
        let mut sheet = self.with_typed(posted);
        let left = refuse(sheet.fields(), &refused.errors);
        sheet.wrong = if refused.errors.is_empty() {
            vec![sentence(&refused.detail)]
        } else {
            left.iter().map(|RefusedField { message, .. }| sentence(message)).collect()
        };
        sheet.show(frame, refused.status)
    }

    pub fn show(self, frame: Frame, status: StatusCode) -> Result<Response, Fault> {
        let first_wrong = self.tabs.iter().position(Tab::is_wrong).unwrap_or_default();
        let is_wrong = !self.wrong.is_empty() || self.tabs.iter().any(Tab::is_wrong);
        page_with(status, &SheetPage { frame, sheet: self, first_wrong, is_wrong })
    }
}

#[derive(Template)]
#[template(path = "sheet.html")]
struct SheetPage {
    frame: Frame,
    sheet: Sheet,
    /// The tab that is shown first.
    first_wrong: usize,
    is_wrong: bool,
}
