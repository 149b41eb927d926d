//! Who changed what, and who saw which body (P07, D44): the audit log, and the changes that are written together with their entry (law 2).
//!
//! Entries are only ever added, and removed by their own retention. It must not know who may do what.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::endpoint::Verification;
use postrider_core::id::{
    AuditId, ConnectionId, JobId, KeyId, ProjectId, SecurityId, SourceId, SubscriptionId, UserId,
};
use postrider_core::job::JobState;
use postrider_core::security::SecurityDefinition;
use postrider_core::subscription::PushSubscription;
use postrider_core::topic::TopicName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;
use crate::configure::ConfigChange;
use crate::credentials::ApiKey;
use crate::endpoints::{EndpointKeys, EndpointRow};
use crate::jobs::NewJob;
use crate::people::{NewUser, UserChange};
use crate::read::{Page, PageRequest};
use crate::records::*;
use crate::sources::SourceRow;

/// `audit_retention`: how long entries are kept unless an operator says otherwise.
pub const AUDIT_RETENTION: postrider_core::Wait = postrider_core::Wait::from_secs(365 * 24 * 3600);

#[async_trait]
pub trait AuditLog: Send + Sync {
    /// A change and its entry, both or neither; errors as those of the verb that makes the change alone.
    async fn change(&self, change: Change, entry: AuditEntry) -> Result<(), StoreError>;

    /// As `configure`, with entries for all of it in the same transaction.
    async fn configure_by_hand(&self, batch: Vec<ConfigChange>, entries: Vec<AuditEntry>) -> Result<(), StoreError>;

    /// A settlement by hand and its entry: the entry is written exactly when the answer is `Applied`.
    async fn settle_by_hand(&self, settlement: Settlement, entry: AuditEntry) -> Result<Settled, StoreError>;

    /// As `submit_command`. The entry waits with the command and is written in the transaction that answers it `Applied`.
    async fn submit_by_hand(&self, command: Command, entry: AuditEntry, now: Timestamp) -> Result<bool, StoreError>;

    /// Entries of what changes nothing in the store, such as a body that was seen; durable when this returns.
    async fn note(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError>;

    /// From the newest to the oldest.
    async fn audit_entries(&self, filter: &AuditFilter, page: PageRequest) -> Result<Page<AuditEntry>, StoreError>;

    /// Removes at most `rows_max` entries from before `before`, oldest first; how many went.
    async fn prune_audit(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError>;
}

/// A change that a person makes, as a value.
#[derive(Clone, Debug)]
pub enum Change {
    CreateProject(Project),
    /// Its name and settings; the id says which.
    ReplaceProject(Project),
    CreateConnection(Box<Connection>),
    /// If `version` is still the stored one.
    ReplaceConnection {
        connection: Box<Connection>,
        version: u32,
    },
    DeleteConnection {
        id: ConnectionId,
        forced: bool,
        now: Timestamp,
    },
    CreateTopic(Topic),
    DeleteTopic {
        project_id: ProjectId,
        name: TopicName,
    },
    CreateSubscription(PullSubscription),
    DeleteSubscription(SubscriptionId),
    /// `Full` with `keys_max`; `Conflict` when the name is taken in its project.
    CreateKey(Box<ApiKey>),
    /// If `version` is still the stored one.
    ReplaceKey {
        key: Box<ApiKey>,
        version: u32,
    },
    DeleteKey(KeyId),
    /// `Full` with `users_max`; `Conflict` when the name is taken.
    CreateUser(Box<NewUser>),
    /// `Conflict` when it has changed, or when no owner of the installation would be left.
    ReplaceUser(Box<UserChange>),
    /// With the sessions; `Conflict` for the last owner of the installation.
    DeleteUser(UserId),
    CreateSecurity(Box<SecurityDefinition>),
    /// If `version` is still the stored one.
    ReplaceSecurity {
        definition: Box<SecurityDefinition>,
        version: u32,
    },
    DeleteSecurity(SecurityId),
    /// A connection of kind webhook and its row, together.
    CreateEndpoint {
        connection: Box<Connection>,
        row: Box<EndpointRow>,
    },
    /// An endpoint and the subscription to it, together.
    CreateDestination {
        connection: Box<Connection>,
        row: Box<EndpointRow>,
        subscription: Box<PushSubscription>,
    },
    /// As `ReplaceConnection`, for one of kind webhook, with what changes of its row.
    ReplaceEndpoint {
        connection: Box<Connection>,
        version: u32,
        verification: Option<Verification>,
        /// It is on again: its health starts over, in a new epoch.
        switches_on: bool,
    },
    /// If `version` is still the stored one.
    ReplaceEndpointKeys {
        id: ConnectionId,
        keys: EndpointKeys,
        version: u32,
    },
    /// `Conflict` when the name is taken in its project; `NotFound` when the connection is not there.
    CreatePushSubscription(Box<PushSubscription>),
    /// If `version` is still the stored one.
    ReplacePushSubscription {
        subscription: Box<PushSubscription>,
        version: u32,
    },
    /// Its transformation is kept in the same transaction, for what waits by it.
    DeletePushSubscription {
        id: SubscriptionId,
        now: Timestamp,
    },
    /// `Conflict` when the name or the topic is another source's of the project.
    CreateSource(Box<SourceRow>),
    /// With its keys, if `version` is still the stored one.
    ReplaceSource {
        row: Box<SourceRow>,
        version: u32,
    },
    DeleteSource(SourceId),
    /// As `create_job`.
    CreateJob {
        job: Box<NewJob>,
        active_max: u32,
    },
    /// As `set_job_state`.
    SetJobState {
        id: JobId,
        version: u32,
        state: JobState,
        now: Timestamp,
    },
}

/// One thing that somebody did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub id: AuditId,
    pub at: Timestamp,
    /// `None`: it concerns the installation.
    pub project_id: Option<ProjectId>,
    pub actor: AuditActor,
    /// Dotted words such as `connection.replace` or `delivery.body.view`.
    pub action: String,
    /// The id of what it was done to, where there is one.
    pub object: Option<String>,
    /// Its name, or what else a person knows it by.
    pub object_name: Option<String>,
    /// Configuration before and after, secrets masked.
    pub before: Option<Value>,
    pub after: Option<Value>,
    /// How often, for what is counted and not written one by one.
    pub times: u64,
}

/// Who did it, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditActor {
    /// The id of the key, or a word such as `bootstrap`, `system`, `unknown`.
    pub id: String,
    pub name: String,
    /// The peer's address of the connection; of a proxy, the proxy's.
    pub address: Option<String>,
}

/// Which entries a list shows; all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// `None`: of all projects and of the installation.
    pub project_id: Option<ProjectId>,
    pub actor: Option<String>,
    /// The whole action, or its beginning up to a dot: `connection` finds `connection.replace`.
    pub action: Option<String>,
    pub object: Option<String>,
    pub from: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

impl AuditFilter {
    /// The rule, for a store that looks at entries one by one.
    pub fn lets_through(&self, entry: &AuditEntry) -> bool {
        let action_fits = |wanted: &String| {
            let rest = entry.action.strip_prefix(wanted.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.project_id.is_none_or(|id| entry.project_id == Some(id))
            && self.actor.as_ref().is_none_or(|id| entry.actor.id == *id)
            && self.action.as_ref().is_none_or(action_fits)
            && self.object.as_ref().is_none_or(|id| entry.object.as_ref() == Some(id))
            && self.from.is_none_or(|from| entry.at >= from)
            && self.before.is_none_or(|before| entry.at < before)
    }
}
