//! Which deliveries are meant, as a query string of a list or as the `filter` of a job: the same names, the same values.
//!
//! It must not know what is done with them.

use postrider_core::delivery::{Label, Origin, Status};
use postrider_core::id::{ConnectionId, EndpointId, ProjectId};
use postrider_core::message::Method;
use postrider_core::{Failure, Timestamp};
use postrider_engine::ConnectionRef;
use postrider_store::{CountColumn, CountRange, DeliveryFilter, TimeColumn, TimeRange};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::AppState;
use crate::problem::{Problem, clipped};
use crate::read::{Query, object_pairs};

/// Longer texts match nothing.
pub(super) const TEXT_BYTES_MAX: usize = 1000;
/// Values that one name of a filter may have, such as statuses.
pub(super) const VALUES_MAX: usize = 100;

pub(super) const TIMES: [(&str, TimeColumn); 5] = [
    ("last_attempt", TimeColumn::LastAttempt),
    ("next_attempt", TimeColumn::NextAttempt),
    ("delivered", TimeColumn::Delivered),
    ("dead", TimeColumn::Dead),
    ("ended", TimeColumn::Ended),
];
pub(super) const COUNTS: [(&str, CountColumn); 4] = [
    ("attempts", CountColumn::Attempts),
    ("rounds", CountColumn::Rounds),
    ("body_bytes", CountColumn::BodyBytes),
    ("dlq_retries", CountColumn::DlqRetries),
];

/// Takes every parameter of a filter out of the query; the others are left.
pub async fn of_query(state: &AppState, project: ProjectId, query: &mut Query) -> Result<DeliveryFilter, Problem> {
    let mut filter = DeliveryFilter { project_id: Some(project), ..DeliveryFilter::default() };
    if let Some(name) = query.take("connection") {
        let connection = ConnectionRef { name, kind: query.kind()? };
        filter.connection_id = Some(state.engine.connection(project, &connection).await?.id);
    }
    for given in query.take_all("status") {
        let allowed = || Status::ALL.map(Status::as_str).join(", ");
        let unknown = || Problem::bad_request("status", format!("`{}` is not a status", clipped(&given)), allowed());
        filter.statuses.push(Status::parse(&given).ok_or_else(unknown)?);
    }
    filter.label = word(query, "label", "a label", Label::parse, &Label::ALL.map(Label::as_str))?;
    if let Some(label) = filter.label
        && filter.statuses.is_empty()
    {
        // An index answers for the statuses.
        filter.statuses = label.statuses().to_vec();
    }
    filter.failure = word(query, "error", "a failure code", Failure::parse, &Failure::ALL.map(Failure::as_str))?;
    filter.origin = word(query, "origin", "an origin", Origin::parse, &Origin::ALL.map(Origin::as_str))?;
    filter.id = match text(query, "id")? {
        None => None,
        Some(given) => Some(given.parse().map_err(|error: postrider_core::id::IdError| {
            Problem::bad_request("id", error.to_string(), "a delivery's id (msg_…)")
        })?),
    };
    filter.method = match text(query, "method")? {
        None => None,
        Some(given) => {
            let method = given
                .parse::<Method>()
                .map_err(|error| Problem::bad_request("method", error.to_string(), "an HTTP method such as POST"))?;
            Some(method.as_str().to_owned())
        }
    };
    filter.cid = text(query, "cid")?;
    filter.event_type = text(query, "event_type")?;
    filter.event_id = match text(query, "event_id")? {
        None => None,
        Some(given) => Some(given.parse().map_err(|error: postrider_core::id::IdError| {
            Problem::bad_request("event_id", error.to_string(), "an event's id (evt_…)")
        })?),
    };
    filter.subscription_id = match text(query, "subscription")? {
        None => None,
        Some(given) => Some(given.parse().map_err(|error: postrider_core::id::IdError| {
            Problem::bad_request("subscription", error.to_string(), "a subscription's id (sub_…)")
        })?),
    };
    if let Some(given) = text(query, "endpoint")? {
        filter.connection_id = Some(endpoint(state, project, &given)?);
    }
    filter.path = text(query, "path")?;
    filter.error_text = text(query, "error_text")?;
    if filter.error_text.is_some() {
        // Whoever may not see it may not search it either.
        state.check_sees_bodies()?;
    }
    filter.edited = match query.has("edited") {
        true => Some(query.flag("edited")?),
        false => None,
    };
    (filter.created_from, filter.created_before) = times(query, "created")?;
    for (name, column) in TIMES {
        let (from, before) = times(query, name)?;
        if from.is_some() || before.is_some() {
            filter.times.push(TimeRange { column, from, before });
        }
    }
    for (name, column) in COUNTS {
        let (min, max) = (number(query, &format!("{name}_min"))?, number(query, &format!("{name}_max"))?);
        if min.is_some() || max.is_some() {
            filter.counts.push(CountRange { column, min, max });
        }
    }
    Ok(filter)
}

fn endpoint(state: &AppState, project: ProjectId, given: &str) -> Result<ConnectionId, Problem> {
    let id = given
        .parse::<EndpointId>()
        .map_err(|error| Problem::bad_request("endpoint", error.to_string(), "an endpoint's id (ep_…)"))?;
    Ok(state.engine.endpoint(project, id)?.id)
}

