//! `/projects/{project}/subscriptions`: which events, or messages of topics, are sent where.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::connection::ConnectionKind;
use postrider_core::id::{ConnectionId, EndpointId, ProjectId, SubscriptionId};
use postrider_core::schedule::LadderTerms;
use postrider_core::subscription::PushSubscription;
use postrider_engine::{ConnectionRef, NewSubscription};
use serde_json::{Map, Value, json};

use super::{Acting, AppState, Input, camel, held, json_response, list_response, merge, ok};
use crate::problem::{Problem, clipped};
use crate::read::{Fields, Query, Segments};

/// Members of our answers that say nothing new when they come back in a request.
pub(super) const OURS: [&str; 6] = ["id", "connectionId", "policy", "warnings", "createdAt", "updatedAt"];

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    let endpoint = match query.take("endpointId") {
        Some(text) => Some(
            endpoint_id(&text).map_err(|(message, allowed)| Problem::bad_request("endpointId", message, allowed))?,
        ),
        None => None,
    };
    query.finish()?;
    let mut all = state.engine.push_subscriptions(project);
    all.retain(|known| endpoint.is_none_or(|id| known.connection_id == id.connection()));
    let (shown, next) = held::page(all, &page, |known| known.id)?;
    Ok(list_response(shown.iter().map(|known| subscription_json(&state, known)).collect(), next))
}

pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let name = input.fields.text("name");
    let target = target(&state, project, &mut input.fields).await?;
    let target = input.fields.required("endpointId", target);
    let written = camel::keys(&mut input.fields);
    input.fields.finish(&[])?;
    let Some(connection) = target else {
        return Err(Problem::field("endpointId", "`endpointId` is missing", "an endpoint's id"));
    };
    let written = written.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let made = state.engine.subscribe_push(project, NewSubscription { name, connection, written }).await;
    let made = made.map_err(camel::problem)?;
    Ok(json_response(StatusCode::CREATED, &subscription_json(&state, &made)))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, query).await?;
    Ok(ok(&subscription_json(&state, &known)))
}

/// All keys anew.
pub async fn replace(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let mut new = changed(&state, project, input.fields, &known).await?;
    new.written.retain(|_, value| !value.is_null());
    store(&state, project, &known, new).await
}

/// A merge patch, RFC 7396: what is given replaces, null removes, the rest stays.
pub async fn change(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let new = changed(&state, project, input.fields, &known).await?;
    let merged = merge::patched(&known.written, new.written);
    store(&state, project, &known, NewSubscription { written: merged, ..new }).await
}

pub async fn delete(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    state.engine.unsubscribe_push(project, known.id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn found(
    state: &AppState,
    segments: &Segments,
    query: Query,
) -> Result<(ProjectId, Arc<PushSubscription>), Problem> {
    query.finish()?;
    let project = state.project(segments).await?;
    let id = segments.id::<SubscriptionId>("subscription", "subscription")?;
    Ok((project, state.engine.push_subscription(project, id)?))
}

async fn store(
    state: &AppState,
    project: ProjectId,
    known: &PushSubscription,
    new: NewSubscription,
) -> Result<Response, Problem> {
    let replaced = state.engine.replace_push_subscription(project, known.id, new).await.map_err(camel::problem)?;
    Ok(ok(&subscription_json(state, &replaced)))
}

/// `version`, if given, must be the stored one, so that nobody undoes another's change unseen.
async fn changed(
    state: &AppState,
    project: ProjectId,
    mut fields: Fields,
    known: &PushSubscription,
) -> Result<NewSubscription, Problem> {
    for ours in OURS {
        fields.take(ours);
    }
    let name = fields.text("name");
    let version = fields.number("version", 0..=u64::from(u32::MAX));
    let target = target(state, project, &mut fields).await?;
    let written = camel::keys(&mut fields);
    fields.finish(&[])?;
    if let Some(version) = version.filter(|version| u64::from(known.version) != *version) {
        let detail = format!("the subscription has version {} by now, not {version}: read it again", known.version);
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    Ok(NewSubscription { name, connection: target.unwrap_or(known.connection_id), written })
}

/// `endpointId`, or the name of any `connection` with its `type` where the name is ambiguous (D40).
pub(super) async fn target(
    state: &AppState,
    project: ProjectId,
    fields: &mut Fields,
) -> Result<Option<ConnectionId>, Problem> {
    let (endpoint, connection, kind) = (fields.text("endpointId"), fields.text("connection"), fields.text("type"));
    let kind = match kind {
        None => None,
        Some(given) => {
            let parsed = ConnectionKind::parse(&given);
            if parsed.is_none() {
                fields.refuse("type", format!("`type` is `{}`", clipped(&given)), ConnectionKind::ALLOWED);
            }
            parsed
        }
    };
    match (endpoint, connection) {
        (Some(text), _) => match endpoint_id(&text) {
            Ok(id) => Ok(Some(state.engine.endpoint(project, id)?.id)),
            Err((message, allowed)) => {
                fields.refuse("endpointId", message, allowed);
                Ok(None)
            }
        },
        (None, Some(name)) => Ok(Some(state.engine.connection(project, &ConnectionRef { name, kind }).await?.id)),
        (None, None) => Ok(None),
    }
}

fn endpoint_id(text: &str) -> Result<EndpointId, (String, &'static str)> {
    text.parse().map_err(|error: postrider_core::id::IdError| (error.to_string(), "an endpoint's id (ep_…)"))
}

/// What a delivery gets; a connection in rounds has none of it.
pub(super) fn policy_json(terms: Option<&LadderTerms>) -> Value {
    json!({
        "maxAttempts": terms.map(|terms| terms.ladder.max_attempts()),
        "retryDelays": terms.map(|terms| {
            terms.ladder.delays().iter().map(|delay| delay.as_secs_f64()).collect::<Vec<_>>()
        }),
        "retryableStatuses": terms.map(|terms| terms.retryable_statuses.as_str()),
        "timeoutSeconds": terms.map(|terms| terms.timeout.as_secs_f64()),
    })
}

fn subscription_json(state: &AppState, subscription: &PushSubscription) -> Value {
    let connection = state.engine.connections().into_iter().find(|known| known.id == subscription.connection_id);
    let mut object = Map::new();
    object.insert("id".into(), json!(subscription.id));
    object.insert("name".into(), subscription.name.clone().into());
    let endpoint = connection.as_ref().filter(|known| known.kind() == ConnectionKind::Webhook);
    object.insert("endpointId".into(), json!(endpoint.map(|known| EndpointId::of(known.id))));
    object.insert("connection".into(), json!(connection.as_ref().map(|known| &known.name)));
    object.insert("type".into(), json!(connection.as_ref().map(|known| known.kind())));
    object.extend(camel::members(&subscription.written));
    object.insert("enabled".into(), subscription.spec.enabled.into());
    object.insert("connectionId".into(), json!(subscription.connection_id));
    let policy = connection.as_ref().map(|known| &known.spec.policy);
    let keeps_order = connection.as_ref().is_some_and(|known| subscription.spec.keeps_order(&known.spec));
    object.insert("orderingEnabled".into(), keeps_order.into());
    let terms = policy.and_then(|policy| subscription.spec.terms(policy));
    object.insert("policy".into(), policy_json(terms.as_ref()));
    let warning = policy.and_then(|policy| subscription.spec.warning(policy));
    object.insert("warnings".into(), warning.into_iter().collect::<Vec<_>>().into());
    object.insert("version".into(), subscription.version.into());
    object.insert("createdAt".into(), json!(subscription.created_at));
    object.insert("updatedAt".into(), json!(subscription.updated_at));
    Value::Object(object)
}
