//! Connections as operators change them: written to the store first, then to the cache, then told to the runner and the sender.
//!
//! It must not know what a setting means.

use std::sync::Arc;

use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec, check_name};
use postrider_core::endpoint::Verification;
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::masking::masked_settings;
use postrider_core::settings::SettingError;
use postrider_store::{AuditEntry, Change, StoreError};
use serde_json::{Map, Value};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::endpointing;
use crate::engine::{ConnectionRef, NewConnection};
use crate::refusal::Refusal;
use crate::restoring;
use crate::runner::ToRunner;
use crate::securing;
use crate::shared::Shared;

pub(crate) async fn create(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    new: NewConnection,
) -> Result<Arc<Connection>, Refusal> {
    let id = ConnectionId::new(shared.now(), shared.dice.bits());
    let connection = made(shared, project_id, id, new).await?;
    let entry = entry(shared, actor, "connection.create", &connection).with_after(shown(&connection));
    let change = Change::CreateConnection(Box::new((*connection).clone()));
    shared.store.change(change, entry).await.map_err(|error| named(error, &connection))?;
    endpointing::complete(shared, &connection).await?;
    shared.connections.put(Arc::clone(&connection));
    Ok(connection)
}

/// A connection that may be stored: its settings are read, and it may be reached as far as can be told now.
pub(crate) async fn made(
    shared: &Shared,
    project_id: ProjectId,
    id: ConnectionId,
    new: NewConnection,
) -> Result<Arc<Connection>, Refusal> {
    let (name, spec) = validated(shared, project_id, &new)?;
    let now = shared.now();
    let connection = Arc::new(Connection {
        id,
        project_id,
        name,
        written: new.written,
        spec,
        paused: false,
        version: 1,
        created_at: now,
        updated_at: now,
    });
    check_reach(shared, &connection).await?;
    check_address(shared, &connection)?;
    Ok(connection)
}

/// D16: an address is one channel's.
fn check_address(shared: &Shared, connection: &Connection) -> Result<(), Refusal> {
    shared.connections.check_address(connection).map_err(|error| Refusal::Invalid(vec![error]))
}

/// R14: an endpoint's address is judged when it is saved too, so that its owner learns of it. What counts is the judgment at each connect.
pub(crate) async fn check_reach(shared: &Shared, connection: &Arc<Connection>) -> Result<(), Refusal> {
    let Some(target) = connection.spec.target.webhook() else { return Ok(()) };
    shared.sender.may_reach(connection).await.map_err(|why| {
        let allowed = format!("an address that may be reached: {why}");
        Refusal::Invalid(vec![SettingError::new("url", &target.url, allowed)])
    })
}

pub(crate) async fn replace(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    wanted: &ConnectionRef,
    new: NewConnection,
) -> Result<Arc<Connection>, Refusal> {
    let known = shared.connections.find(project_id, wanted)?;
    if known.kind() != new.kind {
        return Err(Refusal::Conflict(format!(
            "`{}` is of type `{}`, and that cannot change",
            known.name,
            known.kind().as_str()
        )));
    }
    let (name, spec) = validated(shared, project_id, &new)?;
    if name != known.name {
        check_unused(
            shared,
            &known,
            "renamed",
            "make a service of the other name, let them run that, and delete this one",
        )?;
    }
    write(shared, actor, "connection.replace", &known, |connection| {
        connection.name = name;
        connection.written = new.written;
        connection.spec = spec;
    })
    .await
}

pub(crate) async fn set_paused(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    wanted: &ConnectionRef,
    paused: bool,
) -> Result<Arc<Connection>, Refusal> {
    let known = shared.connections.find(project_id, wanted)?;
    if known.paused == paused {
        return Ok(known);
    }
    let action = if paused { "connection.pause" } else { "connection.resume" };
    let written = write(shared, actor, action, &known, |connection| connection.paused = paused).await?;
    if !paused {
        restoring::goes_on(shared, known.id).await;
    }
    Ok(written)
}

pub(crate) async fn delete(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    wanted: &ConnectionRef,
    forced: bool,
) -> Result<(), Refusal> {
    let known = shared.connections.find(project_id, wanted)?;
    if !forced {
        check_unused(
            shared,
            &known,
            "deleted",
            "let them run another one first; or force it, and their requests wait and fail",
        )?;
    }
    let entry = entry(shared, actor, "connection.delete", &known).with_before(shown(&known));
    let change = Change::DeleteConnection { id: known.id, forced, now: shared.now() };
    shared.store.change(change, entry).await.map_err(|error| named(error, &known))?;
    shared.connections.remove(known.id);
    shared.endpoints.remove(known.id);
    shared.subscriptions.remove_to(project_id, known.id);
    tell(shared, known.id);
    restoring::goes_on(shared, known.id).await;
    Ok(())
}

/// Channels name their service: without it they would go on accepting what nothing runs.
fn check_unused(shared: &Shared, known: &Connection, what: &str, instead: &str) -> Result<(), Refusal> {
    const NAMED_MAX: usize = 10;
    if known.kind() != ConnectionKind::Service {
        return Ok(());
    }
    let all = shared.connections.all();
    let runs_it = |channel: &&Arc<Connection>| {
        channel.project_id == known.project_id
            && channel.spec.target.channel().and_then(|target| target.service()) == Some(known.name.as_str())
    };
    let mut users: Vec<&str> = all.iter().filter(runs_it).map(|channel| channel.name.as_str()).collect();
    if users.is_empty() {
        return Ok(());
    }
    users.sort_unstable();
    let more = if users.len() > NAMED_MAX { ", …" } else { "" };
    let named = users.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let name = &known.name;
    Err(Refusal::Conflict(format!("the service `{name}` cannot be {what}: channels run it ({named}{more}); {instead}")))
}

