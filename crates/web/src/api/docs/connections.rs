//! Of `connections`. Their keys are those of `docs/settings.md`.

use postrider_core::ack::AckCode;
use postrider_core::connection::ConnectionKind;
use serde_json::json;

use super::super::connections::OURS;
use super::{CONFLICT, FULL, names_a_connection};
use crate::openapi::{self, Member, Operation, Schema, Tag, always, optional, shapes, sometimes};

fn of_each_kind(schema: fn(ConnectionKind) -> Schema) -> Schema {
    Schema::either(ConnectionKind::CONNECTIONS.map(schema))
}

fn kind_word(kind: ConnectionKind) -> Schema {
    Schema::words([kind.as_str()])
}

/// What a request may carry beside `name`, `type` and the keys.
fn beside() -> Vec<Member> {
    let version =
        Schema::whole(0, u32::MAX.into()).describe("The version that is changed: 409 when it is another by now.");
    let ignored =
        OURS.map(|name| optional(name, Schema::any().describe("Part of an answer; passed over in a request.")));
    [optional("version", version)].into_iter().chain(ignored).collect()
}

pub(super) fn body(kind: ConnectionKind, first: impl IntoIterator<Item = Member>) -> Schema {
    let (passed_over, families) = openapi::passed_over(kind);
    let described = if kind == ConnectionKind::Soap { described().to_vec() } else { Vec::new() };
    let members =
        first.into_iter().chain(openapi::connection(kind)).chain(passed_over).chain(described).chain(beside());
    let closed = Schema::closed(members);
    match families {
        Some(families) => closed.with("patternProperties", families),
        None => closed,
    }
}

/// What fills the keys of a SOAP connection; it is not kept itself.
fn described() -> [Member; 3] {
    let text = || Schema::text().example(json!(null));
    [
        optional("wsdl", text().describe("A WSDL 1.1 as text: fills host, url_path, soap_version, namespace, element_form and operations where they are not given.")),
        optional("wsdl_imports", Schema::list(Schema::text()).example(json!([])).describe("The documents that it imports; nothing is fetched.")),
        optional("wsdl_port", text().describe("Which of its ports is meant, where several services are in it.")),
    ]
}

fn new_connection(kind: ConnectionKind) -> Schema {
    body(kind, [always("name", shapes::name()), always("type", kind_word(kind))]).named(nouns(kind)[1])
}

fn changed_connection(kind: ConnectionKind) -> Schema {
    let rename = shapes::name().describe("A new name renames, and keeps the queue.");
    let first = [optional("name", rename), optional("type", kind_word(kind))];
    body(kind, first).named(nouns(kind)[2])
}

/// What a kind is called in the document: as it is, new, and changed.
pub(super) const fn nouns(kind: ConnectionKind) -> [&'static str; 3] {
    match kind {
        ConnectionKind::Rest => ["RestConnection", "NewRestConnection", "RestConnectionChange"],
        ConnectionKind::Mllp => ["MllpConnection", "NewMllpConnection", "MllpConnectionChange"],
        ConnectionKind::Soap => ["SoapConnection", "NewSoapConnection", "SoapConnectionChange"],
        ConnectionKind::Fhir => ["FhirConnection", "NewFhirConnection", "FhirConnectionChange"],
        ConnectionKind::Webhook => ["WebhookConnection", "NewWebhookConnection", "WebhookConnectionChange"],
        ConnectionKind::ChannelRest => ["RestChannel", "NewRestChannel", "RestChannelChange"],
        ConnectionKind::ChannelSoap => ["SoapChannel", "NewSoapChannel", "SoapChannelChange"],
        ConnectionKind::ChannelMllp => ["MllpChannel", "NewMllpChannel", "MllpChannelChange"],
        ConnectionKind::Service => ["Service", "NewService", "ServiceChange"],
    }
}

fn connection(kind: ConnectionKind) -> Schema {
    let first = [always("name", shapes::name()), always("type", kind_word(kind))];
    Schema::object(first.into_iter().chain(openapi::connection(kind)).chain(ours()))
        .example(example(true))
        .named(nouns(kind)[0])
}

