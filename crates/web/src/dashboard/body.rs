//! A delivery's body: to look at, to download, and to edit with the difference shown before anything is stored (Z23).
//!
//! It comes from the API, which writes each look to the audit log first (D44). It must not know how a body is kept.

use askama::Template;
use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, StatusCode};
use postrider_core::access::Scope;
use serde_json::json;

use super::answer::page_with;
use super::ask::content;
use super::delivery::{Delivery, header_lines};
use super::fault::{Fault, sentence};
use super::form::Form;
use super::frame::Frame;
use super::visit::{Visit, segment, show};
use crate::body_view::{Kind, Limits, View, pretty, raw};
use crate::difference::{DifferentLine, Side, difference};
use crate::edit_text::{Ends, editable, restored};

pub fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// For a viewer who may see no bodies.
pub fn hidden() -> Fault {
    Fault::forbidden("Bodies are health data: a viewer sees none unless an owner allows it.")
}

/// A page's delivery and its address.
struct Of {
    delivery: Delivery,
    id: String,
}

impl Of {
    async fn visit(visit: &Visit) -> Result<Of, Fault> {
        let id = segment(visit.segments.get("delivery")).to_string();
        let delivery = visit.api.get(&visit.of_project(format!("/deliveries/{id}"))).await?;
        Ok(Of { delivery, id })
    }

    fn way(&self, visit: &Visit, rest: &str) -> String {
        visit.page_of_project(format!("/deliveries/{}{rest}", self.id))
    }

    /// The look is in the audit log before the bytes are here.
    async fn bytes(&self, visit: &Visit, original: bool) -> Result<Bytes, Fault> {
        let path = visit.of_project(format!("/deliveries/{}/body?original={original}", self.id));
        Ok(content(visit.api.send(Method::GET, &path, None).await?).await?)
    }

    fn kind(&self, bytes: &[u8]) -> Kind {
        let said = self.delivery.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        Kind::of(said.and_then(|(_, value)| value.as_str()), bytes)
    }
}

#[derive(Template)]
#[template(path = "body.html")]
struct BodyPage {
    frame: Frame,
    delivery: Delivery,
    way: String,
    view: View,
    is_raw: bool,
    is_original: bool,
    is_all: bool,
    may_edit: bool,
    bytes: usize,
}

impl BodyPage {
    /// The same page with one thing otherwise.
    fn link(&self, is_raw: bool, is_original: bool, is_all: bool) -> String {
        let shape = if is_raw { "raw" } else { "pretty" };
        format!("{}/body?as={shape}&original={is_original}&all={is_all}", self.way)
    }

    fn headers(&self) -> Vec<(String, String)> {
        header_lines(&self.delivery.headers)
    }
}

/// `?as=pretty|raw&original=&all=`
pub async fn page(mut visit: Visit) -> Result<Response, Fault> {
    let is_raw = visit.query.take("as").as_deref() == Some("raw");
    let is_original = visit.query.take("original").as_deref() == Some("true");
    let is_all = visit.query.take("all").as_deref() == Some("true");
    if !visit.session.caller.sees_bodies() {
        return Err(hidden());
    }
    let of = Of::visit(&visit).await?;
    let bytes = of.bytes(&visit, is_original).await?;
    let kind = of.kind(&bytes);
    let limits = if is_all { Limits::MORE } else { Limits::FIRST };
    let view = if is_raw { raw(kind, &bytes, limits) } else { pretty(kind, &bytes, limits) };
    let frame = visit.frame("Body", "deliveries").await?;
    show(&BodyPage {
        frame,
        way: of.way(&visit, ""),
        view,
        is_raw,
        is_original,
        is_all,
        may_edit: visit.may(Scope::Operate) && (of.delivery.is_waiting() || of.delivery.is_dead()),
        bytes: bytes.len(),
        delivery: of.delivery,
    })
}

/// As the API gives it: an attachment that no browser runs or guesses at.
pub async fn download(mut visit: Visit) -> Result<Response, Fault> {
    let original = visit.query.take("original").as_deref() == Some("true");
    if !visit.session.caller.sees_bodies() {
        return Err(hidden());
    }
    let id = segment(visit.segments.get("delivery")).to_string();
    let path = visit.of_project(format!("/deliveries/{id}/body?original={original}"));
    let answer = visit.api.send(Method::GET, &path, None).await?;
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(Body::new(body));
    for name in [http::header::CONTENT_TYPE, http::header::CONTENT_DISPOSITION] {
        if let Some(value) = parts.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

#[derive(Template)]
#[template(path = "edit.html")]
struct EditPage<'a> {
    frame: Frame,
    delivery: &'a Delivery,
    way: String,
    text: String,
    wrong: Option<String>,
}

#[derive(Template)]
#[template(path = "review.html")]
struct ReviewPage<'a> {
    frame: Frame,
    delivery: &'a Delivery,
    way: String,
    text: String,
    hunks: Vec<Vec<ShownLine>>,
    remark: Option<String>,
}

