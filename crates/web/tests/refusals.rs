//! What callers do wrong, over a real socket: each is answered with a problem that names what was wrong.

mod parts;

use std::time::Duration;

use parts::api::{Api, CONNECTIONS, DELIVERIES, field};
use parts::read_answer;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

#[tokio::test]
async fn everything_but_health_needs_the_key() {
    let api = Api::start().await;
    for path in ["/", "/api/v1/projects", DELIVERIES, "/nothing", "/health", "/health/live/x", "/api/v1/schedule"] {
        for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic eDp5\r\n", "X-API-Key: \r\n"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
            let (status, head, body) = api.raw(request.as_bytes()).await;
            assert_eq!(status, 401, "{path} {headers} {body}");
            assert!(head.contains("www-authenticate: bearer realm="), "{head}");
            assert!(head.contains("content-type: application/problem+json"), "{head}");
        }
    }
    for path in ["/health/live", "/health/ready"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(api.raw(request.as_bytes()).await.0, 200, "{path}");
    }
    for header in [format!("Authorization: bearer {}", api.key), format!("X-API-Key: {}", api.key)] {
        let request = format!("GET /api/v1/projects HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n");
        let (status, head, _) = api.raw(request.as_bytes()).await;
        assert_eq!(status, 200);
        assert!(head.contains("nosniff") && head.contains("no-store"), "{head}");
    }
    let shown = api.store.value("admin_key_hash").await.unwrap().unwrap();
    assert!(!shown.contains(&api.key) && shown.len() == 64);
    api.stop().await;
}

