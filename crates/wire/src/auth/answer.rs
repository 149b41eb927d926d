//! What a token server answered (RFC 6749, section 5), read strictly: a token that could not be sent is no token.
//!
//! It must not know of sockets, and no error repeats what the server sent but for its error code.

use std::time::Duration;

use http::HeaderValue;
use serde_json::Value;

/// An answer longer than this is no answer of a token server.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long a token is used whose answer does not say (RFC 6749 only recommends `expires_in`).
const LIFE_DEFAULT: Duration = Duration::from_secs(300);
/// No token is used longer than this, whatever its answer says.
const LIFE_MAX: Duration = Duration::from_secs(24 * 3600);
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// `Authorization: Bearer …`, and how long it may be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) header: HeaderValue,
    pub(super) lives: Duration,
}

/// Why there is no token, for people.
pub(super) fn read(status: u16, body: &[u8]) -> Result<Granted, String> {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    if status != 200 {
        return Err(match json.as_ref().and_then(error_code) {
            Some(code) => format!("HTTP {status} ({code})"),
            None => format!("HTTP {status}"),
        });
    }
    let Some(Value::Object(answer)) = json else { return Err("an answer that is no JSON object".to_owned()) };
    let token = answer.get("access_token").and_then(Value::as_str).unwrap_or_default();
    let shaped = (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
    if !shaped {
        return Err("an answer without a usable `access_token`".to_owned());
    }
    // RFC 6749, section 7.1: a token of a type that the client does not understand must not be used.
    let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("Bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err("a token that is not of the type Bearer".to_owned());
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| "an unusable token".to_owned())?;
    header.set_sensitive(true);
    Ok(Granted { header, lives: life(answer.get("expires_in")) })
}

/// Some servers write the number as a text.
fn life(expires_in: Option<&Value>) -> Duration {
    let seconds = match expires_in {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    match seconds {
        Some(seconds) if seconds.is_finite() => Duration::from_secs_f64(seconds.clamp(0.0, LIFE_MAX.as_secs_f64())),
        _ => LIFE_DEFAULT,
    }
}

/// RFC 6749, section 5.2. A description is not repeated: it may tell what was sent.
fn error_code(answer: &Value) -> Option<&str> {
    let code = answer.get("error")?.as_str()?;
    let shaped =
        (1..=64).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    shaped.then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn granted(json: &str) -> (String, u64) {
        let granted = read(200, json.as_bytes()).unwrap();
        (granted.header.to_str().unwrap().to_owned(), granted.lives.as_secs())
    }

    #[test]
    fn an_answer_gives_a_header_and_its_life() {
        for (json, header, lives_s) in [
            (r#"{"access_token":"a.b","token_type":"Bearer","expires_in":3600}"#, "Bearer a.b", 3600),
            (r#"{"access_token":"t","token_type":"bearer","expires_in":"60"}"#, "Bearer t", 60),
            (r#"{"access_token":"t"}"#, "Bearer t", 300),
            (r#"{"access_token":"t","expires_in":-5}"#, "Bearer t", 0),
            (r#"{"access_token":"t","expires_in":1e300}"#, "Bearer t", 86_400),
            (r#"{"access_token":"t","expires_in":"soon"}"#, "Bearer t", 300),
        ] {
            assert_eq!(granted(json), (header.to_owned(), lives_s), "{json}");
        }
    }

    #[test]
    fn d32_what_is_no_token_is_said_without_repeating_it() {
        for (status, body, told) in [
            (401, r#"{"error":"invalid_client","error_description":"hunter2"}"#, "HTTP 401 (invalid_client)"),
            (400, r#"{"error":"hunter2 is wrong"}"#, "HTTP 400"),
            (302, "", "HTTP 302"),
            (204, "", "HTTP 204"),
            (500, "<html>hunter2", "HTTP 500"),
            (200, "<html>hunter2", "no JSON object"),
            (200, r#"["hunter2"]"#, "no JSON object"),
            (200, r#"{"access_token":""}"#, "access_token"),
            (200, r#"{"access_token":"hunter2\r\nX-A: b"}"#, "access_token"),
            (200, r#"{"access_token":"hunter2 x"}"#, "access_token"),
            (200, r#"{"access_token":5}"#, "access_token"),
            (200, r#"{"access_token":"hunter2","token_type":"mac"}"#, "not of the type Bearer"),
        ] {
            let error = read(status, body.as_bytes()).unwrap_err();
            assert!(error.contains(told) && !error.contains("hunter2"), "{body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(status in 100u16..600, body: Vec<u8>, token in "\\PC{0,20}", life: f64) {
            let _ = read(status, &body);
            let json = serde_json::json!({"access_token": token, "expires_in": life}).to_string();
            if let Ok(granted) = read(200, json.as_bytes()) {
                prop_assert!(granted.lives <= LIFE_MAX && granted.header.is_sensitive());
            }
        }
    }
}
