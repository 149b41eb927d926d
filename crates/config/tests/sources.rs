//! The section `webhook_source`: addresses with secrets that go in and never come out (R12, D18, D46).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::{applied, counts, file, planned, refusals, shown, with_project};
use postrider_config::{SECTIONS, State, export};
use postrider_store::{ConfigChange, SecretOwner, SourceRow};
use serde_json::Value;

const GITHUB: &str =
    "webhook_source:\n  - {name: GitHub, provider: github, secret: hunter2hunter2, replay_seconds: 60}\n";
/// What the address ends with.
const TOKEN: &str = "in_0123456789abcdefghijklmnopqrstuvwxyz";

fn row(state: &State) -> SourceRow {
    let project = state.project("default").unwrap().id;
    state.source(project, "GitHub").unwrap().clone()
}

fn refused(text: &str, state: &State) -> String {
    shown(&planned(&file(text), state).err().unwrap())
}

// proves: R12
#[test]
fn r12_a_source_is_made_once_and_changed_under_the_same_address() {
    let mut state = with_project("default");
    let plan = applied(GITHUB, &mut state);
    let ConfigChange::CreateSource(made) = &plan.changes[0] else { panic!() };
    assert_eq!(made.source.spec.topic.as_str(), "incoming.github");
    assert!(made.keys.sealed.is_none() && !made.source.written.contains_key("secret"), "{made:?}");
    assert_eq!(plan.secrets[&SecretOwner::Source(made.source.id)].expose(), "hunter2hunter2");
    assert!(plan.warnings[0].message.contains("rotate-token"), "{:?}", plan.warnings[0].message);
    assert_eq!(counts(&applied(GITHUB, &mut state)), (0, 0, 1));
    let changed = applied(&GITHUB.replace("replay_seconds: 60", "enabled: false"), &mut state);
    let ConfigChange::ReplaceSource { row: anew, version: 1 } = &changed.changes[0] else { panic!() };
    assert_eq!((anew.source.id, anew.source.version), (made.source.id, 2));
    assert_eq!(anew.keys.token_hash, made.keys.token_hash);
    assert!(!anew.source.spec.enabled && changed.secrets.is_empty() && changed.warnings.is_empty());
}

// proves: D46
#[test]
fn d46_secret_and_token_are_compared_and_shown_nowhere() {
    let mut state = with_project("default");
    let with_token = |token: &str| GITHUB.replace("replay_seconds: 60", &format!("token: {token}"));
    let plan = applied(&with_token(TOKEN), &mut state);
    assert!(plan.warnings.is_empty(), "whoever chose it knows it");
    let text = Value::Object(plan.to_json()).to_string() + &export(&state, SECTIONS, None).unwrap();
    assert!(
        !text.contains("hunter2") && !text.contains("in_0123") && text.contains("secret: Env.GITHUB_SECRET"),
        "{text}"
    );
    assert!(!text.contains("token:"), "a copy of the file elsewhere needs no token: {text}");
    let former = row(&state);
    assert_eq!(counts(&applied(&with_token(TOKEN), &mut state)), (0, 0, 1));
    let other = applied(&with_token(&TOKEN.replace("in_", "inx")), &mut state);
    assert!(other.warnings[0].message.contains("goes on for a day"), "{:?}", other.warnings[0].message);
    let kept = row(&state).keys.former_token.unwrap();
    assert_eq!(kept.0, former.keys.token_hash);
    // Without them both stay.
    let bare = "webhook_source: [{name: GitHub, provider: github}]\n";
    assert_eq!(counts(&applied(bare, &mut state)), (0, 0, 1));
    for bad in ["token: short", "token: [a]", "secret: 12", "token: 'with space with space with space with space'"] {
        let text = format!("webhook_source:\n  - {{name: X, provider: github, {bad}}}\n");
        let refused = planned(&file(&text), &state).err().map(|refused| shown(&refused)).unwrap_or_default();
        assert!(refused.is_empty() == (bad == "secret: 12"), "{bad}: {refused}");
        assert!(!refused.contains("short") && !refused.contains("with space"), "{refused}");
    }
}

#[test]
fn r12_what_would_be_another_source_is_refused_with_its_field() {
    let mut state = with_project("default");
    assert!(refusals("webhook_source: [{name: X, provider: github}]\n").contains("webhook_source[0].secret: "));
    assert!(
        refusals("webhook_source: [{name: X, provider: none, secret: s}]\n").contains("webhook_source[0].secret: ")
    );
    assert!(refusals("webhook_source: [{name: X, provider: hithub, secret: s}]\n").contains("one of github"));
    assert!(refusals("webhook_source: [{name: X, secret: s}]\n").contains("webhook_source[0].provider: "));
    applied(GITHUB, &mut state);
    let other_topic = refused(&GITHUB.replace("replay_seconds: 60", "topic: other"), &state);
    assert!(
        other_topic.contains("webhook_source[0].topic") && other_topic.contains("`incoming.github`, which stays"),
        "{other_topic}"
    );
    let other_provider = refused(&GITHUB.replace("provider: github", "provider: gitlab"), &state);
    assert!(other_provider.contains("`github`, which stays"), "{other_provider}");
}

// proves: R12
#[test]
fn r12_a_source_its_endpoint_and_its_destination_are_one_file_that_comes_back() {
    let mut state = with_project("default");
    let text = format!(
        "{GITHUB}webhook_endpoint:\n  - {{name: CI, url: 'https://ci.example.org/hooks', retry_preset: forward, payload: as_arrived}}\n\
         webhook_subscription:\n  - {{name: CI of GitHub, endpoint: CI, event_type: incoming.github, max_attempts: 3, retry_delays: [60, 300]}}\n"
    );
    assert_eq!(counts(&applied(&text, &mut state)), (3, 0, 0));
    let exported = export(&state, SECTIONS, Some("default")).unwrap().replace("Env.GITHUB_SECRET", "hunter2hunter2");
    assert_eq!(counts(&applied(&exported, &mut state)), (0, 0, 3), "{exported}");
    let mut elsewhere = with_project("default");
    assert_eq!(counts(&applied(&exported, &mut elsewhere)), (3, 0, 0));
    assert_eq!(export(&elsewhere, SECTIONS, Some("default")), export(&state, SECTIONS, Some("default")));
}
