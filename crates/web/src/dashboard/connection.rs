//! One connection, channel or service: how it stands, what its settings say, and its end. It must not know what any setting means.

use askama::Template;
use axum::response::Response;
use http::Method;
use postrider_core::access::Scope;
use postrider_core::connection::{ConnectionKind, Family};
use postrider_core::settings::keys_of;
use serde_json::Value;

use super::answer::redirect;
use super::connections::{Connection, Pulses, api, found, page};
use super::families::{Words, kind_label, page_of, parsed, words};
use super::fault::Fault;
use super::fields::field_of;
use super::form::Form;
use super::frame::Frame;
use super::parts::{Count, Moment};
use super::question::{Question, ask};
use super::schedule;
use super::visit::{Visit, segment, show};

#[derive(Template)]
#[template(path = "connection.html")]
struct ConnectionPage {
    frame: Frame,
    connection: Connection,
    words: Words,
    kind: String,
    page: String,
    spark: String,
    last_error: Option<(Moment, String, String)>,
    settings: Vec<(String, String)>,
    on_failure: String,
    oldest: Option<Moment>,
    /// Of a channel: its service with the page of it, where that is configured here.
    runs: Option<(String, String)>,
    /// Of a channel over HTTP: a command that calls it.
    call: String,
    /// Whether something can be dialled, and whether somebody can send to it by hand.
    may_ping: bool,
    may_send: bool,
    may_operate: bool,
    may_change: bool,
}

impl ConnectionPage {
    fn warnings(&self) -> Vec<String> {
        let texts = self.connection.warnings.iter().filter_map(Value::as_str);
        texts.map(|text| super::parts::with_code(&super::fault::sentence(text))).collect()
    }
}

pub async fn one(visit: Visit) -> Result<Response, Fault> {
    let kind = parsed(visit.segments.get("kind"))?;
    if kind == ConnectionKind::Webhook {
        let name = segment(visit.segments.get("name")).to_string();
        return Ok(redirect(&visit.page_of_project(format!("/endpoints?connection={name}"))));
    }
    let (all, connection) = found(&visit).await?;
    let pulses = Pulses::of(&visit).await?;
    let shown = keys_of(kind).filter_map(|doc| {
        let value = all.get(doc.name)?;
        Some((super::labels::label_of(doc.name), field_of(doc, &all).value)).filter(|_| !value.is_null())
    });
    let picture = schedule::of_settings(&visit, kind.as_str(), &all).await;
    let (now, words, family) = (visit.now(), words(kind.family()), kind.family());
    show(&ConnectionPage {
        frame: visit.frame(&connection.name, words.place).await?,
        kind: kind_label(kind.as_str()),
        page: page(&visit, ""),
        spark: pulses.spark(&connection.kind, &connection.name),
        last_error: pulses.last_error(&connection.kind, &connection.name, now),
        settings: shown.collect(),
        on_failure: picture.sentence(),
        oldest: connection.state.oldest_waiting_since.map(|at| Moment { at, now }),
        runs: runs(&visit, &connection, family).await,
        call: call(&connection, kind),
        may_ping: visit.may(Scope::Operate) && family != Family::Channel,
        may_send: visit.may(Scope::Send) && family == Family::Connection,
        may_operate: visit.may(Scope::Operate),
        may_change: visit.may(Scope::Admin),
        words,
        connection,
    })
}

/// What a channel runs, and where that is looked after; a service that is not there yet has no page.
async fn runs(visit: &Visit, channel: &Connection, family: Family) -> Option<(String, String)> {
    if family != Family::Channel {
        return None;
    }
    let service = channel.service.as_deref().filter(|service| !service.is_empty());
    let Some(service) = service else { return Some((channel.runs(), String::new())) };
    let known: Result<Value, _> = visit.api.get(&visit.of_project(format!("/services/{}", segment(service)))).await;
    let href = match known {
        Ok(known) if known["configured"] != false => {
            visit.page_of_project(page_of(ConnectionKind::Service.as_str(), service, ""))
        }
        Ok(_) => visit.page_of_project("/services"),
        Err(_) => return Some((format!("{service} (no service of this name is there yet)"), String::new())),
    };
    Some((service.to_owned(), href))
}

/// What somebody at a shell would type to call it.
fn call(channel: &Connection, kind: ConnectionKind) -> String {
    let path = channel.url_path.as_deref().unwrap_or_default();
    match kind {
        ConnectionKind::ChannelRest => {
            let method = channel.target().split(' ').next().unwrap_or_default().to_owned();
            let method = if method.is_empty() || method.starts_with('/') { "POST".to_owned() } else { method };
            format!("curl -X {method} --data-binary @request.json http://THIS-SERVER{path}")
        }
        ConnectionKind::ChannelSoap => format!("curl http://THIS-SERVER{path}?wsdl"),
        _ => String::new(),
    }
}

pub async fn ask_delete(visit: Visit) -> Result<Response, Fault> {
    let family = parsed(visit.segments.get("kind"))?.family();
    let (_, connection) = found(&visit).await?;
    let frame = visit.frame("Delete", words(family).place).await?;
    let Connection { name, state, .. } = &connection;
    let follows = match family {
        Family::Connection => "Nobody can send to it any more, and subscriptions that push to it end.",
        Family::Channel => {
            "Requests at its address are no longer accepted: their callers are told that nothing is there."
        }
        Family::Service => "Channels that run it fail from now on, until another service of this name is there.",
    };
    let mut facts = vec![follows.to_owned()];
    let force = state.waiting + state.dead > 0;
    if force {
        facts.push(format!(
            "{} waiting and {} dead letters are given up: they stay in the delivery log and are never sent.",
            state.waiting, state.dead
        ));
    }
    let title = format!("Delete {name}?");
    let button = if force { "Delete it and give up what is in it" } else { "Delete it" };
    let fields = [("force", if force { "true" } else { "false" })];
    let (action, back) = (page(&visit, "/delete"), page(&visit, ""));
    ask(frame, Question { title: &title, facts: &facts, action: &action, fields: &fields, button, back: &back })
}

pub async fn delete(visit: Visit, form: Form) -> Result<Response, Fault> {
    let family = parsed(visit.segments.get("kind"))?.family();
    let force = if form.is_on("force") { "force=true" } else { "" };
    match visit.api.ask::<Value>(Method::DELETE, &api(&visit, "", force), None).await {
        Ok(_) => {
            let list = visit.page_of_project(format!("/{}", words(family).place));
            Ok(visit.done(&list, format!("{} is deleted.", visit.segments.get("name"))))
        }
        Err(refused) => Ok(visit.refused(&page(&visit, ""), refused)),
    }
}
