//! The data directory: the store as a file, the room for it, and the key for secrets. Looked at beside whoever has it.

use std::collections::BTreeMap;
use std::path::Path;

use postrider_core::readiness::Room;
use postrider_engine::{SystemDice, Vault};
use postrider_store::sqlite::inspect::{Contents, Inspected, inspect};
use postrider_store::{SecretOwner, StoreError};

use super::finding::{Finding, listed};
use super::work::{Seen, Subject};
use crate::output;
use crate::serve::settings::Settings;
use crate::serve::store::StoreAddress;

const CHECK: &str = "store";
/// A log longer than this is one that nobody could begin anew.
const WAL_BYTES_MAX: u64 = 512 << 20;

/// `None`: there is no store here that could be read.
pub async fn look(data: &Path, settings: Option<&Settings>, findings: &mut Vec<Finding>) -> Option<Seen> {
    let named = std::env::var("POSTRIDER_STORE").ok();
    let database = match StoreAddress::parse(named.as_deref(), data) {
        Ok(StoreAddress::Sqlite(database)) => database,
        Ok(StoreAddress::Postgres(database)) => {
            let detail = format!("the store is the {}", database.shown());
            findings.push(Finding::note(
                CHECK,
                detail,
                "its own tools look after it; `/health/ready` says whether it answers",
            ));
            return None;
        }
        Err(error) => {
            findings.push(Finding::wrong(CHECK, error.to_string(), "name a store that this version has"));
            return None;
        }
    };
    // A first start that was cut off leaves an empty file.
    if !database.exists() || std::fs::metadata(&database).is_ok_and(|file| file.is_file() && file.len() == 0) {
        let detail = format!("there is no store at {}", database.display());
        findings.push(Finding::note(CHECK, detail, "the first `postrider serve` makes it; is --data right?"));
        return None;
    }
    permissions(data, findings);
    let file = database.clone();
    let inspected = match tokio::task::spawn_blocking(move || inspect(&file)).await {
        Ok(Ok(inspected)) => inspected,
        Ok(Err(error)) => {
            findings.push(unread(&error));
            return None;
        }
        Err(error) => {
            findings.push(Finding::wrong(CHECK, error.to_string(), "this is a defect of postrider"));
            return None;
        }
    };
    findings.extend(of_file(&database, &inspected));
    findings.extend(room(inspected.room));
    let contents = inspected.contents?;
    findings.extend(secrets(data, settings, &contents));
    Some(seen(contents))
}

/// A file that is whole is nothing to replace because somebody else may not read it.
fn unread(error: &StoreError) -> Finding {
    let action = match error {
        StoreError::Corrupt(_) => "restore a backup into another directory with `postrider restore`, and keep this one",
        _ => {
            "let whoever runs this read and write the file and its directory, and see that its disk is mounted for writing"
        }
    };
    Finding::wrong(CHECK, error.to_string(), action)
}

fn of_file(database: &Path, inspected: &Inspected) -> Vec<Finding> {
    let Inspected { schema_version, schema_expected, damage, database_bytes, wal_bytes, .. } = inspected;
    let mut findings = Vec::new();
    let name = database.display();
    findings.push(if damage.is_empty() {
        Finding::ok(CHECK, format!("{name}: {}, whole", output::bytes(*database_bytes)))
    } else {
        let action = "stop the server, keep the file, and restore a backup with `postrider restore`";
        Finding::wrong(CHECK, format!("{name} is damaged: {}", damage.join("; ")), action)
    });
    findings.push(match schema_version.cmp(schema_expected) {
        std::cmp::Ordering::Equal => Finding::ok(CHECK, format!("schema version {schema_version}")),
        std::cmp::Ordering::Less => {
            let detail =
                format!("schema version {schema_version}; this program makes it {schema_expected} at its next start");
            Finding::note(CHECK, detail, "take a backup before")
        }
        std::cmp::Ordering::Greater => {
            let detail =
                format!("schema version {schema_version}, and this program knows versions up to {schema_expected}");
            Finding::wrong(CHECK, detail, "use the program that wrote it, or a newer one")
        }
    });
    let size = output::bytes(*wal_bytes);
    findings.push(if *wal_bytes <= WAL_BYTES_MAX {
        Finding::ok(CHECK, format!("write-ahead log: {size}"))
    } else {
        let action =
            "look for a program that reads the file for long; it shrinks once that ends and nobody writes for a moment";
        Finding::wrong(CHECK, format!("the write-ahead log has {size}"), action)
    });
    findings
}

