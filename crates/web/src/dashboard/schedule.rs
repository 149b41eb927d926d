//! The schedule that settings give, as a picture: when each attempt would be made, drawn as somebody types. It must not know how it is computed.

use std::fmt;

use askama::filters::HtmlSafe;
use axum::response::Response;
use http::StatusCode;
use postrider_core::Wait;
use postrider_core::connection::ConnectionKind;
use postrider_core::settings::DELIVERY_KEYS;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::html;
use super::fault::Fault;
use super::fields;
use super::form::Posted;
use super::parts::{Span, escaped};
use super::visit::Visit;

/// Attempts that the list under the picture names; more are counted.
const NAMED: usize = 24;
const WIDTH: f64 = 720.0;
const MARGIN: f64 = 24.0;

#[derive(Clone, Debug, Deserialize)]
struct Planned {
    attempt: u32,
    wait_seconds: f64,
    wait_min_seconds: f64,
    wait_max_seconds: f64,
    after_first_seconds: f64,
    earliest_seconds: f64,
    latest_seconds: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Schedule {
    schedule: String,
    age_cap_seconds: Option<f64>,
    data: Vec<Planned>,
}

/// The schedule, or why there is none.
#[derive(Clone, Debug)]
pub struct Picture(Result<Schedule, String>);

impl HtmlSafe for Picture {}

/// Asks for the schedule of settings that may not be complete yet.
pub async fn of_settings(visit: &Visit, kind: &str, written: &Map<String, Value>) -> Picture {
    let of_delivery = written.iter().filter(|(name, _)| DELIVERY_KEYS.iter().any(|doc| doc.name == name.as_str()));
    let mut body: Map<String, Value> = of_delivery.map(|(name, value)| (name.clone(), value.clone())).collect();
    body.insert("type".to_owned(), kind.into());
    let path = visit.of_project("/schedule");
    match visit.api.post::<Schedule>(&path, &Value::Object(body)).await {
        Ok(schedule) => Picture(Ok(schedule)),
        Err(refused) => Picture(Err(super::fault::sentence(&refused.detail))),
    }
}

/// The fragment that the script fetches: `?type=` and the fields of the form.
pub async fn fragment(visit: Visit) -> Result<Response, Fault> {
    let posted = Posted::parse(visit.way.split_once('?').map_or("", |(_, query)| query).as_bytes());
    let kind = posted.get("type").unwrap_or_default();
    let Some(parsed) = ConnectionKind::parse(kind) else { return Err(super::fault::nothing_here()) };
    let written = fields::written(postrider_core::settings::keys_of(parsed), &posted);
    let picture = of_settings(&visit, kind, &written).await;
    let summary = picture.sentence();
    Ok(html(StatusCode::OK, format!("{picture}<p hidden data-on-failure>{}</p>", escaped(&summary))))
}

impl Picture {
    /// What happens on failure, in one line.
    pub fn sentence(&self) -> String {
        let Ok(schedule) = &self.0 else { return "cannot be read as it stands".to_owned() };
        let Some(last) = schedule.data.last() else { return "is tried once".to_owned() };
        let whole = span(last.after_first_seconds);
        match (last.attempt, schedule.schedule.as_str()) {
            (0 | 1, _) => "is not retried".to_owned(),
            (2, "backoff") => format!("is retried once, after {whole}"),
            (attempts, "backoff") => format!("is retried {} times within {whole}", attempts - 1),
            (attempts, _) => format!("is tried {attempts} times in all, the last after {whole}"),
        }
    }
}

fn span(seconds: f64) -> Span {
    Span(Wait::from_millis((seconds.max(0.0) * 1000.0).round() as u64))
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedule = match &self.0 {
            Ok(schedule) => schedule,
            Err(why) => return write!(f, "<p class=\"error\">{}</p>", escaped(why)),
        };
        draw(f, schedule)?;
        list(f, schedule)
    }
}

/// Attempts on a line of time. Ladders grow by powers, so their line does too.
fn draw(f: &mut fmt::Formatter<'_>, schedule: &Schedule) -> fmt::Result {
    let longest = schedule.data.last().map_or(0.0, |last| last.latest_seconds).max(1.0);
    let is_log = longest > 600.0;
    let place = |seconds: f64| {
        let part = if is_log { (1.0 + seconds).ln() / (1.0 + longest).ln() } else { seconds / longest };
        MARGIN + part * (WIDTH - 2.0 * MARGIN)
    };
    let attempts = schedule.data.len();
    write!(
        f,
        "<div class=\"scroll picture\" tabindex=\"0\" role=\"region\" aria-label=\"The attempts on a line of time\"><svg class=\"schedule\" viewBox=\"0 0 {WIDTH} 74\" role=\"img\" aria-label=\"{attempts} attempts\">"
    )?;
    write!(f, "<line class=\"wait\" x1=\"{MARGIN}\" y1=\"30\" x2=\"{}\" y2=\"30\"/>", WIDTH - MARGIN)?;
    let marks = [1.0, 10.0, 60.0, 600.0, 3600.0, 6.0 * 3600.0, 86_400.0, 3.0 * 86_400.0];
    let mut labelled = MARGIN - 100.0;
    for mark in marks.into_iter().filter(|mark| *mark <= longest) {
        let x = place(mark);
        if x - labelled >= 48.0 {
            labelled = x;
            write!(
                f,
                "<line class=\"tick\" x1=\"{x:.1}\" y1=\"44\" x2=\"{x:.1}\" y2=\"50\"/><text class=\"wait-label\" x=\"{x:.1}\" y=\"64\" text-anchor=\"middle\">{}</text>",
                span(mark)
            )?;
        }
    }
    for planned in &schedule.data {
        let x = place(planned.after_first_seconds);
        let (from, to) = (place(planned.earliest_seconds), place(planned.latest_seconds));
        if to - from > 2.0 {
            write!(f, "<line class=\"jitter\" x1=\"{from:.1}\" y1=\"30\" x2=\"{to:.1}\" y2=\"30\"/>")?;
        }
        write!(
            f,
            "<circle class=\"attempt\" cx=\"{x:.1}\" cy=\"30\" r=\"5\"><title>Attempt {}: {} after the first</title></circle>",
            planned.attempt,
            span(planned.after_first_seconds)
        )?;
    }
    f.write_str("</svg></div>")
}

fn list(f: &mut fmt::Formatter<'_>, schedule: &Schedule) -> fmt::Result {
    f.write_str("<ol class=\"attempts\">")?;
    for planned in schedule.data.iter().take(NAMED) {
        if planned.attempt == 1 {
            f.write_str("<li>at once</li>")?;
            continue;
        }
        let jitter = planned.wait_max_seconds - planned.wait_min_seconds;
        write!(f, "<li><span>+ {}", span(planned.wait_seconds))?;
        if jitter > 0.0 {
            write!(
                f,
                " <span class=\"muted\">({} to {})</span>",
                span(planned.wait_min_seconds),
                span(planned.wait_max_seconds)
            )?;
        }
        write!(f, "</span> <span class=\"muted\">{} after the first</span></li>", span(planned.after_first_seconds))?;
    }
    f.write_str("</ol>")?;
    let more = schedule.data.len().saturating_sub(NAMED);
    if more > 0 {
        write!(f, "<p class=\"muted\">and {more} more</p>")?;
    }
    match schedule.age_cap_seconds {
        Some(cap) => write!(f, "<p class=\"muted\">What is older than {} is given up on.</p>", span(cap)),
        None => Ok(()),
    }
}