#[tokio::test]
async fn unknown_paths_and_methods_are_told_apart() {
    let api = Api::start().await;
    for path in ["/nothing", "/api/v1/projects/default/nothing", "/api/v1/projects/none/deliveries"] {
        let (status, json) = api.call("GET", path, "").await;
        assert_eq!((status, &json["status"]), (404, &404.into()), "{path}");
    }
    let (status, head, body) = api.with("PUT", DELIVERIES, "", b"").await;
    assert_eq!(status, 405, "{body}");
    assert!(head.contains("allow: get,head") && head.contains("problem+json"), "{head}");
    let (status, head, _) = api.with("GET", &format!("{DELIVERIES}/x/retry"), "", b"").await;
    assert_eq!(status, 405);
    assert!(head.contains("allow: post"), "{head}");
    api.stop().await;
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_told_where() {
    let api = Api::start().await;
    api.connection("c", "").await;
    let send = format!("{CONNECTIONS}/c/send");
    let (status, json) = api.call("POST", &send, "{\"body\": 1,\n}").await;
    assert_eq!((status, json["line"].as_u64()), (400, Some(2)), "{json}");
    let json_type = "Content-Type: application/json\r\n";
    for body in [&b"{\"body\": \"\xff\"}"[..], b"{\"body\": \"\0\"}", b"[1]", b"{\"body\": \"a", b"\0"] {
        assert_eq!(api.with("POST", &send, json_type, body).await.0, 400);
    }
    assert_eq!(api.with("POST", &send, "Content-Type: text/xml\r\n", b"<a/>").await.0, 415);
    assert_eq!(api.with("POST", &send, "", b"{}").await.0, 415);
    api.stop().await;
}

#[tokio::test]
async fn each_bad_field_and_parameter_is_named() {
    let api = Api::start().await;
    api.connection("c", "").await;
    let send = format!("{CONNECTIONS}/c/send");
    let deep = format!(r#"{{"body": {}{}}}"#, "[".repeat(150), "]".repeat(150));
    for (body, name) in [
        (r#"{"headers": {"X-A": "1\r\nX-B: 2"}}"#, "headers"),
        (r#"{"headers": {"X-A": "\u0000"}}"#, "headers"),
        (r#"{"method": "A B"}"#, "method"),
        (r#"{"params": 7}"#, "params"),
        (r#"{"body_base64": "?"}"#, "body_base64"),
        (r#"{"unknown": 1}"#, "unknown"),
        (deep.as_str(), "body"),
    ] {
        let (status, json) = api.call("POST", &send, body).await;
        assert_eq!((status, field(&json)), (422, name), "{json}");
        assert!(json["errors"][0]["allowed"].is_string(), "{json}");
    }
    for (body, name) in [
        (r#"{"type": "rest", "host": "http://a.test", "url_path": "/"}"#, "name"),
        (r#"{"name": "x", "host": "http://a.test", "url_path": "/"}"#, "type"),
        (r#"{"name": "x", "type": "ftp", "host": "http://a.test", "url_path": "/"}"#, "type"),
        (r#"{"name": "a/b", "type": "rest", "host": "http://a.test", "url_path": "/"}"#, "name"),
        (r#"{"name": "x", "type": "rest", "url_path": "/"}"#, "host"),
        (
            r#"{"name": "x", "type": "rest", "host": "http://a.test", "url_path": "/", "max_retries": -1}"#,
            "max_retries",
        ),
        (r#"{"name": "x", "type": "rest", "host": "http://a.test", "url_path": "/", "max_retry": 1}"#, "max_retry"),
    ] {
        let (status, json) = api.call("POST", CONNECTIONS, body).await;
        assert_eq!((status, field(&json)), (422, name), "{json}");
    }
    for (query, name) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=nonsense", "cursor"),
        ("status=gone", "status"),
        ("error=oops", "error"),
        ("created_from=yesterday", "created_from"),
        ("colour=red", "colour"),
    ] {
        let (status, json) = api.call("GET", &format!("{DELIVERIES}?{query}"), "").await;
        assert_eq!((status, field(&json)), (400, name), "{json}");
    }
    for path in ["a%2Fb", "a%00b", "%ff"] {
        assert_eq!(api.call("GET", &format!("{CONNECTIONS}/{path}"), "").await.0, 400, "{path}");
    }
    api.stop().await;
}

#[tokio::test]
async fn bodies_at_the_limit_are_taken_and_one_byte_more_is_not() {
    let api = Api::start().await;
    api.connection("c", "").await;
    let send = format!("{CONNECTIONS}/c/send");
    for (bytes, status) in [(999, 200), (1000, 200), (1001, 413)] {
        let body = format!(r#"{{"body": "{}"}}"#, "x".repeat(bytes));
        assert_eq!(api.call("POST", &send, &body).await.0, status, "{bytes} bytes as text");
    }
    // 1000 bytes of zeros, and 1002.
    for (letters, status) in [("A".repeat(1332) + "AA==", 200), ("A".repeat(1336), 413)] {
        let body = format!(r#"{{"body_base64": "{letters}"}}"#);
        assert_eq!(api.call("POST", &send, &body).await.0, status, "{} letters of base64", letters.len());
    }
    // Told by its length alone: not one byte of the body is sent.
    let head = format!(
        "POST {send} HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n",
        api.key
    );
    assert_eq!(api.raw(head.as_bytes()).await.0, 413);
    api.stop().await;
}

#[tokio::test]
async fn a_body_that_trickles_is_answered_408_and_one_that_breaks_off_harms_nobody() {
    let api = Api::start().await;
    api.connection("c", "").await;
    let head = format!(
        "POST {CONNECTIONS}/c/send HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{{",
        api.key
    );
    let mut slow = TcpStream::connect(api.address()).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut gone = TcpStream::connect(api.address()).await.unwrap();
    gone.write_all(head.as_bytes()).await.unwrap();
    drop(gone);
    assert!(read_answer(&mut slow).await.starts_with("HTTP/1.1 408 "));
    assert_eq!(api.get(DELIVERIES).await["data"], serde_json::json!([]));
    tokio::time::timeout(Duration::from_secs(20), api.stop()).await.unwrap();
}

/// A caller that goes on in the same connection must be told when it ends, or else its next request is lost.
#[tokio::test]
async fn i09_a_refusal_before_the_body_is_read_says_whether_the_connection_goes_on() {
    let api = Api::start().await;
    let (status, made) =
        api.call("POST", "/api/v1/projects/default/keys", r#"{"name": "reader", "scopes": ["read"]}"#).await;
    assert_eq!(status, 201, "{made}");
    let reader = made["key"].as_str().or(made["secret"].as_str()).unwrap().to_owned();
    let ours = format!("Authorization: Bearer {}\r\nContent-Type: application/json", api.key);
    let text = format!("Authorization: Bearer {}\r\nContent-Type: text/plain", api.key);
    for (status, path, headers) in [
        (401, CONNECTIONS, "Content-Type: application/json"),
        (403, CONNECTIONS, &format!("Authorization: Bearer {reader}\r\nContent-Type: application/json")),
        (404, "/nothing", ours.as_str()),
        (405, DELIVERIES, &ours),
        (415, CONNECTIONS, &text),
    ] {
        let head = |rest: &str| format!("POST {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{rest}\r\n\r\n");
        // Little, and all there: it is dropped, and the connection goes on.
        let mut stream = TcpStream::connect(api.address()).await.unwrap();
        for _ in 0..2 {
            stream.write_all(format!("{}{{\"a\": 1}}", head("Content-Length: 8")).as_bytes()).await.unwrap();
            let answer = read_answer(&mut stream).await.to_ascii_lowercase();
            assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{path}: {answer}");
            assert!(!answer.contains("connection: close"), "{path}: {answer}");
        }
        // What type a body has is looked at once it is there.
        if status == 415 {
            continue;
        }
        // Much, or never finished, or not to be sent unasked: the answer says that the connection ends, and it does.
        for rest in [
            "Content-Length: 900000",
            "Content-Length: 9",
            "Transfer-Encoding: chunked",
            "Content-Length: 8\r\nExpect: 100-continue",
        ] {
            let mut stream = TcpStream::connect(api.address()).await.unwrap();
            let begun = if rest.contains("Expect") {
                ""
            } else if rest.contains("chunked") {
                "3\r\n{  \r\n"
            } else {
                "{  "
            };
            stream.write_all(format!("{}{begun}", head(rest)).as_bytes()).await.unwrap();
            let answer = read_answer(&mut stream).await.to_ascii_lowercase();
            assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{path} {rest}: {answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{path} {rest}: {answer}");
            let mut more = [0; 1];
            let ended =
                tokio::time::timeout(Duration::from_secs(5), tokio::io::AsyncReadExt::read(&mut stream, &mut more))
                    .await;
            assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{path} {rest}: it goes on");
        }
    }
    api.stop().await;
}
