//! The section `security`: who we say we are, with secrets that go in and never come out (D46, D18).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::{applied, counts, file, planned, refusals, shown, warnings, with_project};
use postrider_config::{Action, SECTIONS, export};
use postrider_core::security::{SecurityKind, SecuritySpec};
use postrider_store::{ConfigChange, SecretOwner};
use serde_json::{Value, json};

const BASIC: &str = "security:\n  - {name: sec.a, type: basic_auth, username: lab, password: hunter2}\n";

fn keys(plan: &postrider_config::Plan) -> Value {
    Value::Object(plan.to_json())["changed"][0]["keys"].clone()
}

#[test]
fn d18_a_connection_and_its_definition_come_in_one_file_and_the_definition_is_made_first() {
    let mut state = with_project("default");
    let text = format!(
        "outgoing_rest:\n  - {{name: A, host: 'https://a', url_path: '', security: sec.a}}\n{BASIC}projects:\n  - name: billing\n"
    );
    let plan = applied(&text, &mut state);
    let made: Vec<&str> = plan.differences.iter().map(|difference| difference.section).collect();
    assert_eq!(made, ["projects", "security", "outgoing_rest"]);
    let ConfigChange::CreateSecurity(definition) = &plan.changes[1] else { panic!() };
    assert_eq!(definition.spec, SecuritySpec::BasicAuth { username: "lab".to_owned() });
    assert!(definition.sealed.is_empty() && !definition.written.contains_key("password"), "{definition:?}");
    assert_eq!(plan.secrets[&SecretOwner::Security(definition.id)].expose(), "hunter2");
    // Without it the connection is refused, and so is all of the file.
    let refused = refusals(
        "outgoing_rest:\n  - {name: A, host: 'https://a', url_path: '', security: sec.b}\npubsub_topic: [{name: t}]\n",
    );
    assert!(refused.contains("outgoing_rest[0].security: there is no `sec.b` in `security`"), "{refused}");
    // A definition of another project is none.
    let elsewhere =
        "outgoing_rest:\n  - {name: B, project: billing, host: 'https://a', url_path: '', security: sec.a}\n";
    assert!(planned(&file(elsewhere), &state).is_err());
}

// proves: D46
#[test]
fn d46_a_secret_is_compared_and_shown_nowhere() {
    let mut state = with_project("default");
    let first = applied(BASIC, &mut state);
    assert!(!Value::Object(first.to_json()).to_string().contains("hunter2"));
    let again = applied(BASIC, &mut state);
    assert_eq!((counts(&again), again.secrets.len()), ((0, 0, 1), 0));
    let other = applied(&BASIC.replace("hunter2", "hunter3"), &mut state);
    assert_eq!(keys(&other), json!([{"key": "password", "old": "***", "new": "***", "default": null}]));
    let ConfigChange::ReplaceSecurity { definition, version } = &other.changes[0] else { panic!() };
    assert_eq!(
        (definition.version, *version, other.secrets[&SecretOwner::Security(definition.id)].expose()),
        (2, 1, "hunter3")
    );
    let text = export(&state, SECTIONS, None).unwrap();
    assert!(text.contains("    password: Env.SEC_A_PASSWORD\n") && !text.contains("hunter"), "{text}");
    // A number without quotes is a text here, and no warning repeats it.
    assert_eq!(warnings("security: [{name: a, type: bearer, token: 0123}]\n"), Vec::<String>::new());
    for bad in
        ["{name: a, type: bearer, token: 'hunter2 x'}", "{name: a, type: basic_auth, username: u, token: hunter2}"]
    {
        let refused = refusals(&format!("security:\n  - {bad}\n"));
        assert!(!refused.contains("hunter2") && refused.contains("security[0]."), "{refused}");
    }
}

