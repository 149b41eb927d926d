//! Tries a connection out: a ping, which sends no request of anybody's, and one request by hand. It must not know how anything is dialled.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::connections::{Connection, api, page};
use super::fault::{Fault, sentence};
use super::fields::{self, Field, Widget};
use super::form::Form;
use super::frame::Frame;
use super::visit::{Visit, show};

#[derive(Deserialize)]
struct Pinged {
    is_reachable: bool,
    address: Option<String>,
    status: Option<u16>,
    error: Option<String>,
    advice: Option<String>,
    stages: Vec<PingStage>,
}

#[derive(Deserialize)]
struct PingStage {
    #[serde(rename = "tookMs")]
    took_ms: f64,
}

/// Whether the remote system is there. No request of anybody's is sent.
pub async fn ping(visit: Visit, _: Form) -> Response {
    let back = page(&visit, "");
    let pinged = match visit.api.post::<Pinged>(&api(&visit, "/ping", ""), &json!({})).await {
        Ok(pinged) => pinged,
        Err(refused) => return visit.refused(&back, refused),
    };
    let advice = pinged.advice.map(|advice| format!(" {}", sentence(&advice))).unwrap_or_default();
    if !pinged.is_reachable {
        let why = pinged.error.unwrap_or_else(|| "no reason is known".to_owned());
        return visit.not_done(&back, format!("It cannot be reached: {why}.{advice}"));
    }
    let took: f64 = pinged.stages.iter().map(|stage| stage.took_ms).sum();
    let status = pinged.status.map(|status| format!(", answering {status}")).unwrap_or_default();
    let at = pinged.address.map(|address| format!(" at {address}")).unwrap_or_default();
    visit.done(&back, format!("It can be reached{at}{status}, in {took:.1} ms.{advice}"))
}

#[derive(Template)]
#[template(path = "send.html")]
struct SendPage {
    frame: Frame,
    name: String,
    page: String,
    fields: Vec<Field>,
    /// What became of the last one, as the API says it, and in a sentence.
    result: Option<(String, String)>,
    wrong: Option<String>,
}

fn send_fields(kind: &str) -> Vec<Field> {
    let methods = ["POST", "PUT", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS"];
    let methods = methods.map(|word| (word.to_owned(), word.to_owned())).to_vec();
    let body = Field::line("body", "Body", "Sent as it stands here.").shown_as(Widget::Lines);
    match kind {
        "rest" => vec![
            Field::line("method", "Method", "GET, HEAD and OPTIONS never wait in the queue.")
                .shown_as(Widget::Choice(methods)),
            Field::line("path", "Path", "Behind the path of the connection; it may be empty."),
            body,
        ],
        "soap" => vec![Field::line("operation", "Operation", "One of the service's operations."), body],
        _ => vec![body],
    }
}

pub async fn show_send(visit: Visit) -> Result<Response, Fault> {
    let connection: Connection = visit.api.get(&api(&visit, "", "")).await?;
    let frame = visit.frame("Send a request", "connections").await?;
    let fields = send_fields(&connection.kind);
    show(&SendPage { frame, name: connection.name, page: page(&visit, ""), fields, result: None, wrong: None })
}

/// One request by hand, as any other: it waits in the queue where the connection has one.
pub async fn send(visit: Visit, form: Form) -> Result<Response, Fault> {
    let connection: Connection = visit.api.get(&api(&visit, "", "")).await?;
    let mut fields = send_fields(&connection.kind);
    super::fields::typed(&mut fields, &form);
    let mut body = Map::new();
    for name in ["method", "path", "operation"] {
        if let Some(text) = form.text(name) {
            body.insert(name.to_owned(), text.into());
        }
    }
    if let Some(text) = form.get("body").filter(|text| !text.is_empty()) {
        body.insert("body".to_owned(), as_sent(&connection.kind, text).into());
    }
    let asked = visit.api.post::<Value>(&api(&visit, "/send", ""), &Value::Object(body)).await;
    let (result, wrong) = match asked {
        Ok(result) => {
            let text = serde_json::to_string_pretty(&result).unwrap_or_default();
            (Some((said(&result), text)), None)
        }
        Err(refused) => {
            let left = fields::refuse(&mut fields, &refused.errors);
            let is_shown = !refused.errors.is_empty() && left.is_empty();
            (None, (!is_shown).then(|| sentence(&refused.detail)))
        }
    };
    let frame = visit.frame("Send a request", "connections").await?;
    show(&SendPage { frame, name: connection.name, page: page(&visit, ""), fields, result, wrong })
}

/// Segments of HL7 end in a carriage return, which no text area keeps.
fn as_sent(kind: &str, text: &str) -> String {
    if kind == "mllp" { text.trim_end().replace('\n', "\r") + "\r" } else { text.to_owned() }
}

fn said(result: &Value) -> String {
    let is = |name: &str| result[name] == true;
    let error = result["error"].as_str().unwrap_or("no reason is known");
    match () {
        () if is("is_ok") => "Delivered.".to_owned(),
        () if is("is_in_queue") => "Not delivered yet: it waits in the queue.".to_owned(),
        () if is("is_in_dlq") => format!("Not delivered: it is in the dead-letter queue ({error})."),
        () => format!("Not delivered: {error}."),
    }
}