/// A line of a difference as it is shown.
struct ShownLine {
    sign: &'static str,
    class: &'static str,
    old: String,
    new: String,
    view: View,
}

fn shown(line: &DifferentLine<'_>) -> ShownLine {
    let (sign, class) = match line.side {
        Side::Same => (" ", "same"),
        Side::Out => ("−", "out"),
        Side::In => ("+", "in"),
    };
    let number = |at: Option<usize>| at.map(|at| at.to_string()).unwrap_or_default();
    ShownLine {
        sign,
        class,
        old: number(line.old),
        new: number(line.new),
        view: raw(Kind::Text, line.text.as_bytes(), Limits::FIRST),
    }
}

pub async fn edit(visit: Visit) -> Result<Response, Fault> {
    let of = Of::visit(&visit).await?;
    let bytes = of.bytes(&visit, false).await?;
    let (text, _) = read(&bytes)?;
    edit_page(&visit, &of, text, None).await
}

/// The text of a body and how its lines end, or why it cannot be edited here.
fn read(bytes: &[u8]) -> Result<(String, Ends), Fault> {
    editable(bytes).map_err(|why| {
        let text = format!("{why} Download it, edit it there, and hand it in: postrider dlq edit ID --body FILE.");
        Fault::new(StatusCode::CONFLICT, text)
    })
}

async fn edit_page(visit: &Visit, of: &Of, text: String, wrong: Option<String>) -> Result<Response, Fault> {
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let frame = visit.frame("Edit the body", "deliveries").await?;
    // A browser drops the first end of line of a text area.
    let text = format!("\n{text}");
    page_with(status, &EditPage { frame, delivery: &of.delivery, way: of.way(visit, ""), text, wrong })
}

/// First what would change, then, once that was looked at, the change.
pub async fn change(visit: Visit, form: Form) -> Result<Response, Fault> {
    let of = Of::visit(&visit).await?;
    let given = form.get("body").unwrap_or_default();
    match form.get("step") {
        Some("again") => edit_page(&visit, &of, given.to_owned(), None).await,
        Some(step @ ("save" | "save_and_send")) => save(&visit, &of, given, step == "save_and_send").await,
        _ => review(&visit, &of, given).await,
    }
}

async fn review(visit: &Visit, of: &Of, given: &str) -> Result<Response, Fault> {
    let bytes = of.bytes(visit, false).await?;
    let (text, _) = read(&bytes)?;
    if text == given {
        let wrong = "This is the body as it is: nothing is changed yet.".to_owned();
        return edit_page(visit, of, given.to_owned(), Some(wrong)).await;
    }
    let hunks = difference(&text, given).iter().map(|hunk| hunk.iter().map(shown).collect()).collect();
    let kind = of.kind(&bytes);
    // What was JSON or XML and is none any more is most likely a slip.
    let limits = Limits { lines_max: usize::MAX, ..Limits::FIRST };
    let was_fine = pretty(kind, &bytes, limits).remark.is_none();
    let remark = pretty(kind, given.as_bytes(), limits).remark.filter(|_| was_fine);
    let frame = visit.frame("Look at the change", "deliveries").await?;
    let text = format!("\n{given}");
    show(&ReviewPage { frame, delivery: &of.delivery, way: of.way(visit, ""), text, hunks, remark })
}

async fn save(visit: &Visit, of: &Of, given: &str, send: bool) -> Result<Response, Fault> {
    let (_, ends) = read(&of.bytes(visit, false).await?)?;
    let body = STANDARD.encode(restored(given, ends));
    let path = visit.of_project(format!("/deliveries/{}", of.id));
    let changed = visit.api.ask::<Delivery>(Method::PATCH, &path, Some(&json!({"body_base64": body}))).await;
    let delivery = match changed {
        Ok(delivery) => delivery,
        Err(refused) => return edit_page(visit, of, given.to_owned(), Some(sentence(&refused.detail))).await,
    };
    let page = of.way(visit, "");
    if !send {
        return Ok(visit.done(&page, "The body is changed. What was accepted is kept as the original."));
    }
    let verb = if delivery.is_dead() { "retry" } else { "attempt-now" };
    match visit.api.post::<Delivery>(&format!("{path}/{verb}"), &json!({})).await {
        Ok(_) => Ok(visit.done(&page, "The body is changed, and the delivery is on its way again.")),
        Err(refused) => {
            let text = format!("The body is changed, but it could not be sent: {}", sentence(&refused.detail));
            Ok(visit.not_done(&page, text))
        }
    }
}