#[test]
fn d46_a_secret_that_is_left_out_stays_and_a_new_definition_must_have_one() {
    let mut state = with_project("default");
    applied(BASIC, &mut state);
    let renamed = "security:\n  - {name: sec.a, type: basic_auth, username: other}\n";
    let plan = applied(renamed, &mut state);
    assert_eq!(keys(&plan), json!([{"key": "username", "old": "lab", "new": "other", "default": null}]));
    assert!(plan.secrets.is_empty(), "nothing is sealed anew");
    assert_eq!(applied(renamed, &mut state).count(Action::Unchanged), 1);
    for text in [
        "security:\n  - {name: sec.a, type: bearer}\n",
        "security:\n  - {name: new, type: basic_auth, username: u}\n",
        "security:\n  - {name: new, type: basic_auth, username: u, password: Env.NOT_SET}\n",
    ] {
        let refused = shown(&planned(&file(text), &state).err().unwrap());
        let key = if text.contains("bearer") { "token" } else { "password" };
        assert!(refused.contains(&format!("security[0].{key}")), "{refused}");
    }
    // One that cannot be read any more is another one than any that is given.
    let mut unread = with_project("default");
    planned(&file(BASIC), &unread).ok().unwrap().changes.iter().for_each(|change| unread.make(change));
    assert_eq!(planned(&file(BASIC), &unread).ok().unwrap().count(Action::Changed), 1);
    assert_eq!(planned(&file(&BASIC.replace(", password: hunter2", "")), &unread).ok().unwrap().changes, []);
}

#[test]
fn d18_all_types_are_read_and_the_type_decides_over_the_keys() {
    let mut state = with_project("default");
    let text = "\
security:
  - {name: b, type: basic_auth, username: u, password: '', realm: lab}
  - {name: k, type: apikey, key: k}
  - {name: t, type: bearer, token: t}
  - {name: o, type: oauth2, token_url: 'https://a/t', client_id: c, client_secret: s, scopes: a  b, extra_params: {}, tls_verify: true}
";
    let plan = applied(text, &mut state);
    assert_eq!((plan.changes.len(), plan.warnings.len()), (4, 1), "`realm` has no effect");
    let project = state.project("default").unwrap().id;
    let kinds: Vec<SecurityKind> = state.security_of(project).map(|known| known.kind()).collect();
    assert_eq!(kinds, [SecurityKind::BasicAuth, SecurityKind::ApiKey, SecurityKind::OAuth2, SecurityKind::Bearer]);
    let exported = export(&state, SECTIONS, None).unwrap();
    assert!(exported.contains("    client_secret: Env.O_CLIENT_SECRET\n    scopes: a b\n"), "{exported}");
    assert!(!exported.contains("extra_params") && !exported.contains("tls_verify"), "{exported}");
    let refused = refusals(
        "security:\n  - {name: a, username: u}\n  - {name: b, type: basic, key: k}\n  - {name: c, type: bearer, client_id: x}\n",
    );
    let wanted = [
        "f:2:5: security[0].type: `type` is `missing`: allowed is one of basic_auth, apikey, bearer, oauth2, smart, wss, webhook_signature",
        "f:3:21: security[1].type: `type` is `basic`: allowed is one of basic_auth, apikey, bearer, oauth2, smart, wss, webhook_signature",
        "f:4:21: security[2].type: `type` is `bearer`: allowed is `oauth2` for an item with `client_id`",
    ];
    assert_eq!(refused.lines().collect::<Vec<_>>(), wanted);
}

// proves: D45
#[test]
fn d45_a_project_is_changed_by_a_file_and_comes_back_from_an_export() {
    let mut state = with_project("default");
    let text = "projects:\n  - {name: default, ownerEmail: ada@example.org, entitled: false, rateLimitPerSecond: 50}\n";
    let plan = applied(text, &mut state);
    let ConfigChange::ReplaceProject { was, now } = &plan.changes[0] else { panic!() };
    assert_eq!((was.id, now.settings.rate_limit_per_second, now.settings.entitled), (now.id, Some(50), false));
    assert_eq!(counts(&applied(text, &mut state)), (0, 0, 1));
    let exported = export(&state, SECTIONS, None).unwrap();
    assert!(
        exported.ends_with(
            "  - name: default\n    ownerEmail: ada@example.org\n    entitled: false\n    rateLimitPerSecond: 50\n"
        ),
        "{exported}"
    );
    let refused = refusals("projects:\n  - {name: x, ownerEmail: nobody, concurrency: 0}\n");
    assert!(refused.contains("projects[0].ownerEmail") && refused.contains("projects[0].concurrency"), "{refused}");
}
