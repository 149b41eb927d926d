//! `webhook_source`: addresses at which somebody else's webhooks come in. Their destinations are items of `webhook_subscription`.
//!
//! Secret and token come from the file or the environment. The secret is compared with the one that is set and leaves this crate for the vault only;
//! of the token nobody keeps more than a hash, so that is what is compared. It must not know how a webhook is verified.

use postrider_core::id::{ProjectId, SourceId};
use postrider_core::settings::source::is_token;
use postrider_core::settings::{KeyDoc, SOURCE_KEYS, SOURCE_SECRET_KEYS, differing};
use postrider_core::source::{SecretOrigin, Source, SourceSpec};
use postrider_core::{Secret, SettingError, Wait};
use postrider_store::{ConfigChange, SecretOwner, SourceKeys, SourceRow};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{Object, Section};
use crate::plan::Making;
use crate::state::State;

pub struct Sources;

const SECRET: &str = "secret";
const TOKEN: &str = "token";
const TOPIC: &str = "topic";
const PROVIDER: &str = "provider";
/// For so long the former address and the former secret go on, as when a person rotates them.
const OVERLAP: Wait = Wait::from_secs(86_400);

/// What an item says, taken apart.
struct Item {
    /// Without secret and token.
    written: Map<String, Value>,
    secret: Option<String>,
    token: Option<String>,
}

fn keys() -> impl Iterator<Item = &'static KeyDoc> {
    SOURCE_KEYS.iter().chain(SOURCE_SECRET_KEYS)
}

fn allowed(key: &str) -> &'static str {
    keys().find(|doc| doc.name == key).map_or("", |doc| doc.allowed)
}

fn taken_apart(written: &Map<String, Value>) -> Result<Item, Vec<SettingError>> {
    let mut written = written.clone();
    let mut errors = Vec::new();
    let mut take = |key: &'static str| match written.shift_remove(key).filter(|value| !value.is_null()) {
        None => None,
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        Some(_) => {
            errors.push(SettingError::new(key, "no text", allowed(key)));
            None
        }
    };
    let (secret, token) = (take(SECRET), take(TOKEN));
    if token.as_deref().is_some_and(|token| !is_token(token)) {
        errors.push(SettingError::new(TOKEN, "another text", allowed(TOKEN)));
    }
    if errors.is_empty() { Ok(Item { written, secret, token }) } else { Err(errors) }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The token is compared by its hash, and neither is ever shown.
