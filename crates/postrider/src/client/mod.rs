//! `Client`: one server, one key, one project. Requests go over kept-open connections; clones share them.
//!
//! What each resource offers is in the file of its name; this one must not know any of their paths.

mod access;
mod alerts;
mod batch;
mod call;
mod channels;
mod configuration;
mod connections;
mod deliveries;
mod error;
mod health;
mod incoming;
mod jobs;
mod page;
mod people;
mod reach;
mod schedule;
mod security;
mod topics;
mod transport;
mod webhooks;

pub use access::{ApiKey, AuditActor, AuditEntry, AuditQuery, Project, Whose};
pub use alerts::Alert;
pub use batch::{BatchResult, LineResult};
pub use call::{Call, FhirFields, Response, SendResult};
pub use channels::Configured;
pub use configuration::{ImportOptions, Imported, ImportedKey, ImportedObject};
pub use connections::{Connection, ConnectionState};
pub use deliveries::{Attempt, DeadLetter, Delivery, DeliveryQuery};
pub use error::{ClientError, FieldProblem, Problem};
pub use health::Health;
pub use incoming::{Destination, FailedForward, Forward, ForwardsWanted, ReplayedIncoming, RetriedForwards, Source};
pub use jobs::{Job, JobAct, JobTarget, Matching};
pub use page::{Page, PageQuery};
pub use people::{User, UserChange};
pub use reach::{Reached, StageTook};
pub use schedule::{PlannedAttempt, Schedule};
pub use security::{SecurityDefinition, SecurityState};
pub use topics::{Pulled, Subscription, Topic, TopicMessage};
pub use webhooks::{Endpoint, EventBatch, PublishedEvent, PushSubscription};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use postrider_core::connection::ConnectionKind;
use transport::Transport;
pub(crate) use transport::{BoxedAnswer, Routes};

/// A client of one Postrider server. Cheap to clone; clones share the open connections.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
    project: String,
}

impl Client {
    /// `server` is `http://HOST:PORT` or `https://HOST:PORT`, with or without a slash at the end. Nothing is sent yet. With https, the public authorities
    /// and the system's are trusted.
    ///
    /// # Errors
    /// An address that is no such URL, and a key that cannot stand in a header.
    pub fn new(server: &str, key: &str) -> Result<Client, ClientError> {
        Client::over(Transport::new(server, key, None)?)
    }

    /// The same, trusting only the authorities in a PEM file.
    ///
    /// # Errors
    /// As `new`; a file that cannot be read or has no certificate.
    pub fn trusting(server: &str, key: &str, ca_path: &str) -> Result<Client, ClientError> {
        Client::over(Transport::new(server, key, Some(ca_path))?)
    }

    pub(crate) fn in_process(name: &str, key: &str, routes: std::sync::Arc<dyn Routes>) -> Result<Client, ClientError> {
        Client::over(Transport::in_process(name, key, routes)?)
    }

    fn over(transport: Transport) -> Result<Client, ClientError> {
        Ok(Client { transport, project: "default".to_owned() })
    }

    /// The same client for another project than `default`.
    #[must_use]
    pub fn with_project(self, project: &str) -> Client {
        Client { project: project.to_owned(), ..self }
    }

    /// The address that requests go to.
    pub fn server(&self) -> &str {
        self.transport.server()
    }

    /// Whether the server takes requests now; `Refused` with 503 when it does not. Needs no key.
    pub async fn is_ready(&self) -> Result<(), ClientError> {
        self.transport.bytes("/health/ready").await.map(drop)
    }

    /// A path under the project.
    fn under_project(&self, rest: &str) -> String {
        format!("/api/v1/projects/{}{rest}", segment(&self.project))
    }

    /// A path under a connection, its name percent-encoded. `rest:Billing API` names the type where a name alone is ambiguous (D16).
    fn under_connection(&self, connection: &str, rest: &str) -> String {
        match connection.split_once(':') {
            Some((kind, name)) if ConnectionKind::parse(kind).is_some() => {
                let separator = if rest.contains('?') { '&' } else { '?' };
                self.under_project(&format!("/connections/{}{rest}{separator}type={kind}", segment(name)))
            }
            _ => self.under_project(&format!("/connections/{}{rest}", segment(connection))),
        }
    }
}

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One path segment or query value, percent-encoded.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_percent_encoded_and_a_type_goes_to_the_query() {
        let client = Client::new("http://127.0.0.1:1/", "k").unwrap().with_project("a b");
        assert_eq!(
            client.under_connection("Billing API", "/send"),
            "/api/v1/projects/a%20b/connections/Billing%20API/send"
        );
        assert_eq!(
            client.under_connection("rest:Billing API", "/queue?limit=2"),
            "/api/v1/projects/a%20b/connections/Billing%20API/queue?limit=2&type=rest"
        );
        // Only a known type is one; a name may hold a colon.
        assert_eq!(client.under_connection("a:b", ""), "/api/v1/projects/a%20b/connections/a%3Ab");
    }
}
