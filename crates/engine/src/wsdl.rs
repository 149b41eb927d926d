//! The settings of a SOAP connection that a WSDL gives: address, version, namespace and operations.
//!
//! Nothing is fetched. It must not know where the settings go.

use postrider_core::SettingError;
use postrider_core::connection::ElementForm;
use postrider_core::settings::soap::OPERATIONS_MAX;
use postrider_wire::codec::soap::wsdl::{self, Port};
use serde_json::{Map, Value};

const KEY: &str = "wsdl";

/// A WSDL with all that it imports, and which of its ports is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    pub document: String,
    /// WSDLs and schemas that it imports, in any order.
    pub imports: Vec<String>,
    /// Needed where several services are in it.
    pub port: Option<String>,
}

impl Description {
    /// Every key that follows from it. `version` chooses among ports of one service that differ in the version of SOAP; the first is taken without one.
    ///
    /// # Errors
    /// Why it cannot be read, or which ports there are to choose from.
    pub fn settings(&self, version: Option<&str>) -> Result<Map<String, Value>, SettingError> {
        let imports: Vec<&str> = self.imports.iter().map(String::as_str).collect();
        let ports = wsdl::read(&self.document, &imports).map_err(|error| {
            SettingError::new(KEY, "not usable", format!("a WSDL 1.1 with a binding for SOAP: {error}"))
        })?;
        Ok(written(self.chosen(&ports, version)?))
    }

    fn chosen<'p>(&self, ports: &'p [Port], version: Option<&str>) -> Result<&'p Port, SettingError> {
        let names = || ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(wanted) = &self.port {
            let found = ports.iter().find(|port| port.name == *wanted);
            return found.ok_or_else(|| SettingError::new("wsdl_port", wanted.clone(), format!("one of {}", names())));
        }
        let first = ports.first().ok_or_else(|| SettingError::new(KEY, "without ports", "a WSDL with a port"))?;
        if ports.iter().any(|port| port.service != first.service) {
            return Err(SettingError::new("wsdl_port", "missing", format!("one of {}", names())));
        }
        match version {
            None => Ok(first),
            Some(version) => {
                let found = ports.iter().find(|port| port.version.as_str() == version);
                let of = || {
                    format!("a WSDL with a port for SOAP {version}, which `soap_version` asks for; it has {}", names())
                };
                found.ok_or_else(|| SettingError::new(KEY, "without such a port", of()))
            }
        }
    }
}

fn written(port: &Port) -> Map<String, Value> {
    let mut settings = Map::new();
    // One with a query has no form in `url_path`; whoever needs it says where requests go.
    if let Some((host, path)) = split(&port.location) {
        settings.insert("host".to_owned(), host.into());
        settings.insert("url_path".to_owned(), path.into());
    }
    settings.insert("soap_version".to_owned(), port.version.as_str().into());
    if !port.namespace.is_empty() {
        settings.insert("namespace".to_owned(), port.namespace.clone().into());
    }
    if port.element_form == ElementForm::Unqualified {
        settings.insert("element_form".to_owned(), "unqualified".into());
    }
    let named = port.operations.iter().take(OPERATIONS_MAX).map(|known| (known.name.clone(), known.written().into()));
    let operations: Map<String, Value> = named.collect();
    if !operations.is_empty() {
        settings.insert("operations".to_owned(), operations.into());
    }
    settings
}

/// `https://host:port` and the path.
fn split(location: &str) -> Option<(&str, &str)> {
    let location = location.trim();
    let after_scheme = location.find("://")? + 3;
    let end = location[after_scheme..].find('/').map_or(location.len(), |at| after_scheme + at);
    let (host, path) = location.split_at(end);
    (!location.contains(['?', '#', '{', '}', '@'])).then_some((host, path))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn an_address_is_taken_apart() {
        assert_eq!(split("https://r.example.org:8443/iis/v1"), Some(("https://r.example.org:8443", "/iis/v1")));
        assert_eq!(split("http://r.example.org"), Some(("http://r.example.org", "")));
        for without in ["", "/iis", "https://r.example.org/iis?wsdl", "https://ada:x@r.example.org/"] {
            assert_eq!(split(without), None, "{without}");
        }
    }
}
