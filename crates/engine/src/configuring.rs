//! Connections as operators change them: written to the store first, then to the cache, then told to the runner and the sender.
//!
//! It must not know what a setting means.

use std::sync::Arc;

use postrider_core::connection::{Connection, ConnectionSpec, check_name};
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_store::{ConfigChange, StoreError};

use crate::engine::{ConnectionRef, NewConnection};
use crate::refusal::Refusal;
use crate::runner::ToRunner;
use crate::shared::Shared;

pub(crate) async fn create(
    shared: &Shared,
    project_id: ProjectId,
    new: NewConnection,
) -> Result<Arc<Connection>, Refusal> {
    let (name, spec) = validated(&new)?;
    let now = shared.now();
    let connection = Arc::new(Connection {
        id: ConnectionId::new(now, shared.dice.bits()),
        project_id,
        name,
        written: new.written,
        spec,
        paused: false,
        version: 1,
        created_at: now,
        updated_at: now,
    });
    shared.store.create_connection(&connection).await?;
    shared.connections.put(Arc::clone(&connection));
    Ok(connection)
}

pub(crate) async fn replace(
    shared: &Shared,
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
    let (name, spec) = validated(&new)?;
    write(shared, &known, |connection| {
        connection.name = name;
        connection.written = new.written;
        connection.spec = spec;
    })
    .await
}

pub(crate) async fn set_paused(
    shared: &Shared,
    project_id: ProjectId,
    wanted: &ConnectionRef,
    paused: bool,
) -> Result<Arc<Connection>, Refusal> {
    let known = shared.connections.find(project_id, wanted)?;
    if known.paused == paused {
        return Ok(known);
    }
    write(shared, &known, |connection| connection.paused = paused).await
}

pub(crate) async fn delete(
    shared: &Shared,
    project_id: ProjectId,
    wanted: &ConnectionRef,
    forced: bool,
) -> Result<(), Refusal> {
    let known = shared.connections.find(project_id, wanted)?;
    shared.store.delete_connection(known.id, forced, shared.now()).await.map_err(|error| named(error, &known))?;
    shared.connections.remove(known.id);
    tell(shared, known.id);
    Ok(())
}

/// Many changes at once, all of them or none, and then the cache, the runners and the sender learn of them.
pub(crate) async fn apply(shared: &Shared, batch: Vec<ConfigChange>) -> Result<(), Refusal> {
    shared.store.configure(batch.clone()).await?;
    let mut has_new_topics = false;
    for change in batch {
        match change {
            ConfigChange::CreateConnection(connection) => shared.connections.put(Arc::from(connection)),
            ConfigChange::ReplaceConnection { connection, .. } => {
                let id = connection.id;
                shared.connections.put(Arc::from(connection));
                tell(shared, id);
            }
            ConfigChange::CreateTopic(_) => has_new_topics = true,
            // Nobody keeps these in memory.
            ConfigChange::CreateProject(_)
            | ConfigChange::ReplaceTopic { .. }
            | ConfigChange::CreateSubscription(_)
            | ConfigChange::ReplaceSubscription { .. } => {}
        }
    }
    if has_new_topics {
        // Dead letters may wait for just these topics.
        for connection in shared.connections.all() {
            shared.sweeps.settings_changed(connection.id);
        }
    }
    Ok(())
}

fn validated(new: &NewConnection) -> Result<(String, ConnectionSpec), Refusal> {
    let name = check_name(&new.name);
    match (name, ConnectionSpec::parse(new.kind, &new.written)) {
        (Ok(()), Ok(spec)) => Ok((new.name.clone(), spec)),
        (Err(name), Ok(_)) => Err(Refusal::Invalid(vec![name])),
        (Ok(()), Err(errors)) => Err(Refusal::Invalid(errors)),
        (Err(name), Err(mut errors)) => {
            errors.insert(0, name);
            Err(Refusal::Invalid(errors))
        }
    }
}

/// `Conflict` when somebody else changed it meanwhile.
async fn write(
    shared: &Shared,
    known: &Connection,
    change: impl FnOnce(&mut Connection),
) -> Result<Arc<Connection>, Refusal> {
    let mut connection = known.clone();
    change(&mut connection);
    connection.version = known.version.saturating_add(1);
    connection.updated_at = shared.now();
    shared.store.replace_connection(&connection, known.version).await.map_err(|error| named(error, known))?;
    let connection = Arc::new(connection);
    shared.connections.put(Arc::clone(&connection));
    tell(shared, connection.id);
    Ok(connection)
}

fn tell(shared: &Shared, id: ConnectionId) {
    shared.sender.forget(id);
    shared.queues.tell(id, ToRunner::ConnectionChanged);
    shared.sweeps.settings_changed(id);
}

fn named(error: StoreError, connection: &Connection) -> Refusal {
    match error {
        StoreError::NotFound { what } => Refusal::NotFound { what, name: connection.name.clone() },
        other => other.into(),
    }
}
