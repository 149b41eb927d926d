//! Who does something: a key, the bootstrap key, or the server itself. It must not know how anybody was recognised.

use std::net::IpAddr;

use postrider_store::AuditActor;

/// For the audit log; it grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// A key's id, or a word such as `bootstrap` or `system`.
    pub id: String,
    pub name: String,
    /// Where the connection came from; of a proxy, the proxy's address.
    pub address: Option<IpAddr>,
}

impl Actor {
    /// The server itself, or a program that has the engine in its process.
    pub fn system() -> Self {
        Actor { id: "system".to_owned(), name: "system".to_owned(), address: None }
    }

    /// Whoever has the key that the installation was set up with.
    pub fn bootstrap(address: Option<IpAddr>) -> Self {
        Actor { id: "bootstrap".to_owned(), name: "bootstrap admin key".to_owned(), address }
    }

    /// Somebody whose key is not known.
    pub fn unknown(address: Option<IpAddr>) -> Self {
        Actor { id: "unknown".to_owned(), name: "unknown".to_owned(), address }
    }

    pub(crate) fn for_audit(&self) -> AuditActor {
        AuditActor {
            id: self.id.clone(),
            name: self.name.clone(),
            address: self.address.map(|address| address.to_string()),
        }
    }
}