fn hash_value(hash: &[u8; 32]) -> Value {
    hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn object(name: &str, spec: &SourceSpec, written: &Map<String, Value>) -> Object {
    let mut keys = differing(SOURCE_KEYS.iter(), written);
    keys.insert(TOPIC.to_owned(), spec.topic.as_str().into());
    Object { id: name.to_owned(), name: name.to_owned(), written: written.clone(), keys }
}

impl Section for Sources {
    fn name(&self) -> &'static str {
        "webhook_source"
    }

    fn meaning(&self) -> &'static str {
        "Addresses at which a provider's webhooks come in. What comes in is a message of the source's topic; whoever is to get it is a \
         `webhook_subscription` with that topic as its `event_type`, to an endpoint with `retry_preset: forward` and `payload: as_arrived`, or to \
         any other connection."
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        keys().collect()
    }

    fn required(&self) -> &'static [&'static str] {
        &[PROVIDER]
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        let mut rest = written.clone();
        rest.retain(|key, _| key != SECRET && key != TOKEN);
        let item = taken_apart(written);
        let spec = SourceSpec::parse(name, &rest);
        let (item, spec) = match (item, spec) {
            (Ok(item), Ok(spec)) => (item, spec),
            (item, spec) => {
                return Err(item.err().into_iter().chain(spec.err()).flatten().collect());
            }
        };
        if spec.provider.secret_origin() == SecretOrigin::Nobody && item.secret.is_some() {
            return Err(vec![SettingError::new(SECRET, "given", allowed(SECRET))]);
        }
        let mut object = object(name, &spec, &item.written);
        object.written.clone_from(written);
        if let Some(secret) = item.secret {
            object.keys.insert(SECRET.to_owned(), secret.into());
        }
        if let Some(token) = item.token {
            object.keys.insert(TOKEN.to_owned(), hash_value(&hash(&token)));
        }
        Ok(vec![object])
    }

    /// What nobody can read back to write it again stays as it is set; provider and topic stay whatever is written.
    fn completed(&self, wanted: &mut Object, former: Option<&Object>) -> Result<(), SettingError> {
        let is_given = |wanted: &Object, key: &str| wanted.written.get(key).is_some_and(|value| !value.is_null());
        let Some(former) = former else {
            let is_verified = wanted.keys.get(PROVIDER).and_then(Value::as_str) != Some("none");
            return match is_verified && !is_given(wanted, SECRET) {
                true => Err(SettingError::new(SECRET, "missing", allowed(SECRET))),
                false => Ok(()),
            };
        };
        for key in [SECRET, TOKEN, TOPIC] {
            if let Some(set) = former.keys.get(key).filter(|_| !is_given(wanted, key)) {
                wanted.keys.insert(key.to_owned(), set.clone());
            }
        }
        for key in [PROVIDER, TOPIC] {
            let (set, given) = (former.keys.get(key), wanted.keys.get(key));
            if let Some(set) = set.and_then(Value::as_str).filter(|_| set != given) {
                return Err(SettingError::new(key, "another", format!("`{set}`, which stays: make another source")));
            }
        }
        Ok(())
    }

    fn to_do(&self, wanted: &Object, former: Option<&Object>) -> Option<String> {
        let name = &wanted.name;
        match former {
            None if !wanted.keys.contains_key(TOKEN) => Some(format!(
                "the source `{name}` gets an address that nobody has been shown: \
                 `postrider sources rotate-token` shows a new one, to be given to the provider"
            )),
            Some(former) if former.keys.get(TOKEN) != wanted.keys.get(TOKEN) => Some(format!(
                "the former address of the source `{name}` goes on for a day: give the provider the new one"
            )),
            _ => None,
        }
    }

    fn current(&self, state: &State, project: ProjectId) -> Vec<Object> {
        let one = |row: &SourceRow| {
            let source = &row.source;
            let mut object = object(&source.name, &source.spec, &source.written);
            let secret = state.secret(SecretOwner::Source(source.id)).map(|secret| Value::from(secret.expose()));
            // Null: there is one, and it is not known here.
            if secret.is_some() || row.keys.sealed.is_some() {
                object.keys.insert(SECRET.to_owned(), secret.unwrap_or(Value::Null));
            }
            object.keys.insert(TOKEN.to_owned(), hash_value(&row.keys.token_hash));
            object
        };
        state.sources_of(project).map(one).collect()
    }

    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let Item { mut written, secret, token } =
            taken_apart(&wanted.written).map_err(|_| "its secrets read differently now")?;
        let topic = wanted.keys.get(TOPIC).cloned().unwrap_or_default();
        // As it is now: a later name must not make it another one.
        written.insert(TOPIC.to_owned(), topic);
        let spec = SourceSpec::parse(&wanted.name, &written).map_err(|_| "its keys read differently now")?;
        let known = making.state.source(project, &wanted.name);
        let id = known.map_or_else(|| SourceId::new(making.now, (making.bits)()), |known| known.source.id);
        let owner = SecretOwner::Source(id);
        let is_set = |secret: &String| making.state.secret(owner).is_some_and(|set| set.expose() == secret);
        let new_secret = secret.filter(|secret| !is_set(secret));
        let until = making.now + OVERLAP;
        let new_hash = token.as_deref().map(hash);
        let change = match known {
            Some(known) => {
                let mut keys = known.keys.clone();
                if let Some(new_hash) = new_hash.filter(|new| *new != keys.token_hash) {
                    keys.former_token = Some((keys.token_hash, until));
                    keys.token_hash = new_hash;
                }
                if new_secret.is_some() {
                    keys.former_sealed = keys.sealed.clone().map(|sealed| (sealed, until));
                }
                let version = known.source.version;
                let source = Source {
                    written,
                    spec,
                    version: version.saturating_add(1),
                    updated_at: making.now,
                    ..known.source.clone()
                };
                ConfigChange::ReplaceSource { row: Box::new(SourceRow { source, keys }), version }
            }
            None => {
                let token_hash = new_hash.unwrap_or_else(|| hash(&made_token(making)));
                // Whoever applies this seals the secret and puts it here.
                let keys = SourceKeys { token_hash, ..SourceKeys::default() };
                let source = Source {
                    id,
                    project_id: project,
                    name: wanted.name.clone(),
                    written,
                    spec,
                    version: 1,
                    created_at: making.now,
                    updated_at: making.now,
                };
                ConfigChange::CreateSource(Box::new(SourceRow { source, keys }))
            }
        };
        if let Some(secret) = new_secret {
            making.secrets.borrow_mut().insert(owner, Secret::new(secret));
        }
        Ok(change)
    }

    /// An address is for one server: a file that made it again elsewhere would need a token that nobody knows.
    fn items(&self, mut objects: Vec<Object>) -> Vec<Object> {
        for object in &mut objects {
            object.keys.shift_remove(TOKEN);
        }
        objects
    }
}

/// 256 random bits that nobody is shown.
fn made_token(making: &Making<'_>) -> String {
    format!("{:032x}{:032x}", (making.bits)(), (making.bits)())
}
