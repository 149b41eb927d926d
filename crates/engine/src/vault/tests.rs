//! What is sealed opens again in its place and nowhere else, whatever is changed about it.

use std::sync::Mutex;

use super::*;
use crate::dice::SystemDice;

const FIRST: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const SECOND: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

fn vault(keys: &str) -> Vault {
    Vault::new(Keyring::parse("KEYS", keys).unwrap(), SystemDice::seeded(7))
}

fn place(project: u128, purpose: &str) -> Place<'_> {
    Place { project_id: ProjectId::from_u128(project), purpose }
}

#[test]
fn d46_what_is_sealed_shows_nothing_and_opens_again() {
    let vault = vault(FIRST);
    for text in ["", "hunter2", "päss\0wörd", &"x".repeat(SECRET_BYTES_MAX)] {
        let secret = Secret::new(text);
        let (one, two) = (vault.seal(&secret, place(1, "a")).unwrap(), vault.seal(&secret, place(1, "a")).unwrap());
        assert_ne!(one, two, "the same secret twice must not be recognised");
        assert!(text.is_empty() || !one.as_str().contains(text));
        for sealed in [one, two] {
            let stored = Sealed::from_stored(sealed.as_str());
            assert_eq!(vault.open(&stored, place(1, "a")), Ok(secret.clone()));
        }
    }
    let long = Secret::new("x".repeat(SECRET_BYTES_MAX + 1));
    assert_eq!(vault.seal(&long, place(1, "a")), Err(VaultError::TooLong { given: SECRET_BYTES_MAX + 1 }));
}

#[test]
fn d46_it_opens_in_its_own_place_only() {
    let vault = vault(FIRST);
    let sealed = vault.seal(&Secret::new("s"), place(1, "a")).unwrap();
    for elsewhere in [place(2, "a"), place(1, "b"), place(1, ""), place(1, "aa")] {
        assert_eq!(vault.open(&sealed, elsewhere), Err(VaultError::Refused), "{elsewhere:?}");
    }
}

#[test]
fn d46_any_change_is_noticed() {
    let vault = vault(FIRST);
    let sealed = vault.seal(&Secret::new("secret"), place(1, "a")).unwrap();
    let text = sealed.as_str();
    for at in 0..text.len() {
        for other in ['A', 'B', '.'] {
            let mut changed: Vec<char> = text.chars().collect();
            if changed[at] == other {
                continue;
            }
            changed[at] = other;
            let changed = Sealed::from_stored(changed.into_iter().collect::<String>());
            assert!(vault.open(&changed, place(1, "a")).is_err(), "{at} {other}");
        }
    }
    for text in ["", "v1", "v1.", "v1..", "v2.aa.AAAA", "plain text", &text[..text.len() - 1]] {
        assert!(vault.open(&Sealed::from_stored(text), place(1, "a")).is_err(), "{text}");
    }
}

#[test]
fn d46_the_first_key_seals_and_the_others_still_open() {
    let before = vault(FIRST);
    let sealed = before.seal(&Secret::new("s"), place(1, "a")).unwrap();
    assert!(before.is_current(&sealed));
    let rotated = vault(&format!("{SECOND},{FIRST}"));
    assert_eq!(rotated.open(&sealed, place(1, "a")), Ok(Secret::new("s")));
    assert!(!rotated.is_current(&sealed));
    let again = rotated.seal(&Secret::new("s"), place(1, "a")).unwrap();
    let resealed = rotated.reseal(&sealed, place(1, "a")).unwrap().unwrap();
    assert_eq!(rotated.reseal(&resealed, place(1, "a")), Ok(None));
    assert_eq!(rotated.reseal(&sealed, place(2, "a")), Err(VaultError::Refused));
    let after = vault(SECOND);
    assert_eq!(after.open(&resealed, place(1, "a")), Ok(Secret::new("s")));
    assert_eq!(after.open(&again, place(1, "a")), Ok(Secret::new("s")));
    let key_id = sealed.key_id().unwrap().to_owned();
    assert_eq!(after.open(&sealed, place(1, "a")), Err(VaultError::UnknownKey { key_id }));
}

#[test]
fn keys_are_read_in_either_writing_and_never_shown() {
    let ring = Keyring::parse("KEYS", &format!("# the newest first\n{SECOND}\n\n{FIRST}, {FIRST}\n")).unwrap();
    let shown = format!("{ring:?}");
    assert_eq!(shown.matches("MasterKey(").count(), 2, "{shown}");
    assert!(!shown.contains("0101") && !shown.contains("AgIC"), "{shown}");
    assert_eq!(ring.first(), Keyring::parse("KEYS", &"02".repeat(32)).unwrap().first());
    for (text, told) in [("", "empty"), ("# only a remark", "empty"), ("hunter2-hunter2", "unreadable: key 1")] {
        let error = Keyring::parse("POSTRIDER_SECRETS_KEY", text).unwrap_err().to_string();
        assert!(error.contains("`POSTRIDER_SECRETS_KEY`") && error.contains(told), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let many: Vec<String> = (1..=17).map(|n| format!("{n:02x}").repeat(32)).collect();
    assert!(Keyring::parse("KEYS", &many.join(",")).unwrap_err().to_string().contains("secrets_keys_max"));
}

#[derive(Default)]
struct Home(Mutex<Vec<MasterKey>>, bool);

impl KeyHome for Home {
    fn keep(&self, key: &MasterKey) -> Result<(), String> {
        if self.1 {
            return Err("disk full".to_owned());
        }
        self.0.lock().unwrap().push(key.clone());
        Ok(())
    }
}

#[test]
fn d46_where_no_key_is_configured_one_is_made_on_first_need_and_kept_before_it_seals() {
    let home = Arc::new(Home::default());
    let vault = Vault::new(Keyring::default().kept_in(home.clone()), SystemDice::seeded(1));
    assert!(home.0.lock().unwrap().is_empty(), "nothing was needed yet");
    let sealed = vault.seal(&Secret::new("s"), place(1, "a")).unwrap();
    vault.seal(&Secret::new("t"), place(1, "a")).unwrap();
    let kept = home.0.lock().unwrap().clone();
    assert_eq!(kept.len(), 1);
    let next_start = Vault::new(Keyring::parse("FILE", &kept[0].written()).unwrap(), SystemDice::seeded(2));
    assert_eq!(next_start.open(&sealed, place(1, "a")), Ok(Secret::new("s")));

    let full = Vault::new(Keyring::default().kept_in(Arc::new(Home(Mutex::default(), true))), SystemDice::seeded(1));
    let refused = full.seal(&Secret::new("s"), place(1, "a"));
    assert_eq!(refused, Err(VaultError::CannotKeep("disk full".to_owned())));
    let homeless = Vault::new(Keyring::default(), SystemDice::seeded(1));
    assert_eq!(homeless.seal(&Secret::new("s"), place(1, "a")), Err(VaultError::NoKey));
}
