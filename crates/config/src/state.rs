//! What is configured now, as a plan is made against it, and as it will be with each change of the plan.
//!
//! It must not know what a file says.

use std::collections::BTreeMap;

use postrider_core::Secret;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::id::{ConnectionId, ProjectId, TopicId};
use postrider_core::security::SecurityDefinition;
use postrider_core::subscription::PushSubscription;
use postrider_store::{
    ConfigChange, PAGE_ROWS_MAX, PageRequest, Project, PullSubscription, SecretOwner, SourceRow, StoreError, StoreRead,
    Topic,
};

use crate::plan::NewSecrets;

#[derive(Clone, Debug, Default)]
pub struct State {
    projects: BTreeMap<String, Project>,
    security: BTreeMap<(ProjectId, String), SecurityDefinition>,
    secrets: NewSecrets,
    connections: BTreeMap<(ProjectId, ConnectionKind, String), Connection>,
    topics: BTreeMap<(ProjectId, String), Topic>,
    subscriptions: BTreeMap<(TopicId, String), PullSubscription>,
    sources: BTreeMap<(ProjectId, String), SourceRow>,
    push_subscriptions: BTreeMap<(ProjectId, String), PushSubscription>,
}

impl State {
    /// Reads all of it but the security definitions, the subscriptions that push and the sources, which their keepers hand in. What changes
    /// meanwhile is noticed when the plan is applied.
    pub async fn load(
        store: &dyn StoreRead,
        definitions: Vec<SecurityDefinition>,
        push: Vec<PushSubscription>,
        sources: Vec<SourceRow>,
    ) -> Result<State, StoreError> {
        let mut state = State::default();
        for subscription in push {
            state.put_push(subscription);
        }
        for row in sources {
            state.put_source(row);
        }
        for connection in store.all_connections().await? {
            state.put_connection(connection);
        }
        for definition in definitions {
            state.put_security(definition);
        }
        for project in store.projects().await? {
            let mut cursor = None;
            loop {
                let page = store.topics(project.id, PageRequest { limit: PAGE_ROWS_MAX, cursor }).await?;
                for topic in page.items {
                    for subscription in store.subscriptions(&topic).await? {
                        state.put_subscription(subscription);
                    }
                    state.put_topic(topic);
                }
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            state.projects.insert(project.name.clone(), project);
        }
        Ok(state)
    }

    /// Lets a plan compare secrets with these, which are set; one that is not known counts as another one.
    pub fn know_secrets(&mut self, secrets: NewSecrets) {
        self.secrets.extend(secrets);
    }

    /// Without all that is not of this project.
    pub fn keep_only(&mut self, project: ProjectId) {
        self.projects.retain(|_, found| found.id == project);
        self.security.retain(|(of, _), _| *of == project);
        self.sources.retain(|(of, _), _| *of == project);
        let definitions = self.security.values().map(|known| SecretOwner::Security(known.id));
        let sources = self.sources.values().map(|known| SecretOwner::Source(known.source.id));
        let ours: Vec<SecretOwner> = definitions.chain(sources).collect();
        self.secrets.retain(|owner, _| ours.contains(owner));
        self.connections.retain(|(of, _, _), _| *of == project);
        self.topics.retain(|(of, _), _| *of == project);
        self.subscriptions.retain(|_, found| found.project_id == project);
        self.push_subscriptions.retain(|(of, _), _| *of == project);
    }

    /// The same with this change made.
    pub fn make(&mut self, change: &ConfigChange) {
        match change {
            ConfigChange::CreateProject(project) | ConfigChange::ReplaceProject { now: project, .. } => {
                self.projects.insert(project.name.clone(), project.clone());
            }
            ConfigChange::CreateSecurity(definition) | ConfigChange::ReplaceSecurity { definition, .. } => {
                self.put_security((**definition).clone());
            }
            ConfigChange::CreateConnection(connection) | ConfigChange::ReplaceConnection { connection, .. } => {
                self.put_connection((**connection).clone());
            }
            ConfigChange::CreateTopic(topic) | ConfigChange::ReplaceTopic { now: topic, .. } => {
                self.put_topic(topic.clone());
            }
            ConfigChange::CreateSource(row) | ConfigChange::ReplaceSource { row, .. } => {
                self.put_source((**row).clone());
            }
            ConfigChange::CreatePush(subscription) | ConfigChange::ReplacePush { subscription, .. } => {
                self.put_push((**subscription).clone());
            }
            ConfigChange::CreateSubscription(subscription)
            | ConfigChange::ReplaceSubscription { now: subscription, .. } => {
                self.put_subscription(subscription.clone());
            }
        }
    }

    fn put_security(&mut self, definition: SecurityDefinition) {
        self.security.insert((definition.project_id, definition.name.clone()), definition);
    }

    fn put_connection(&mut self, connection: Connection) {
        let key = (connection.project_id, connection.kind(), connection.name.clone());
        self.connections.insert(key, connection);
    }

    fn put_topic(&mut self, topic: Topic) {
        self.topics.insert((topic.project_id, topic.name.as_str().to_owned()), topic);
    }

    fn put_source(&mut self, row: SourceRow) {
        self.sources.insert((row.source.project_id, row.source.name.clone()), row);
    }

    fn put_push(&mut self, subscription: PushSubscription) {
        self.push_subscriptions.insert((subscription.project_id, subscription.name.clone()), subscription);
    }

    fn put_subscription(&mut self, subscription: PullSubscription) {
        self.subscriptions.insert((subscription.topic_id, subscription.name.clone()), subscription);
    }

    pub fn project(&self, name: &str) -> Option<&Project> {
        self.projects.get(name)
    }

    /// By name.
    pub fn projects(&self) -> impl Iterator<Item = &Project> {
        self.projects.values()
    }

    pub fn security(&self, project: ProjectId, name: &str) -> Option<&SecurityDefinition> {
        self.security.get(&(project, name.to_owned()))
    }

    /// By name.
    pub fn security_of(&self, project: ProjectId) -> impl Iterator<Item = &SecurityDefinition> {
        let from = (project, String::new());
        self.security.range(from..).map(|(_, found)| found).take_while(move |found| found.project_id == project)
    }

    /// In the clear, where the plan may know it.
    pub(crate) fn secret(&self, owner: SecretOwner) -> Option<&Secret> {
        self.secrets.get(&owner)
    }

    pub fn connection(&self, project: ProjectId, kind: ConnectionKind, name: &str) -> Option<&Connection> {
        self.connections.get(&(project, kind, name.to_owned()))
    }

    /// By name.
    pub fn connections_of(&self, project: ProjectId, kind: ConnectionKind) -> impl Iterator<Item = &Connection> {
        let from = (project, kind, String::new());
        self.connections
            .range(from..)
            .map(|(_, found)| found)
            .take_while(move |found| found.project_id == project && found.kind() == kind)
    }

    pub fn connection_by_id(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.values().find(|known| known.id == id)
    }

    pub fn push_subscription(&self, project: ProjectId, name: &str) -> Option<&PushSubscription> {
        self.push_subscriptions.get(&(project, name.to_owned()))
    }

    /// By name.
    pub fn push_subscriptions_of(&self, project: ProjectId) -> impl Iterator<Item = &PushSubscription> {
        let from = (project, String::new());
        let ours = self.push_subscriptions.range(from..).map(|(_, found)| found);
        ours.take_while(move |found| found.project_id == project)
    }

    pub fn source(&self, project: ProjectId, name: &str) -> Option<&SourceRow> {
        self.sources.get(&(project, name.to_owned()))
    }

    /// By name.
    pub fn sources_of(&self, project: ProjectId) -> impl Iterator<Item = &SourceRow> {
        let from = (project, String::new());
        let ours = self.sources.range(from..).map(|(_, found)| found);
        ours.take_while(move |found| found.source.project_id == project)
    }

    pub fn topic(&self, project: ProjectId, name: &str) -> Option<&Topic> {
        self.topics.get(&(project, name.to_owned()))
    }

    /// By name.
    pub fn topics_of(&self, project: ProjectId) -> impl Iterator<Item = &Topic> {
        let from = (project, String::new());
        self.topics.range(from..).map(|(_, found)| found).take_while(move |found| found.project_id == project)
    }

    pub fn subscription(&self, topic: TopicId, name: &str) -> Option<&PullSubscription> {
        self.subscriptions.get(&(topic, name.to_owned()))
    }

    /// By name.
    pub fn subscriptions_of(&self, topic: TopicId) -> impl Iterator<Item = &PullSubscription> {
        let from = (topic, String::new());
        self.subscriptions.range(from..).map(|(_, found)| found).take_while(move |found| found.topic_id == topic)
    }
}
