//! Channels and services: list, show, create, replace, change, delete, pause and resume. They are settings with a state, as connections are.

use http::Method;
use serde_json::{Map, Value};

use super::connections::Connection;
use super::page::query;
use super::{Client, ClientError, Page, PageQuery, segment};

/// Which of the three a command or a program is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configured {
    Connections,
    /// Addresses that accept requests. Their types are what they speak; `rest:Orders` names one where the name alone is ambiguous.
    Channels,
    /// What channels run.
    Services,
}

impl Configured {
    const fn path(self) -> &'static str {
        match self {
            Configured::Connections => "/connections",
            Configured::Channels => "/channels",
            Configured::Services => "/services",
        }
    }
}

impl Client {
    /// In pages.
    pub async fn configured(&self, what: Configured, page: &PageQuery) -> Result<Page<Connection>, ClientError> {
        self.transport.get(&self.under_project(&format!("{}{}", what.path(), query(&page.pairs())))).await
    }

    pub async fn configured_one(&self, what: Configured, name: &str) -> Result<Connection, ClientError> {
        self.transport.get(&self.under(what, name, "")).await
    }

    /// `settings` are the YAML keys with `name`, and but for services `type`. A refusal names each field that is wrong.
    pub async fn create_configured(
        &self,
        what: Configured,
        settings: &Map<String, Value>,
    ) -> Result<Connection, ClientError> {
        self.transport.json(Method::POST, &self.under_project(what.path()), settings).await
    }

    /// Replaces all settings; another `name` renames it and keeps its queue.
    pub async fn replace_configured(
        &self,
        what: Configured,
        name: &str,
        settings: &Map<String, Value>,
    ) -> Result<Connection, ClientError> {
        self.transport.json(Method::PUT, &self.under(what, name, ""), settings).await
    }

    /// Changes the settings given and leaves the others; `null` takes a setting back to its default.
    pub async fn change_configured(
        &self,
        what: Configured,
        name: &str,
        settings: &Map<String, Value>,
    ) -> Result<Connection, ClientError> {
        self.transport.json(Method::PATCH, &self.under(what, name, ""), settings).await
    }

    /// Refused while anything is in its queue or DLQ, unless `forced`: then those end as discarded, in the log (Z18).
    pub async fn delete_configured(&self, what: Configured, name: &str, forced: bool) -> Result<(), ClientError> {
        let path = self.under(what, name, if forced { "?force=true" } else { "" });
        self.transport.bare(Method::DELETE, &path).await
    }

    /// From now on requests are stored and nothing is sent or run.
    pub async fn pause_configured(&self, what: Configured, name: &str) -> Result<Connection, ClientError> {
        self.transport.act(Method::POST, &self.under(what, name, "/pause")).await
    }

    pub async fn resume_configured(&self, what: Configured, name: &str) -> Result<Connection, ClientError> {
        self.transport.act(Method::POST, &self.under(what, name, "/resume")).await
    }

    /// The channels of the project.
    pub async fn channels(&self, page: &PageQuery) -> Result<Page<Connection>, ClientError> {
        self.configured(Configured::Channels, page).await
    }

    /// `settings` are the keys of `channel_rest` or `channel_soap`, with `name` and `type` (`rest`, `soap`).
    pub async fn create_channel(&self, settings: &Map<String, Value>) -> Result<Connection, ClientError> {
        self.create_configured(Configured::Channels, settings).await
    }

    /// The services of the project, and those of the server's own process.
    pub async fn services(&self, page: &PageQuery) -> Result<Page<Connection>, ClientError> {
        self.configured(Configured::Services, page).await
    }

    /// `settings` are the keys of `services`, with `name`.
    pub async fn create_service(&self, settings: &Map<String, Value>) -> Result<Connection, ClientError> {
        self.create_configured(Configured::Services, settings).await
    }

    fn under(&self, what: Configured, name: &str, rest: &str) -> String {
        match (what, name.split_once(':')) {
            (Configured::Connections, _) => self.under_connection(name, rest),
            (Configured::Channels, Some((kind @ ("rest" | "soap" | "mllp"), name))) => {
                let separator = if rest.contains('?') { '&' } else { '?' };
                self.under_project(&format!("/channels/{}{rest}{separator}type={kind}", segment(name)))
            }
            (what, _) => self.under_project(&format!("{}/{}{rest}", what.path(), segment(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d16_a_channel_is_named_with_its_type_or_without() {
        let client = Client::new("http://127.0.0.1:1", "k").unwrap();
        let under = |what, name: &str, rest: &str| client.under(what, name, rest);
        assert!(under(Configured::Channels, "soap:Lab A", "/pause").ends_with("/channels/Lab%20A/pause?type=soap"));
        assert!(under(Configured::Channels, "a:b", "?force=true").ends_with("/channels/a%3Ab?force=true"));
        assert!(under(Configured::Channels, "rest:b", "?force=true").ends_with("/channels/b?force=true&type=rest"));
        assert!(under(Configured::Services, "rest:b", "").ends_with("/services/rest%3Ab"));
        assert!(under(Configured::Connections, "rest:b", "").ends_with("/connections/b?type=rest"));
    }
}
