//! What a person does to one delivery, from its page or from a list. What cannot be undone asks first. It must not know what follows from an act.

use askama::Template;
use axum::response::Response;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::delivery::Delivery;
use super::fault::Fault;
use super::form::Form;
use super::frame::Frame;
use super::question::{Question, ask};
use super::visit::{Visit, segment, show};

fn id(visit: &Visit) -> String {
    segment(visit.segments.get("delivery")).to_string()
}

fn page(visit: &Visit) -> String {
    visit.page_of_project(format!("/deliveries/{}", id(visit)))
}

async fn act(visit: &Visit, back: &str, verb: &str, body: &Value, said: &str) -> Response {
    let path = visit.of_project(format!("/deliveries/{}/{verb}", id(visit)));
    match visit.api.post::<Value>(&path, body).await {
        Ok(_) => visit.done(back, said),
        Err(refused) => visit.refused(back, refused),
    }
}

pub async fn retry(visit: Visit, form: Form) -> Response {
    let back = form.way_back(&page(&visit));
    act(&visit, &back, "retry", &json!({}), "It is on its way again, under the same id and idempotency key.").await
}

/// What came in from outside is retried as a new forward, which has a page of its own.
pub async fn retry_forward(visit: Visit) -> Response {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct New {
        delivery_id: String,
    }
    let page = page(&visit);
    let forward = visit.segments.get("delivery").replacen("msg_", "fwd_", 1);
    let path = visit.of_project(format!("/incoming-dlq/{}/retry", segment(&forward)));
    match visit.api.post::<New>(&path, &json!({})).await {
        Ok(new) => {
            let page = visit.page_of_project(format!("/deliveries/{}", segment(&new.delivery_id)));
            visit.done(&page, "This is the new forward, to the same destination, from its first attempt on.")
        }
        Err(refused) => visit.refused(&page, refused),
    }
}

pub async fn attempt_now(visit: Visit, form: Form) -> Response {
    let back = form.way_back(&page(&visit));
    act(&visit, &back, "attempt-now", &json!({}), "It is attempted now, as soon as it is its turn.").await
}

pub async fn set_aside(visit: Visit, form: Form) -> Response {
    let back = form.way_back(&page(&visit));
    act(&visit, &back, "set-aside", &json!({}), "It is in the dead-letter queue now, and the queue goes on without it.")
        .await
}

pub async fn resend(visit: Visit, form: Form) -> Response {
    let back = form.way_back(&page(&visit));
    act(&visit, &back, "resend", &json!({}), "It is sent again under the same id, from the beginning of its schedule.")
        .await
}

pub async fn ask_resend(visit: Visit) -> Result<Response, Fault> {
    let delivery: Delivery = visit.api.get(&visit.of_project(format!("/deliveries/{}", id(&visit)))).await?;
    let mut facts =
        vec!["The same body is sent again under the same id; if it fails, the schedule begins anew.".to_owned()];
    if delivery.is_delivered() {
        facts.insert(0, "It was delivered: the remote system gets it a second time. One that knows the id drops it; one that does not acts twice.".to_owned());
    }
    let title = format!("Resend {}?", delivery.what());
    let frame = visit.frame("Resend", "deliveries").await?;
    let (action, back) = (format!("{}/resend", page(&visit)), page(&visit));
    ask(frame, Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Resend", back: &back })
}

pub async fn ask_discard(visit: Visit) -> Result<Response, Fault> {
    let delivery: Delivery = visit.api.get(&visit.of_project(format!("/deliveries/{}", id(&visit)))).await?;
    let name = delivery.connection.as_deref().unwrap_or("the remote system");
    let facts = [
        format!("{name} will not get it. Nothing sends it any more."),
        "It stays in the delivery log for 30 days after this, and a resend brings it back until then.".to_owned(),
    ];
    let title = format!("Discard {}?", delivery.what());
    let frame = visit.frame("Discard", "deliveries").await?;
    let (action, back) = (format!("{}/discard", page(&visit)), page(&visit));
    ask(
        frame,
        Question { title: &title, facts: &facts, action: &action, fields: &[], button: "Discard it", back: &back },
    )
}

pub async fn discard(visit: Visit) -> Response {
    let (path, page) = (visit.of_project(format!("/deliveries/{}", id(&visit))), page(&visit));
    match visit.api.ask::<Value>(Method::DELETE, &path, None).await {
        Ok(_) => visit.done(&page, "It is discarded. A resend brings it back as long as the log keeps it."),
        Err(refused) => visit.refused(&page, refused),
    }
}

#[derive(Deserialize)]
pub struct Topic {
    pub name: String,
}

#[derive(Deserialize)]
pub struct Topics {
    pub data: Vec<Topic>,
}

/// The form that asks for a topic; for one delivery, or for the many that `fields` say.
#[derive(Template)]
#[template(path = "forward.html")]
pub struct ForwardPage<'a> {
    pub frame: Frame,
    pub title: String,
    pub action: String,
    pub fields: Vec<(&'a str, &'a str)>,
    pub topics: Vec<Topic>,
    pub back: String,
}

pub async fn topics(visit: &Visit) -> Result<Vec<Topic>, Fault> {
    let topics: Topics = visit.api.get(&visit.of_project("/topics?limit=1000")).await?;
    Ok(topics.data)
}

pub async fn ask_forward(visit: Visit) -> Result<Response, Fault> {
    let delivery: Delivery = visit.api.get(&visit.of_project(format!("/deliveries/{}", id(&visit)))).await?;
    let title = format!("Forward {} to a topic", delivery.what());
    let topics = topics(&visit).await?;
    let frame = visit.frame("Forward", "deliveries").await?;
    let (action, back) = (format!("{}/forward", page(&visit)), page(&visit));
    show(&ForwardPage { frame, title, action, fields: Vec::new(), topics, back })
}

pub async fn forward(visit: Visit, form: Form) -> Response {
    let page = page(&visit);
    let body = json!({"topic": form.get("topic"), "keep_header": form.is_on("keep_header")});
    act(&visit, &page, "forward", &body, "It is published to the topic, and ended here.").await
}
