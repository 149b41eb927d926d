//! One act over many deliveries, those ticked or all that a filter finds: asked about first with how many it is, then a job with its progress.
//!
//! It must not know how a job is worked off.

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::acts::{ForwardPage, topics};
use super::fault::Fault;
use super::filters::Filters;
use super::form::Form;
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};
use crate::read::Query;

/// What may be asked for, as the API's paths have it.
const ACTS: [(&str, &str); 5] = [
    ("retry", "retry"),
    ("resend", "resend"),
    ("discard", "discard"),
    ("set_aside", "set-aside"),
    ("forward", "forward"),
];

#[derive(Deserialize)]
struct Counted {
    matched: u64,
    complete: bool,
}

#[derive(Deserialize)]
struct Begun {
    id: String,
}

/// What a form of a list asks.
struct Wish<'f> {
    act: &'static str,
    path: String,
    /// Empty: by filter.
    ids: Vec<&'f str>,
    filter: &'f str,
    back: String,
}

impl<'f> Wish<'f> {
    fn read(visit: &Visit, form: &'f Form) -> Result<Wish<'f>, Fault> {
        let given = form.get("act").unwrap_or_default();
        let known = ACTS.iter().find(|(act, _)| *act == given);
        let Some((act, path)) = known else {
            return Err(Fault::new(StatusCode::BAD_REQUEST, "This form says nothing of what to do."));
        };
        let is_all = form.get("scope") == Some("all");
        Ok(Wish {
            act,
            path: visit.of_project(format!("/deliveries/{path}")),
            ids: if is_all { Vec::new() } else { form.all("id").collect() },
            filter: if is_all { form.get("filter").unwrap_or_default() } else { "" },
            back: form.way_back(&visit.page_of_project("/deliveries")),
        })
    }

    fn is_empty(&self, form: &Form) -> bool {
        form.get("scope") != Some("all") && self.ids.is_empty()
    }

    fn body(&self, is_all: bool) -> Value {
        if is_all {
            json!({"filter": Filters::take(&mut Query::parse(self.filter)).json()})
        } else {
            json!({"deliveryIds": self.ids})
        }
    }

    /// To be sent again, confirmed.
    fn fields(&self, is_all: bool) -> Vec<(&str, &str)> {
        let mut fields =
            vec![("act", self.act), ("confirmed", "true"), ("scope", if is_all { "all" } else { "ticked" })];
        if is_all {
            fields.push(("filter", self.filter));
        }
        fields.extend(self.ids.iter().map(|id| ("id", *id)));
        fields
    }
}

pub async fn begin(visit: Visit, form: Form) -> Result<Response, Fault> {
    if form.get("act") == Some("retry_forwards") {
        return retry_forwards(&visit, &form).await;
    }
    let wish = Wish::read(&visit, &form)?;
    let is_all = form.get("scope") == Some("all");
    if wish.is_empty(&form) {
        return Ok(visit.not_done(&wish.back, "Tick something first."));
    }
    let mut body = wish.body(is_all);
    if wish.act == "forward" {
        match form.text("topic") {
            None => return which_topic(&visit, &wish, is_all).await,
            Some(topic) => {
                body["topic"] = topic.into();
                body["keep_header"] = form.is_on("keep_header").into();
            }
        }
    }
    // A few ticked ones are meant; all that a filter finds, and what ends them, is asked about.
    let asks = (is_all || wish.act == "discard") && wish.act != "forward";
    if asks && form.get("confirmed").is_none() {
        return question(&visit, &wish, is_all, body).await;
    }
    match visit.api.post::<Begun>(&wish.path, &body).await {
        Ok(job) => Ok(super::answer::redirect(&format!(
            "{}?back={}",
            visit.page_of_project(format!("/jobs/{}", segment(&job.id))),
            segment(&wish.back)
        ))),
        Err(refused) => Ok(visit.refused(&wish.back, refused)),
    }
}

/// At most so many at once as the API takes; each is a new forward, so there is no job to watch.
async fn retry_forwards(visit: &Visit, form: &Form) -> Result<Response, Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Retried {
        retried: u64,
        requested: u64,
        #[serde(default)]
        has_more: bool,
    }
    let back = form.way_back(&visit.page_of_project("/failed-forwards"));
    let ids: Vec<&str> = form.all("id").collect();
    let body = if form.get("scope") == Some("all") {
        json!({"filter": Filters::take(&mut Query::parse(form.get("filter").unwrap_or_default())).json()})
    } else if ids.is_empty() {
        return Ok(visit.not_done(&back, "Tick something first."));
    } else {
        json!({"forwardIds": ids})
    };
    match visit.api.post::<Retried>(&visit.of_project("/incoming-dlq/retry"), &body).await {
        Ok(Retried { retried, requested, has_more }) => {
            let rest = if has_more { " There are more: do it again." } else { "" };
            let text = format!("{retried} of {requested} are on their way as new forwards.{rest}");
            Ok(if retried == requested { visit.done(&back, text) } else { visit.not_done(&back, text) })
        }
        Err(refused) => Ok(visit.refused(&back, refused)),
    }
}

async fn which_topic(visit: &Visit, wish: &Wish<'_>, is_all: bool) -> Result<Response, Fault> {
    let topics = topics(visit).await?;
    let frame = visit.frame("Forward", "failed").await?;
    let title = match wish.ids.len() {
        0 => "Forward all of them to a topic".to_owned(),
        1 => "Forward it to a topic".to_owned(),
        many => format!("Forward {many} to a topic"),
    };
    let action = visit.page_of_project("/bulk");
    show(&ForwardPage { frame, title, action, fields: wish.fields(is_all), topics, back: wish.back.clone() })
}

async fn question(visit: &Visit, wish: &Wish<'_>, is_all: bool, mut body: Value) -> Result<Response, Fault> {
    body["dry_run"] = true.into();
    let counted: Counted = visit.api.post(&wish.path, &body).await?;
    let number = if counted.complete { counted.matched.to_string() } else { format!("more than {}", counted.matched) };
    let noun = if number == "1" { "delivery" } else { "deliveries" };
    let (verb, fact) = match wish.act {
        "retry" => ("Retry", "Each goes back to its queue, in its order, under the same id."),
        "resend" => ("Resend", "Each is sent again under the same id; what was delivered arrives a second time."),
        "set_aside" => {
            ("Set aside", "Each goes to the dead-letter queue; a retry from there brings it back to the tail.")
        }
        _ => ("Discard", "None of them is sent any more. A resend from the delivery log brings them back for 30 days."),
    };
    let title = format!("{verb} {number} {noun}?");
    let facts = [
        fact.to_owned(),
        "It is about what is there now; what comes later is left alone. It goes on as a job that you can pause or cancel.".to_owned(),
    ];
    let frame = visit.frame(verb, "deliveries").await?;
    let (action, fields, button) = (visit.page_of_project("/bulk"), wish.fields(is_all), format!("{verb} {number}"));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &fields, button: &button, back: &wish.back },
    )
}
