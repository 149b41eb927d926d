//! Paths of the router as paths of the document, and what their variable segments mean.

use serde_json::{Value, json};

use super::schema::{Components, Schema};
use super::shapes;

/// The segment before a variable one says what it names.
fn meaning(before: &str, name: &str) -> Option<(Schema, &'static str)> {
    Some(match (before, name) {
        ("projects", "project") => (shapes::name().example("default"), "The project, by its name or its id."),
        ("connections", "name") => (shapes::name(), "The connection, by its name."),
        ("channels", "name") => (shapes::name().example("Orders"), "The channel, by its name."),
        ("services", "name") => (shapes::name().example("orders.order-intake"), "The service, by its name."),
        ("security", "name") => (shapes::name().example("Billing login"), "The security definition, by its name."),
        ("endpoints", "endpoint") => (Schema::id("ep_"), "The endpoint, by its id."),
        ("subscriptions", "subscription") => (Schema::id("sub_"), "The subscription, by its id."),
        ("events", "event") => (Schema::id("evt_"), "The event, by its id."),
        ("subscriptions", "name") => (shapes::name().example("audit"), "The subscription, by its name."),
        ("topics", "topic") => (shapes::topic_name(), "The topic, by its name."),
        ("keys", "key") => (Schema::text().example("CI"), "The key, by its id or its name."),
        ("users", "user") => (Schema::text().example("ada@example.org"), "The user, by id or by name."),
        ("deliveries" | "dlq", "id") => (shapes::delivery_id(), "The delivery, by its id: the `msg_id` of a result."),
        ("jobs", "id") => (Schema::id("job_"), "The job, by its id."),
        ("sources", "source") => (shapes::name().example("GitHub"), "The source, by its name or its id."),
        ("destinations", "destination") => (Schema::id("dst_"), "The destination, by its id."),
        ("forwards" | "incoming-dlq", "id") => (Schema::id("fwd_"), "The forward, by its id."),
        ("ingress", "token") => {
            (Schema::text().example("in_Zm9yIHRoZSBkb2N1bWVudGF0aW9uIG9ubHkuLi4uLi4"), "The source's token.")
        }
        ("raw", "rest") => {
            (Schema::text().example("invoices/17"), "The path at the remote system; it may have slashes in it.")
        }
        _ => return None,
    })
}

/// `{*rest}` is `{rest}` in a document.
pub fn in_document(path: &str) -> String {
    path.replace("{*", "{")
}

/// The parameters that a path has. One that nobody has described is only named; a test finds it.
pub fn parameters(path: &str, components: &mut Components) -> Vec<Value> {
    let path = in_document(path);
    let segments: Vec<&str> = path.split('/').collect();
    let variable = |at: usize| segments.get(at)?.strip_prefix('{')?.strip_suffix('}');
    let mut parameters = Vec::new();
    for at in 1..segments.len() {
        let Some(name) = variable(at) else { continue };
        let known = meaning(segments[at - 1], name);
        let (schema, description) = known.unwrap_or_else(|| (Schema::text(), ""));
        parameters.push(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": description,
            "schema": schema.to_json(components),
            "example": schema.sample(),
        }));
    }
    parameters
}
