//! Which channel a request is for: by method and path, and over SOAP by its action (D16). Looked up in memory for every request that comes.
//!
//! It must not know how a request is let in or stored.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use postrider_core::SettingError;
use postrider_core::channel_path::segments_of;
use postrider_core::connection::{Connection, Door, HttpDoor};
use postrider_core::id::{ConnectionId, ProjectId};

/// All channels with an address, those with literal paths by their path.
#[derive(Default)]
pub(crate) struct ChannelRoutes {
    literal: HashMap<Vec<String>, Vec<Arc<Connection>>>,
    /// By how many segments they have, each list with the most literal one first.
    patterns: BTreeMap<usize, Vec<Arc<Connection>>>,
}

/// What there is at an address.
#[derive(Clone, Debug)]
pub enum At {
    Channel {
        channel: Arc<Connection>,
        /// What the placeholders stand for.
        params: Vec<(String, String)>,
    },
    /// Channels, and none of them takes this method; those that are taken, with commas between.
    OtherMethods(String),
    /// SOAP channels, and none of them takes this action.
    OtherAction,
    Nothing,
}

/// By what people are told which setting names the address.
fn key_of(door: &Door) -> &'static str {
    if door.http().is_some() { "url_path" } else { "address" }
}

fn door(connection: &Connection) -> Option<(&Door, &HttpDoor)> {
    let door = &connection.spec.target.channel()?.door;
    Some((door, door.http()?))
}

impl ChannelRoutes {
    pub fn put(&mut self, connection: &Arc<Connection>) {
        let Some((_, http)) = door(connection) else { return };
        let list = if http.path.is_literal() {
            self.literal.entry(http.path.literals().map(str::to_owned).collect()).or_default()
        } else {
            self.patterns.entry(http.path.segments_count()).or_default()
        };
        list.push(Arc::clone(connection));
        // Should two servers have made the same address at once, the older channel has it.
        list.sort_by_key(|known| (door(known).map(|(_, http)| http.path.order()), known.id));
    }

    pub fn remove(&mut self, connection: &Connection) {
        let Some((_, http)) = door(connection) else { return };
        if http.path.is_literal() {
            let key: Vec<String> = http.path.literals().map(str::to_owned).collect();
            if let Some(list) = self.literal.get_mut(&key) {
                list.retain(|known| known.id != connection.id);
                if list.is_empty() {
                    self.literal.remove(&key);
                }
            }
        } else if let Some(list) = self.patterns.get_mut(&http.path.segments_count()) {
            list.retain(|known| known.id != connection.id);
        }
    }

    /// Whether there is any channel at all: most requests are none of theirs.
    pub fn is_empty(&self) -> bool {
        self.literal.is_empty() && self.patterns.values().all(Vec::is_empty)
    }

    /// `action` is asked for where SOAP channels share a path.
    pub fn find(&self, method: &str, path: &str, action: impl Fn(&Connection) -> String) -> At {
        let Some(segments) = segments_of(path) else { return At::Nothing };
        let mut refused = Refused::default();
        let owned: Vec<String> = segments.iter().map(Cow::to_string).collect();
        let literal = self.literal.get(&owned).map_or(&[][..], Vec::as_slice);
        let patterns = self.patterns.get(&segments.len()).map_or(&[][..], Vec::as_slice);
        let fitting = literal.iter().chain(patterns).filter_map(|channel| {
            let (door, http) = door(channel)?;
            Some((channel, door, http, http.path.match_segments(&segments)?))
        });
        let mut any_action = None;
        for (channel, door, http, params) in fitting {
            let is_taken = http.methods.is_empty() || http.methods.iter().any(|known| known.as_str() == method);
            if !is_taken {
                refused.methods.extend(http.methods.iter().map(|method| method.as_str().to_owned()));
                continue;
            }
            let Some(soap) = door.soap() else { return At::Channel { channel: Arc::clone(channel), params } };
            if soap.action.is_empty() {
                any_action.get_or_insert((channel, params));
            } else if soap.action == action(channel) {
                return At::Channel { channel: Arc::clone(channel), params };
            } else {
                refused.action = true;
            }
        }
        match any_action {
            Some((channel, params)) => At::Channel { channel: Arc::clone(channel), params },
            None => refused.told(),
        }
    }
}

/// # Errors
/// The key of the address, when another channel of these has it (D16).
pub(crate) fn check_among<'c>(
    wanted: &Connection,
    mut others: impl Iterator<Item = &'c Connection>,
) -> Result<(), SettingError> {
    let Some(ours) = wanted.spec.target.channel().map(|channel| &channel.door) else { return Ok(()) };
    let is_taken = |known: &&Connection| {
        known.id != wanted.id && known.spec.target.channel().is_some_and(|channel| channel.door.is_same_as(ours))
    };
    match others.find(is_taken) {
        None => Ok(()),
        Some(known) => Err(taken_by(known, wanted.project_id, ours)),
    }
}

