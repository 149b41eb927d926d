//! The page between a button and what cannot be undone: what will happen, and whether it shall. It must not know what it asks about.

use askama::Template;
use axum::response::Response;

use super::fault::Fault;
use super::frame::Frame;
use super::visit::show;

/// A question with two answers: the form that does it, and the way back.
pub struct Question<'a> {
    /// `Discard msg_… ?`
    pub title: &'a str,
    /// What follows from it, each a sentence.
    pub facts: &'a [String],
    /// Where the form is sent.
    pub action: &'a str,
    /// What it carries along.
    pub fields: &'a [(&'a str, &'a str)],
    /// What the button says it does.
    pub button: &'a str,
    pub back: &'a str,
}

#[derive(Template)]
#[template(path = "question.html")]
struct QuestionPage<'a> {
    frame: Frame,
    question: Question<'a>,
}

pub fn ask(frame: Frame, question: Question<'_>) -> Result<Response, Fault> {
    show(&QuestionPage { frame, question })
}