/// What an answer has beside the keys.
pub(super) fn ours() -> [Member; 6] {
    let state = Schema::object([
        always("paused", Schema::flag()),
        always("is_active", Schema::flag().example(true)),
        always("draining", Schema::flag().describe("The queue was turned off with a backlog.")),
        always("waiting", Schema::count()),
        always("dead", Schema::count()),
        always("oldestWaitingSince", shapes::time_or_null()),
        sometimes("listening", Schema::flag().describe("Of channels with a port of their own: whether this server listens there; if not, `warnings` says why.")),
        always(
            "blocked",
            Schema::words(AckCode::ALL.map(AckCode::as_str))
                .or_null()
                .example(json!(null))
                .describe("Over MLLP: the receiver has refused the head of the queue for good, with this code, and nothing moves."),
        ),
    ]);
    [
        always("id", shapes::connection_id()),
        always("version", Schema::count()),
        always("state", state.named("ConnectionState")),
        always("warnings", Schema::list(Schema::text()).example(json!([]))),
        always("createdAt", Schema::time()),
        always("updatedAt", Schema::time()),
    ]
}

fn example(answered: bool) -> serde_json::Value {
    let mut json = json!({
        "name": "Billing API", "type": "rest", "host": "https://billing.example.org", "url_path": "/invoices/{id}",
        "use_queue": true, "max_retries": 4
    });
    if answered {
        json["id"] = "con_01k3v9q8h4m2n6p7r0s5t1w2x3".into();
        json["version"] = 1.into();
        json["state"] = json!({
            "paused": false, "is_active": true, "draining": false, "waiting": 0, "dead": 0, "oldestWaitingSince": null,
            "blocked": null
        });
        json["warnings"] = json!([]);
        json["createdAt"] = "2026-03-12T12:05:34.730Z".into();
        json["updatedAt"] = "2026-03-12T12:05:34.730Z".into();
    }
    json
}

fn answer() -> Schema {
    of_each_kind(connection)
}

pub fn list() -> Operation {
    Operation::new(Tag::Connections, "listConnections", "All connections of a project")
        .pages()
        .sorts()
        .lists("A page, by name.", answer())
}

pub fn create() -> Operation {
    Operation::new(Tag::Connections, "createConnection", "Make a connection")
        .details("What is accepted and yet worth a word is in `warnings`.")
        .takes_such_as(of_each_kind(new_connection), example(false))
        .creates("The connection.", answer())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    names_a_connection(Operation::new(Tag::Connections, "getConnection", "A connection"))
        .gives("The connection and its state.", answer())
}

pub fn replace() -> Operation {
    let operation = Operation::new(Tag::Connections, "replaceConnection", "Set all keys of a connection anew");
    names_a_connection(operation)
        .details("Keys that are left out have their defaults.")
        .takes_such_as(of_each_kind(changed_connection), example(false))
        .gives("The connection.", answer())
        .refuses([FULL])
}

pub fn merge() -> Operation {
    names_a_connection(Operation::new(Tag::Connections, "changeConnection", "Change some keys of a connection"))
        .details("A merge patch (RFC 7396): what is given replaces, null removes, the rest stays.")
        .takes_such_as(of_each_kind(changed_connection), json!({"max_retries": 5}))
        .gives("The connection.", answer())
        .refuses([FULL])
}

pub fn delete() -> Operation {
    names_a_connection(Operation::new(Tag::Connections, "deleteConnection", "Delete a connection"))
        .query("force", Schema::flag(), "Also with requests that wait: they are discarded.")
        .empties("It is gone; what was delivered stays in the log.")
}

pub fn pause() -> Operation {
    names_a_connection(Operation::new(Tag::Connections, "pauseConnection", "Hold a connection's queue"))
        .details("Requests are still taken in.")
        .gives("The connection.", answer())
}

pub fn resume() -> Operation {
    names_a_connection(Operation::new(Tag::Connections, "resumeConnection", "Let a connection's queue go on"))
        .gives("The connection.", answer())
}
