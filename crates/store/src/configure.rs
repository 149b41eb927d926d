//! Many changes to the configuration at once: all of them or none (law 2), for imports.
//!
//! It must not know where the changes come from, nor what a setting means.

use async_trait::async_trait;
use postrider_core::connection::Connection;
use postrider_core::id::{SecurityId, SourceId};
use postrider_core::security::SecurityDefinition;
use postrider_core::subscription::PushSubscription;

use crate::StoreError;
use crate::records::{Project, PullSubscription, Topic};
use crate::sources::SourceRow;

/// What a secret of a batch belongs to: it comes beside the batch, in the clear, and is sealed into this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretOwner {
    Security(SecurityId),
    Source(SourceId),
}

/// One change of a batch. What is replaced is compared with what is stored, so that nobody undoes another's change unseen.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigChange {
    CreateProject(Project),
    /// Its settings, if `was` is still what is stored; its name stays.
    ReplaceProject {
        was: Project,
        now: Project,
    },
    CreateSecurity(Box<SecurityDefinition>),
    /// If `version` is still the stored one.
    ReplaceSecurity {
        definition: Box<SecurityDefinition>,
        version: u32,
    },
    CreateConnection(Box<Connection>),
    /// If `version` is still the stored one.
    ReplaceConnection {
        connection: Box<Connection>,
        version: u32,
    },
    CreateTopic(Topic),
    /// Its description and retention, if `was` is still what is stored.
    ReplaceTopic {
        was: Topic,
        now: Topic,
    },
    CreateSource(Box<SourceRow>),
    /// If `version` is still the stored one.
    ReplaceSource {
        row: Box<SourceRow>,
        version: u32,
    },
    CreatePush(Box<PushSubscription>),
    /// If `version` is still the stored one.
    ReplacePush {
        subscription: Box<PushSubscription>,
        version: u32,
    },
    CreateSubscription(PullSubscription),
    /// After how long it is given messages again, if `was` is still what is stored.
    ReplaceSubscription {
        was: PullSubscription,
        now: PullSubscription,
    },
}

#[async_trait]
pub trait StoreConfigure: Send + Sync {
    /// Applies the changes in their order, in one transaction: a later one may stand on an earlier one. `Conflict` when a name is taken or
    /// what is to be replaced has changed, `NotFound` when it is gone; then nothing of the batch was written.
    async fn configure(&self, batch: Vec<ConfigChange>) -> Result<(), StoreError>;
}
