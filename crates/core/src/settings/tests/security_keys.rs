//! Security definitions as people write them: what is read, what is refused, and that a secret is in neither.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::security::{ClientAuth, SecurityKind, SecuritySpec};
use crate::settings::security::{ReadSecurity, parse};

fn read(kind: SecurityKind, keys: Value) -> Result<ReadSecurity, String> {
    parse(kind, keys.as_object().unwrap())
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

#[test]
fn each_kind_is_read_and_its_secret_taken_apart() {
    for (kind, keys) in [
        (SecurityKind::BasicAuth, json!({"username": "lab", "password": "hunter2"})),
        (SecurityKind::ApiKey, json!({"key": "hunter2", "header": "Ocp-Apim-Subscription-Key"})),
        (SecurityKind::Bearer, json!({"token": "hunter2"})),
        (
            SecurityKind::OAuth2,
            json!({"token_url": "https://a.example/token", "client_id": "c", "client_secret": "hunter2"}),
        ),
    ] {
        let read = read(kind, keys.clone()).unwrap();
        assert_eq!(read.spec.kind(), kind);
        assert_eq!(read.secret.as_ref().unwrap().expose(), "hunter2");
        assert_eq!(read.written.len(), keys.as_object().unwrap().len() - 1);
        assert!(!format!("{read:?}").contains("hunter2"), "{read:?}");
        assert_eq!(SecurityKind::parse(kind.as_str()), Some(kind));
    }
    let SecuritySpec::ApiKey { header } = read(SecurityKind::ApiKey, json!({"key": "k"})).unwrap().spec else {
        panic!()
    };
    assert_eq!(header, "X-API-Key");
    assert!(read(SecurityKind::BasicAuth, json!({"username": "sk_live"})).unwrap().secret.is_none());
    let empty = read(SecurityKind::BasicAuth, json!({"username": "sk_live", "password": ""})).unwrap();
    assert_eq!(empty.secret.unwrap().expose(), "");
}

#[test]
fn oauth2_takes_scopes_as_text_or_list_and_further_parameters() {
    let keys = json!({
        "token_url": "https://a.example/token?x=1", "client_id": "c", "client_secret": "s", "scopes": "read  write",
        "extra_params": {"audience": "https://api"}, "client_auth": "body", "tls_ca_path": "/etc/ca.pem",
    });
    let SecuritySpec::OAuth2(client) = read(SecurityKind::OAuth2, keys).unwrap().spec else { panic!() };
    assert_eq!(client.scopes, ["read", "write"]);
    assert_eq!(client.extra_params, [("audience".to_owned(), "https://api".to_owned())]);
    assert_eq!((client.client_auth, client.tls.ca_path.as_deref()), (ClientAuth::Body, Some("/etc/ca.pem")));
}

#[test]
fn z03_refusals_name_the_field_and_never_the_secret() {
    let oauth2 = json!({"token_url": "https://a.example/token", "client_id": "c"});
    let with = |key: &str, value: Value| {
        let mut keys = oauth2.clone();
        keys[key] = value;
        keys
    };
    for (kind, keys, part) in [
        (SecurityKind::BasicAuth, json!({"password": "hunter2"}), "`username` is `missing`"),
        (SecurityKind::BasicAuth, json!({"username": "a:b", "password": "hunter2"}), "no colon"),
        (SecurityKind::BasicAuth, json!({"username": "a", "password": "hunter2\n"}), "`password` is `***`"),
        (SecurityKind::BasicAuth, json!({"username": "a", "password": ["hunter2"]}), "`password` is `***`"),
        (SecurityKind::BasicAuth, json!({"username": "a", "pasword": "hunter2"}), "did you mean `password`"),
        (SecurityKind::ApiKey, json!({"key": ""}), "`key` is `***`"),
        (SecurityKind::ApiKey, json!({"key": "hunter2é"}), "visible ASCII"),
        (SecurityKind::ApiKey, json!({"key": "hunter2", "header": "Content-Length"}), "`header`"),
        (SecurityKind::ApiKey, json!({"key": "hunter2", "header": "a b"}), "`header`"),
        (SecurityKind::Bearer, json!({"token": "hunter2 "}), "`token` is `***`"),
        (SecurityKind::OAuth2, json!({"client_secret": "hunter2"}), "`token_url` is `missing`"),
        (SecurityKind::OAuth2, with("token_url", json!("https://u:hunter2@a.example/")), "user name"),
        (SecurityKind::OAuth2, with("scopes", json!(["a b"])), "`scopes`"),
        (SecurityKind::OAuth2, with("scopes", json!(5)), "`scopes`"),
        (SecurityKind::OAuth2, with("extra_params", json!({"client_secret": "hunter2"})), "`extra_params`"),
        (SecurityKind::OAuth2, with("client_auth", json!("jwt")), "one of basic, body"),
    ] {
        let refused = read(kind, keys.clone()).unwrap_err();
        assert!(refused.contains(part), "{keys}: {refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}

proptest! {
    #[test]
    fn z03_whatever_the_secret_is_nothing_shows_it(secret in "\\PC{8,40}|[\\x00-\\x7f]{8,40}", kind in 0usize..4) {
        let kind = SecurityKind::ALL[kind];
        let mut keys = json!({"username": "u", "token_url": "https://a.example/", "client_id": "c", "header": "X-K"});
        keys[kind.secret_key()] = json!(secret);
        let known: Vec<&str> = security_keys(kind).iter().map(|doc| doc.name).collect();
        keys.as_object_mut().unwrap().retain(|key, _| known.contains(&key.as_str()));
        let shown = match read(kind, keys) {
            Ok(read) => {
                prop_assert_eq!(read.secret.as_ref().map(|secret| secret.expose()), Some(secret.as_str()));
                format!("{read:?}")
            }
            Err(refused) => refused,
        };
        // A text that is in every message anyway shows nothing.
        prop_assume!(!"visible ASCII characters and spaces, no control characters at most allowed is".contains(&secret));
        prop_assert!(!shown.contains(&secret), "{}", shown);
    }
}

/// What a schema says of a key of OAuth 2 is what the reader takes.
#[test]
fn z03_the_shape_of_a_key_of_oauth2_is_what_is_read() {
    let is_taken = |key: &str, value: Value| {
        let mut keys = json!({"token_url": "https://a.example/token", "client_id": "c", "client_secret": "s"});
        keys[key] = value;
        read(SecurityKind::OAuth2, keys).is_ok()
    };
    for doc in security_keys(SecurityKind::OAuth2) {
        let (taken, refused) = match doc.shape {
            Shape::Flag => (vec![json!(true)], vec![json!("true"), json!(1)]),
            Shape::OneOf(words) => (words.iter().map(|word| json!(word)).collect(), vec![json!("other"), json!(1)]),
            Shape::Words { count_max } => (
                vec![json!("a b"), json!([]), json!(vec!["a"; count_max])],
                vec![json!(1), json!([1]), json!(vec!["a"; count_max + 1])],
            ),
            Shape::Pairs { count_max } => {
                let pairs = |count: usize| {
                    (0..count).map(|at| (format!("p{at}"), json!("v"))).collect::<serde_json::Map<_, _>>()
                };
                (vec![pairs(count_max).into()], vec![json!("a"), json!({"a": 1}), pairs(count_max + 1).into()])
            }
            _ => (vec![], vec![json!(1), json!(true), json!([])]),
        };
        for value in taken {
            assert!(is_taken(doc.name, value.clone()), "{}: {value}", doc.name);
        }
        for value in refused {
            assert!(!is_taken(doc.name, value.clone()), "{}: {value}", doc.name);
        }
    }
}