/// The same from a JSON object; a refusal names `filter.NAME`.
pub async fn of_json(state: &AppState, project: ProjectId, given: &RawValue) -> Result<DeliveryFilter, Problem> {
    let mut query = query_of(given)?;
    let filter = of_query(state, project, &mut query).await;
    let filter = filter.and_then(|filter| query.finish().map(|()| filter));
    filter.map_err(|problem| problem.within("filter"))
}

pub(super) fn query_of(given: &RawValue) -> Result<Query, Problem> {
    let allowed = "an object with the names of the list's filters";
    let pairs = object_pairs(given.get());
    let pairs = pairs.ok_or_else(|| Problem::field("filter", "`filter` is no object", allowed))?;
    let mut flat = Vec::new();
    for (name, value) in pairs {
        let field = format!("filter.{}", clipped(&name));
        let wrong = || Problem::field(field.clone(), format!("`{field}` is `{}`", clipped(value.get())), VALUES);
        let value: Value = serde_json::from_str(value.get()).map_err(|_| wrong())?;
        let values = match value {
            Value::Null => Vec::new(),
            Value::Array(values) if (1..=VALUES_MAX).contains(&values.len()) => values,
            Value::Array(_) => return Err(wrong()),
            value => vec![value],
        };
        for value in values {
            flat.push((name.clone(), plain(&value).ok_or_else(wrong)?));
        }
    }
    Ok(Query::of_pairs(flat))
}

const VALUES: &str = "a text, a number, true or false, or a list of 1 to 100 of them";

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn text(query: &mut Query, name: &str) -> Result<Option<String>, Problem> {
    let given = query.take(name);
    match &given {
        Some(text) if text.len() > TEXT_BYTES_MAX || (text.is_empty() && name != "path") => {
            let allowed = format!("1 to {TEXT_BYTES_MAX} bytes");
            Err(Problem::bad_request(name, format!("`{name}` has {} bytes", text.len()), allowed))
        }
        _ => Ok(given),
    }
}

fn word<T>(
    query: &mut Query,
    name: &str,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
    allowed: &[&str],
) -> Result<Option<T>, Problem> {
    let Some(given) = query.take(name) else { return Ok(None) };
    let unknown = || Problem::bad_request(name, format!("`{}` is not {what}", clipped(&given)), allowed.join(", "));
    parse(&given).map(Some).ok_or_else(unknown)
}

type Range = (Option<Timestamp>, Option<Timestamp>);

fn times(query: &mut Query, name: &str) -> Result<Range, Problem> {
    let (from, before) = (query.time(&format!("{name}_from"))?, query.time(&format!("{name}_before"))?);
    if let (Some(from), Some(before)) = (from, before)
        && from >= before
    {
        let field = format!("{name}_before");
        let message = format!("`{field}` is {before}, which is not later than `{name}_from`");
        return Err(Problem::bad_request(field, message, format!("a time later than {from}")));
    }
    Ok((from, before))
}

fn number(query: &mut Query, name: &str) -> Result<Option<u64>, Problem> {
    let Some(given) = query.take(name) else { return Ok(None) };
    let allowed = "a whole number from 0 to 9007199254740991";
    let read = given.parse().ok().filter(|number| *number < 1 << 53);
    read.map(Some).ok_or_else(|| Problem::bad_request(name, format!("`{name}` is `{}`", clipped(&given)), allowed))
}

/// As it was given, without the project; the connection by its name.
pub fn shown(filter: &DeliveryFilter, connection: Option<&str>) -> Value {
    let mut object = Map::new();
    let mut add = |name: &str, value: Value| {
        if !value.is_null() {
            object.insert(name.to_owned(), value);
        }
    };
    add("connection", json!(connection));
    if connection.is_none() {
        add("connectionId", json!(filter.connection_id));
    }
    if !filter.statuses.is_empty() {
        add("status", json!(filter.statuses));
    }
    add("label", json!(filter.label.map(Label::as_str)));
    add("error", json!(filter.failure));
    add("error_text", json!(filter.error_text));
    add("id", json!(filter.id));
    add("cid", json!(filter.cid));
    add("event_type", json!(filter.event_type));
    add("event_id", json!(filter.event_id));
    add("subscription", json!(filter.subscription_id));
    add("origin", json!(filter.origin));
    add("method", json!(filter.method));
    add("path", json!(filter.path));
    add("edited", json!(filter.edited));
    add("created_from", json!(filter.created_from));
    add("created_before", json!(filter.created_before));
    for range in &filter.times {
        let name = TIMES.iter().find(|(_, column)| *column == range.column).map_or("", |(name, _)| name);
        add(&format!("{name}_from"), json!(range.from));
        add(&format!("{name}_before"), json!(range.before));
    }
    for range in &filter.counts {
        let name = COUNTS.iter().find(|(_, column)| *column == range.column).map_or("", |(name, _)| name);
        add(&format!("{name}_min"), json!(range.min));
        add(&format!("{name}_max"), json!(range.max));
    }
    Value::Object(object)
}