/// Names of other projects are not for everybody.
fn taken_by(known: &Connection, project: ProjectId, door: &Door) -> SettingError {
    let by = if known.project_id == project {
        format!("channel `{}`", known.name)
    } else {
        "a channel of another project".to_owned()
    };
    let in_common = if door.http().is_some() { ", with a method in common" } else { "" };
    let allowed = format!("an address that is free: {by} has this one{in_common}");
    SettingError::new(key_of(door), door.address(), allowed)
}

#[derive(Default)]
struct Refused {
    methods: Vec<String>,
    action: bool,
}

impl Refused {
    fn told(mut self) -> At {
        if self.action {
            return At::OtherAction;
        }
        if self.methods.is_empty() {
            return At::Nothing;
        }
        self.methods.sort();
        self.methods.dedup();
        At::OtherMethods(self.methods.join(","))
    }
}

/// For tests: the id of what was found.
impl At {
    pub fn id(&self) -> Option<ConnectionId> {
        match self {
            At::Channel { channel, .. } => Some(channel.id),
            At::OtherMethods(_) | At::OtherAction | At::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::Timestamp;
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};
    use serde_json::{Value, json};

    fn channel(id: u128, kind: ConnectionKind, written: Value) -> Arc<Connection> {
        let mut written = written.as_object().unwrap().clone();
        written.insert("service".to_owned(), "a".into());
        let spec = ConnectionSpec::parse(kind, &written).unwrap();
        let at = Timestamp::from_millis(0);
        Arc::new(Connection {
            id: ConnectionId::from_u128(id),
            project_id: ProjectId::from_u128(1),
            name: format!("c{id}"),
            written,
            spec,
            paused: false,
            version: 1,
            created_at: at,
            updated_at: at,
        })
    }

    fn rest(id: u128, path: &str, method: &str) -> Arc<Connection> {
        channel(id, ConnectionKind::ChannelRest, json!({"url_path": path, "method": method}))
    }

    fn soap(id: u128, path: &str, action: &str) -> Arc<Connection> {
        channel(id, ConnectionKind::ChannelSoap, json!({"url_path": path, "soap_action": action}))
    }

    fn routes(channels: &[Arc<Connection>]) -> ChannelRoutes {
        let mut routes = ChannelRoutes::default();
        channels.iter().for_each(|channel| routes.put(channel));
        routes
    }

    fn found(routes: &ChannelRoutes, method: &str, path: &str) -> Option<u128> {
        routes.find(method, path, |_| "urn:b".to_owned()).id().map(|id| id.as_u128())
    }

    #[test]
    fn z40_the_most_literal_address_is_meant() {
        let mut routes = routes(&[
            rest(1, "/orders/{id}", "POST"),
            rest(2, "/orders/new", ""),
            rest(3, "/orders/{id}", "GET"),
            rest(4, "/", ""),
        ]);
        assert_eq!(found(&routes, "POST", "/orders/7"), Some(1));
        assert_eq!(found(&routes, "GET", "/orders/7"), Some(3));
        assert_eq!(found(&routes, "POST", "/orders/new"), Some(2));
        assert_eq!(found(&routes, "POST", "/"), Some(4));
        assert_eq!(found(&routes, "POST", "/orders"), None);
        assert!(
            matches!(routes.find("PUT", "/orders/7", |_| String::new()), At::OtherMethods(methods) if methods == "GET,POST")
        );
        routes.remove(&rest(1, "/orders/{id}", "POST"));
        assert!(
            matches!(routes.find("POST", "/orders/7", |_| String::new()), At::OtherMethods(methods) if methods == "GET")
        );
    }

    #[test]
    fn d16_over_soap_the_action_decides_too() {
        let routes = routes(&[soap(1, "/soap", "urn:a"), soap(2, "/soap", "urn:b")]);
        assert_eq!(found(&routes, "POST", "/soap"), Some(2));
        assert!(matches!(routes.find("POST", "/soap", |_| "urn:c".to_owned()), At::OtherAction));
        let mut routes = routes;
        routes.put(&soap(3, "/soap", ""));
        assert_eq!(routes.find("POST", "/soap", |_| "urn:c".to_owned()).id(), Some(ConnectionId::from_u128(3)));
        assert_eq!(found(&routes, "POST", "/soap"), Some(2), "the one that names it goes first");
    }

    #[test]
    fn d16_an_address_is_given_once() {
        let first = rest(1, "/orders/{id}", "POST");
        let free = |wanted: &Connection| check_among(wanted, [&*first].into_iter());
        assert_eq!(free(&rest(1, "/orders/{id}", "")), Ok(()), "its own");
        assert_eq!(free(&rest(2, "/orders/{id}", "GET")), Ok(()));
        let error = free(&rest(2, "/orders/{number}", "")).unwrap_err();
        assert_eq!(error.field, "url_path");
        assert!(error.allowed.contains("channel `c1`"), "{error}");
        let mllp = |id, address: &str| channel(id, ConnectionKind::ChannelMllp, json!({"address": address}));
        let (one, other) = (mllp(1, "127.0.0.1:2575"), mllp(2, "0.0.0.0:2575"));
        assert_eq!(check_among(&other, [&*one].into_iter()).unwrap_err().field, "address");
    }
}