fn validated(shared: &Shared, project_id: ProjectId, new: &NewConnection) -> Result<(String, ConnectionSpec), Refusal> {
    let name = check_name(&new.name);
    let spec = ConnectionSpec::parse(new.kind, &new.written).and_then(|spec| {
        securing::check_named(shared, project_id, new.kind, spec.security.as_deref()).map_err(|error| vec![error])?;
        postrider_wire::check_target(&spec.target).map_err(|error| vec![error])?;
        Ok(spec)
    });
    match (name, spec) {
        (Ok(()), Ok(spec)) => Ok((new.name.clone(), spec)),
        (Err(name), Ok(_)) => Err(Refusal::Invalid(vec![name])),
        (Ok(()), Err(errors)) => Err(Refusal::Invalid(errors)),
        (Err(name), Err(mut errors)) => {
            errors.insert(0, name);
            Err(Refusal::Invalid(errors))
        }
    }
}

/// The settings of a known connection with other values in some keys.
pub(crate) fn read_again(known: &Connection, written: &Map<String, Value>) -> Result<ConnectionSpec, Refusal> {
    ConnectionSpec::parse(known.kind(), written).map_err(Refusal::Invalid)
}

/// What changes of an endpoint's row together with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowChange {
    pub verification: Option<Verification>,
    /// It is on again, in this epoch from now on.
    pub switches_on: Option<u32>,
}

/// The same for an endpoint and its row, in one transaction. `Conflict` when somebody else changed it meanwhile.
pub(crate) async fn write_endpoint(
    shared: &Shared,
    actor: &Actor,
    action: &str,
    known: &Connection,
    row: RowChange,
    after: Value,
    change: impl FnOnce(&mut Connection),
) -> Result<Arc<Connection>, Refusal> {
    let connection = changed(shared, known, change);
    let entry = entry(shared, actor, action, known).with_after(after);
    let change = Change::ReplaceEndpoint {
        connection: Box::new((*connection).clone()),
        version: known.version,
        verification: row.verification,
        switches_on: row.switches_on.is_some(),
    };
    shared.store.change(change, entry).await.map_err(|error| named(error, known))?;
    // It is written: from here on nothing may fail, or what is known here is not what is stored.
    endpointing::row_changed(shared, known.id, row);
    shared.connections.put(Arc::clone(&connection));
    tell(shared, connection.id);
    Ok(connection)
}

/// `Conflict` when somebody else changed it meanwhile.
async fn write(
    shared: &Shared,
    actor: &Actor,
    action: &str,
    known: &Connection,
    change: impl FnOnce(&mut Connection),
) -> Result<Arc<Connection>, Refusal> {
    let connection = changed(shared, known, change);
    if connection.written != known.written {
        check_reach(shared, &connection).await?;
        check_address(shared, &connection)?;
    }
    let entry = entry(shared, actor, action, known).with_before(shown(known)).with_after(shown(&connection));
    let change = Change::ReplaceConnection { connection: Box::new((*connection).clone()), version: known.version };
    shared.store.change(change, entry).await.map_err(|error| named(error, known))?;
    shared.connections.put(Arc::clone(&connection));
    tell(shared, connection.id);
    Ok(connection)
}

/// The next version of it.
fn changed(shared: &Shared, known: &Connection, change: impl FnOnce(&mut Connection)) -> Arc<Connection> {
    let mut connection = known.clone();
    change(&mut connection);
    connection.version = known.version.saturating_add(1);
    connection.updated_at = shared.now();
    Arc::new(connection)
}

pub(crate) fn entry(shared: &Shared, actor: &Actor, action: &str, connection: &Connection) -> AuditEntry {
    shared.audit_entry(actor, Some(connection.project_id), action).about(connection.id, &connection.name)
}

/// As the audit log keeps it: what was written, secrets masked.
pub(crate) fn shown(connection: &Connection) -> Value {
    let mut shown = masked_settings(&connection.written);
    shown.insert("name".to_owned(), connection.name.clone().into());
    shown.insert("type".to_owned(), connection.kind().as_str().into());
    shown.insert("paused".to_owned(), connection.paused.into());
    Value::Object(shown)
}

pub(crate) fn tell(shared: &Shared, id: ConnectionId) {
    shared.sender.forget(id);
    shared.queues.tell(id, ToRunner::ConnectionChanged);
    shared.sweeps.settings_changed(id);
}

pub(crate) fn named(error: StoreError, connection: &Connection) -> Refusal {
    match (error, &connection.spec.security) {
        // It was deleted while this was under way.
        (StoreError::NotFound { what: what @ "security definition" }, Some(security)) => {
            Refusal::NotFound { what, name: security.clone() }
        }
        (StoreError::NotFound { what }, _) => Refusal::NotFound { what, name: connection.name.clone() },
        (other, _) => other.into(),
    }
}
