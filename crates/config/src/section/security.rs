//! `security`: who we say we are to remote systems. The secret comes from the file or the environment, is compared with the one that is set,
//! and leaves this crate for the vault only; an export has a reference to the environment in its place.
//!
//! It must not know how a secret is sealed.

use postrider_core::SettingError;
use postrider_core::connection::check_name;
use postrider_core::id::{ProjectId, SecurityId};
use postrider_core::security::{SecurityDefinition, SecurityKind};
use postrider_core::settings::security::{ReadSecurity, parse};
use postrider_core::settings::{KeyDoc, Shape, differing, security_keys};
use postrider_store::{ConfigChange, SecretOwner};
use serde_json::{Map, Value};

use super::{Object, Section, Variant};
use crate::plan::Making;
use crate::state::State;

pub struct Security;

const TYPE: &str = "type";
const TYPES: &[&str] = &["basic_auth", "apikey", "bearer", "oauth2", "smart", "wss", "webhook_signature"];
const TYPE_KEY: KeyDoc = KeyDoc {
    name: TYPE,
    default: "none",
    allowed: "one of basic_auth, apikey, bearer, oauth2, smart, wss, webhook_signature",
    meaning: "How somebody proves who they are; it decides which other keys there are.",
    shape: Shape::OneOf(TYPES),
    is_secret: false,
};

fn object(kind: SecurityKind, name: &str, written: Map<String, Value>) -> Object {
    let mut keys = Map::new();
    keys.insert(TYPE.to_owned(), kind.as_str().into());
    keys.extend(differing(security_keys(kind).iter(), &written));
    Object { id: name.to_owned(), name: name.to_owned(), written, keys }
}

/// The type, and the other keys.
fn taken_apart(written: &Map<String, Value>) -> Result<(SecurityKind, Map<String, Value>), SettingError> {
    let mut keys = written.clone();
    let given = keys.shift_remove(TYPE).filter(|given| !given.is_null());
    let given = given.as_ref().map(|given| given.as_str().unwrap_or("no text")).unwrap_or("missing");
    let kind = SecurityKind::parse(given);
    let shown: String = given.chars().take(80).collect();
    kind.map(|kind| (kind, keys)).ok_or_else(|| SettingError::new(TYPE, shown, TYPE_KEY.allowed))
}

/// Keys of another type: told by the type, since their values may be secrets.
fn foreign(kind: SecurityKind, keys: &Map<String, Value>) -> Option<SettingError> {
    let is_own = |key: &str| security_keys(kind).iter().any(|doc| doc.name == key);
    let key = keys.keys().find(|key| !is_own(key))?;
    let has_it = |kind: &SecurityKind| security_keys(*kind).iter().any(|doc| doc.name == key);
    let other = SecurityKind::ALL.into_iter().find(has_it)?;
    Some(SettingError::new(TYPE, kind.as_str(), format!("`{}` for an item with `{key}`", other.as_str())))
}

fn read_again(wanted: &Object) -> Result<ReadSecurity, &'static str> {
    let (kind, keys) = taken_apart(&wanted.written).map_err(|_| "its type reads differently now")?;
    parse(kind, &keys).map_err(|_| "its keys read differently now")
}