fn room(room: Room) -> Option<Finding> {
    match room {
        Room::Elsewhere => None,
        Room::Unknown => Some(Finding::wrong(
            "disk",
            "the disk does not say how much is free",
            "is the data directory still mounted?",
        )),
        Room::Bytes { free, min } => {
            let said = format!("{} free, `store_free_bytes_min` is {}", output::bytes(free), output::bytes(min));
            Some(if free >= min {
                Finding::ok("disk", said)
            } else {
                Finding::wrong("disk", format!("{said}: nothing is taken in"), "make room on the disk")
            })
        }
    }
}

/// Whether the key is there, is its owner's only, and opens what is sealed.
fn secrets(data: &Path, settings: Option<&Settings>, contents: &Contents) -> Vec<Finding> {
    const CHECK: &str = "secrets";
    let Some(settings) = settings else { return Vec::new() };
    let keyring = match settings.secrets_key.keyring_at(data) {
        Ok(keyring) => keyring,
        Err(failed) => return vec![Finding::wrong(CHECK, failed.message, "the server does not start without it")],
    };
    let has_key = keyring.first().is_some();
    let all = contents.definitions.len();
    let vault = Vault::new(keyring, SystemDice::shared());
    let opened = postrider_engine::opened_secrets(&vault, &contents.definitions, &[]);
    let closed: Vec<String> = contents
        .definitions
        .iter()
        .filter(|known| !opened.contains_key(&SecretOwner::Security(known.id)))
        .map(|known| known.name.clone())
        .collect();
    vec![match (all, closed.is_empty(), has_key) {
        (0, _, false) => Finding::ok(CHECK, "no key yet: one is made when the first secret is stored"),
        (_, true, _) => {
            Finding::ok(CHECK, format!("the key opens all {all} secrets: keep a copy of it apart from the store"))
        }
        (_, false, _) => {
            let detail = format!("no key that is here opens the secrets of {}", listed(&closed));
            Finding::wrong(
                CHECK,
                detail,
                "put the former key back (secrets.key, POSTRIDER_SECRETS_KEY), or set those secrets anew",
            )
        }
    }]
}

#[cfg(unix)]
fn permissions(data: &Path, findings: &mut Vec<Finding>) {
    use std::os::unix::fs::PermissionsExt;
    let open_to_others = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
    let key = data.join("secrets.key");
    if open_to_others(&key) {
        let detail = format!("{} can be read by others than its owner", key.display());
        findings.push(Finding::wrong("secrets", detail, format!("chmod 600 {}", key.display())));
    }
    if open_to_others(data) {
        let detail = format!("others than its owner may look into {}", data.display());
        findings.push(Finding::note(CHECK, detail, format!("chmod 700 {}", data.display())));
    }
}

#[cfg(not(unix))]
fn permissions(_: &Path, _: &mut Vec<Finding>) {}

fn seen(contents: Contents) -> Seen {
    let mut seen = Seen { unread_topics: contents.unread_topics, ..Seen::default() };
    let endpoints: BTreeMap<_, _> = contents.endpoints.into_iter().collect();
    for (known, _) in &contents.connections {
        match endpoints.get(&known.id) {
            Some(state) if state.off.is_some() => seen.switched_off.push(known.name.clone()),
            Some(state) if state.health.failing_since.is_some() => seen.failing.push(known.name.clone()),
            Some(_) | None => {}
        }
    }
    let subjects = contents.connections.into_iter().map(|(known, queue)| Subject {
        host: ["host", "address", "url"].iter().find_map(|key| known.written.get(*key)?.as_str().map(str::to_owned)),
        paused: known.paused,
        active: known.spec.is_active,
        name: known.name,
        waiting: queue.waiting,
        dead: queue.dead,
        oldest_waiting_since: queue.oldest_waiting_since,
    });
    seen.subjects = subjects.collect();
    seen
}
