//! The groups that operations are shown in, in the order in which they are shown.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Sending,
    Deliveries,
    DeadLetters,
    Webhooks,
    Incoming,
    Jobs,
    Connections,
    Channels,
    Security,
    Topics,
    Configuration,
    Projects,
    Keys,
    Users,
    Audit,
    Server,
}

impl Tag {
    pub const ALL: [Tag; 16] = [
        Tag::Sending,
        Tag::Deliveries,
        Tag::DeadLetters,
        Tag::Webhooks,
        Tag::Incoming,
        Tag::Jobs,
        Tag::Connections,
        Tag::Channels,
        Tag::Security,
        Tag::Topics,
        Tag::Configuration,
        Tag::Projects,
        Tag::Keys,
        Tag::Users,
        Tag::Audit,
        Tag::Server,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Tag::Sending => "Sending",
            Tag::Deliveries => "Deliveries",
            Tag::DeadLetters => "Dead letters",
            Tag::Webhooks => "Webhooks: events, endpoints, subscriptions",
            Tag::Incoming => "Incoming webhooks: sources, destinations, forwards",
            Tag::Jobs => "Bulk acts and jobs",
            Tag::Connections => "Connections and their queues",
            Tag::Channels => "Channels and services",
            Tag::Security => "Security definitions",
            Tag::Topics => "Topics and subscriptions",
            Tag::Configuration => "Configuration as a file",
            Tag::Projects => "Projects",
            Tag::Keys => "API keys",
            Tag::Users => "Users of the dashboard",
            Tag::Audit => "Audit log",
            Tag::Server => "The server itself",
        }
    }

    pub const fn meaning(self) -> &'static str {
        match self {
            Tag::Sending => {
                "Hand in a request for a remote system: answered at once, stored to be delivered, or passed through as it is."
            }
            Tag::Deliveries => {
                "Every request that was taken in, with its attempts, and what a person can do to one of them."
            }
            Tag::DeadLetters => "Failed messages: what could not be delivered and waits for somebody.",
            Tag::Webhooks => {
                "Publish what has happened; whoever subscribed to it is sent it, signed and retried on a ladder."
            }
            Tag::Incoming => {
                "Take in what providers send, verified and once, and forward it to each destination until it is there."
            }
            Tag::Jobs => {
                "One act over many deliveries, by ids or by filter. It goes on by itself and survives a restart."
            }
            Tag::Connections => "Where requests go, under which delivery policy, and what waits there.",
            Tag::Channels => {
                "Addresses that accept requests at once and run a service for each, from a durable queue; and the services."
            }
            Tag::Security => {
                "The credentials that requests go out with, or that callers of a channel show. A secret goes in and never comes out again."
            }
            Tag::Topics => "Messages that are published once and pulled by each subscription.",
            Tag::Configuration => {
                "Everything that is configured as one YAML file, with a difference before it is applied."
            }
            Tag::Projects => "Projects keep connections, keys and deliveries apart.",
            Tag::Keys => "Who may use this API, and for what. A key is shown once, when it is made.",
            Tag::Users => "Who may log in to the dashboard, and as what. A password goes in and never comes out again.",
            Tag::Audit => "Who changed what, and who saw which body.",
            Tag::Server => "Health, figures, and this description.",
        }
    }
}