impl Section for Security {
    fn name(&self) -> &'static str {
        "security"
    }

    fn meaning(&self) -> &'static str {
        "Credentials for remote systems, which connections name. A secret that is left out stays as it is set."
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        let of_all = SecurityKind::ALL.into_iter().flat_map(security_keys);
        let mut keys: Vec<&'static KeyDoc> = vec![&TYPE_KEY];
        // Two types may have a key of one name; a file has it once.
        for doc in of_all {
            if keys.iter().all(|known| known.name != doc.name) {
                keys.push(doc);
            }
        }
        keys
    }

    fn required(&self) -> &'static [&'static str] {
        &[TYPE]
    }

    fn variants(&self) -> Vec<Variant> {
        let required = |kind| match kind {
            SecurityKind::BasicAuth | SecurityKind::Wss => &["username"][..],
            SecurityKind::ApiKey | SecurityKind::Bearer | SecurityKind::WebhookSignature => &[],
            SecurityKind::OAuth2 => &["token_url", "client_id"],
            SecurityKind::Smart => &["token_url", "client_id", "key_id"],
        };
        let one =
            |kind: SecurityKind| Variant { name: kind.as_str(), keys: security_keys(kind), required: required(kind) };
        SecurityKind::ALL.into_iter().map(one).collect()
    }

    fn passed_over(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (&["realm", "is_active", "is_audit_log_active"], &[])
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        let mut errors: Vec<SettingError> = check_name(name).err().into_iter().collect();
        let kind = match taken_apart(written) {
            Ok((kind, keys)) => {
                match foreign(kind, &keys) {
                    Some(error) => errors.push(error),
                    None => errors.extend(parse(kind, &keys).err().unwrap_or_default()),
                }
                kind
            }
            Err(error) => {
                errors.push(error);
                return Err(errors);
            }
        };
        if errors.is_empty() { Ok(vec![object(kind, name, written.clone())]) } else { Err(errors) }
    }

    /// Nobody can read a secret back to write it again, so one that is left out is the one that is set.
    fn completed(&self, wanted: &mut Object, former: Option<&Object>) -> Result<(), SettingError> {
        let Ok((kind, keys)) = taken_apart(&wanted.written) else { return Ok(()) };
        let secret = kind.secret_key();
        if keys.get(secret).is_some_and(|given| !given.is_null()) {
            return Ok(());
        }
        let former = former.filter(|former| former.keys.get(TYPE) == wanted.keys.get(TYPE));
        let Some(set) = former.and_then(|former| former.keys.get(secret)) else {
            let doc = security_keys(kind).iter().find(|doc| doc.name == secret);
            return Err(SettingError::new(secret, "missing", doc.map_or("a secret", |doc| doc.allowed)));
        };
        wanted.keys.insert(secret.to_owned(), set.clone());
        Ok(())
    }

    fn current(&self, state: &State, project: ProjectId) -> Vec<Object> {
        let one = |known: &SecurityDefinition| {
            let (kind, mut written) = (known.kind(), known.written.clone());
            // Null: there is one, and it is not known here.
            let secret = state.secret(SecretOwner::Security(known.id)).map(|secret| Value::from(secret.expose()));
            written.insert(TYPE.to_owned(), kind.as_str().into());
            let mut object = object(kind, &known.name, written);
            object.keys.insert(kind.secret_key().to_owned(), secret.unwrap_or(Value::Null));
            object
        };
        state.security_of(project).map(one).collect()
    }

    fn has(&self, state: &State, project: ProjectId, id: &str) -> bool {
        state.security(project, id).is_some()
    }

    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let ReadSecurity { spec, written, secret } = read_again(wanted)?;
        let known = making.state.security(project, &wanted.name);
        let id = known.map_or_else(|| SecurityId::new(making.now, (making.bits)()), |known| known.id);
        if let Some(secret) = secret {
            making.secrets.borrow_mut().insert(SecretOwner::Security(id), secret);
        }
        Ok(match known {
            Some(known) => {
                let version = known.version.saturating_add(1);
                let definition = SecurityDefinition { written, spec, version, updated_at: making.now, ..known.clone() };
                ConfigChange::ReplaceSecurity { definition: Box::new(definition), version: known.version }
            }
            None => ConfigChange::CreateSecurity(Box::new(SecurityDefinition {
                id,
                project_id: project,
                name: wanted.name.clone(),
                written,
                spec,
                // Whoever applies this seals the secret and puts it here.
                sealed: String::new(),
                version: 1,
                created_at: making.now,
                updated_at: making.now,
            })),
        })
    }
}
