//! The raw path with clients that we did not write: `curl` and Python `requests` (D13, D14).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::path::PathBuf;
use std::process::Stdio;

use harness::{Bench, KEY, Mirror};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

struct Stage {
    bench: Bench,
    remote: Mirror,
}

/// What curl printed: the final head and the body.
#[derive(Debug)]
struct Curled {
    status: u16,
    head: String,
    body: String,
}

impl Curled {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Stage {
    async fn set(more: Value) -> Stage {
        let (bench, remote) = tokio::join!(Bench::start(), Mirror::start());
        let mut keys = json!({"url_path": "/v2", "timeout": 20});
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        bench.connection("c", &remote.address, keys).await;
        Stage { bench, remote }
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/api/v1/projects/default/connections/c/raw{rest}", self.bench.server.address)
    }

    async fn curl(&self, rest: &str, args: &[&str], input: &[u8]) -> Curled {
        curl(&self.url(rest), &[&["-H", &format!("X-API-Key: {KEY}")], args].concat(), input).await
    }
}

async fn curl(url: &str, args: &[&str], input: &[u8]) -> Curled {
    let mut command = Command::new("curl");
    command.args(["-sS", "-i", "--max-time", "30", "--path-as-is"]).args(args).arg(url);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(input).await;
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut text = String::from_utf8(output.stdout).unwrap();
    loop {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        // 100 Continue comes first.
        if status != 100 {
            return Curled { status, head: head.to_ascii_lowercase(), body: body.to_owned() };
        }
        text = body.to_owned();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_curl_gets_the_remotes_own_answer_and_the_remote_curls_request() {
    let stage = Stage::set(json!({})).await;
    let got = stage.curl("/a%2Fb/c?x=1&x=%20+&y", &["-A", "curl/own"], b"").await;
    assert_eq!((got.status, got.body.as_str()), (200, "answer 1"));
    assert!(got.head.contains("x-remote: yes") && got.head.contains("set-cookie: a=1\r\nset-cookie: b=2"), "{got:?}");
    assert!(got.head.contains("x-postrider-msg-id: msg_") && !got.head.contains("nosniff"), "{got:?}");
    let seen = stage.remote.last();
    assert_eq!(seen.uri.to_string(), "/v2/a%2Fb/c?x=1&x=%20+&y");
    assert_eq!((seen.method.as_str(), seen.header("user-agent")), ("GET", Some("curl/own")));
    for (args, method) in
        [(&["-d", "a=b"][..], "POST"), (&["-X", "PUT", "-d", "a=b"], "PUT"), (&["-X", "DELETE"], "DELETE")]
    {
        let got = stage.curl("/x", args, b"").await;
        assert_eq!(got.status, 200, "{got:?}");
        assert_eq!(stage.remote.last().method.as_str(), method);
    }
    for status in [201, 302, 404, 500, 503] {
        let got = stage.curl(&format!("/status/{status}"), &["-d", "x"], b"").await;
        assert_eq!(got.status, status, "a refusal is the remote's own word too");
        assert!(got.body.starts_with("answer "), "{got:?}");
    }
    for rest in ["", "/"] {
        assert_eq!(stage.curl(rest, &[], b"").await.status, 200);
    }
    stage.bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_answers_without_a_body_keep_their_form() {
    let stage = Stage::set(json!({})).await;
    let got = stage.curl("/x", &["-I"], b"").await;
    assert_eq!((got.status, got.body.as_str()), (200, ""), "{got:?}");
    assert!(got.head.contains("content-length: 8"), "the length of what a GET would bring: {got:?}");
    assert_eq!(stage.remote.last().method.as_str(), "HEAD");
    for status in ["204", "304"] {
        let got = stage.curl(&format!("/status/{status}"), &["-H", "If-None-Match: \"e\""], b"").await;
        assert_eq!((got.status.to_string().as_str(), got.body.as_str()), (status, ""));
        assert!(!got.head.contains("transfer-encoding") && !got.head.contains("content-length: 0"), "{got:?}");
    }
    assert_eq!(stage.remote.last().header("if-none-match"), Some("\"e\""));
    stage.bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_chunked_uploads_and_expect_continue_arrive_whole() {
    let stage = Stage::set(json!({})).await;
    let body: Vec<u8> = (0..2_000_000u32).map(|n| (n * 7) as u8).collect();
    let chunked = ["-H", "Transfer-Encoding: chunked", "--data-binary", "@-"];
    let expecting = ["-H", "Expect: 100-continue", "--data-binary", "@-"];
    for args in [chunked, expecting] {
        let got =
            stage.curl("/up", &[&["-H", "Content-Type: application/octet-stream"], &args[..]].concat(), &body).await;
        assert_eq!(got.status, 200, "{got:?}");
        let seen = stage.remote.last();
        assert!(seen.body == body, "{} bytes arrived", seen.body.len());
        assert_eq!(seen.header("content-length"), Some("2000000"));
        assert_eq!((seen.header("expect"), seen.header("transfer-encoding")), (None, None));
    }
    let got = stage.curl("/up", &["--data-binary", "@-"], &vec![b'x'; (8 << 20) + 1]).await;
    assert_eq!(got.status, 413, "{got:?}");
    stage.bench.server.stop().await;
}

// proves: D14
#[tokio::test(flavor = "multi_thread")]
async fn d14_our_key_stays_here_and_the_callers_credentials_go_on() {
    let stage = Stage::set(json!({"use_queue": true})).await;
    let theirs = [
        "-H",
        "Authorization: Bearer theirs",
        "-H",
        "Idempotency-Key: theirs",
        "-H",
        "X-Postrider-Idempotency-Key: ours",
        "-H",
        "Connection: keep-alive, X-Hop",
        "-H",
        "X-Hop: 1",
        "-H",
        "TE: trailers",
        "-d",
        "x",
    ];
    let first = stage.curl("/x", &theirs, b"").await;
    assert_eq!(first.status, 200, "{first:?}");
    let seen = stage.remote.last();
    assert_eq!((seen.header("authorization"), seen.header("idempotency-key")), (Some("Bearer theirs"), Some("theirs")));
    for gone in ["x-api-key", "x-postrider-idempotency-key", "x-hop", "te", "connection"] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
    // Ours made it a repeat; another body under it is refused.
    assert_eq!(stage.curl("/x", &theirs, b"").await.status, 200);
    let other = stage.curl("/x", &[&theirs[..theirs.len() - 1], &["other"]].concat(), b"").await;
    assert_eq!((other.status, stage.remote.count()), (409, 1), "{other:?}");
    // The key in the other header opens nothing here.
    let bearer = format!("Authorization: Bearer {KEY}");
    let refused = curl(&stage.url("/x"), &["-H", &bearer, "-d", "x"], b"").await;
    assert_eq!((refused.status, stage.remote.count()), (401, 1), "{refused:?}");
    let (_, list) = stage.bench.call("GET", "/deliveries", &Value::Null).await;
    let list = list.to_string();
    assert!(!list.contains(KEY) && !list.contains("Bearer theirs") && list.contains("***"), "{list}");
    stage.bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_what_is_queued_or_has_no_answer_says_so_with_the_result() {
    let stage = Stage::set(json!({"use_queue": true, "max_retries": 3, "retry_sleep_time": 8})).await;
    let queued = stage.curl("/status/500", &["-d", "x"], b"").await;
    assert_eq!((queued.status, &queued.json()["is_in_queue"]), (202, &json!(true)), "{queued:?}");
    assert_eq!(queued.json()["response"]["status"], 500);
    stage.bench.connection("gone", "http://127.0.0.1:9", json!({})).await;
    stage.bench.connection("dlq", "http://127.0.0.1:9", json!({"use_queue": true})).await;
    stage.bench.connection("slow", &stage.remote.address, json!({"timeout": 0.2})).await;
    let at = |name: &str, rest: &str| stage.url(rest).replace("/c/raw", &format!("/{name}/raw"));
    let key = format!("X-API-Key: {KEY}");
    for (url, status, flag) in
        [(at("gone", "/x"), 502, None), (at("dlq", "/x"), 502, Some("is_in_dlq")), (at("slow", "/hang"), 504, None)]
    {
        let got = curl(&url, &["-H", &key, "-d", "x"], b"").await;
        assert_eq!(got.status, status, "{got:?}");
        let result = got.json();
        for name in ["is_ok", "is_in_queue", "is_in_dlq"] {
            assert_eq!(result[name], flag == Some(name), "{result}");
        }
        assert!(result["msg_id"].is_string() && result["error"].is_string(), "{result}");
    }
    let nowhere = curl(&at("nobody", "/x"), &["-H", &key], b"").await;
    assert_eq!(nowhere.status, 404);
    let dots = stage.curl("/../admin", &[], b"").await;
    assert!(matches!(dots.status, 400 | 404 | 422), "{dots:?}");
    stage.bench.server.stop().await;
}

const REQUESTS_PY: &str = r#"
import hashlib, io, json, os, sys
import requests
base, key = sys.argv[1], sys.argv[2]
session = requests.Session()
session.headers["X-API-Key"] = key
session.auth = ("user", "pa:ss")
big = os.urandom(5 * 1024 * 1024)
up = session.post(base + "/upload", files={"file": ("scan.dcm", io.BytesIO(big), "application/dicom")}, data={"note": "ä"})
got = session.get(base + "/list", params={"q": ["a b", "ä&"], "n": 1})
js = session.put(base + "/item", json={"a": 1})
gen = session.post(base + "/gen", data=(part for part in [b"one", b"two"]))
missing = session.delete(base + "/status/404")
print(json.dumps({
    "sha": hashlib.sha256(big).hexdigest(), "type": up.request.headers["Content-Type"],
    "statuses": [r.status_code for r in (up, got, js, gen, missing)], "cookies": {c.name: c.value for c in session.cookies}, "text": got.text,
}))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn d13_python_requests_works_through_it_with_an_upload_of_5_mb() {
    use sha2::{Digest, Sha256};
    let stage = Stage::set(json!({})).await;
    let lab = std::env::var("POSTRIDER_PEERS_VENV")
        .map_or_else(|_| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/venv"), PathBuf::from);
    let python = lab.join("bin/python");
    assert!(python.exists(), "the peer lab is not installed; `cargo xtask peers` installs it");
    let ran = Command::new(python).args(["-c", REQUESTS_PY, &stage.url(""), KEY]).output().await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let told: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(told["statuses"], json!([200, 200, 200, 200, 404]));
    assert_eq!((&told["cookies"], &told["text"]), (&json!({"a": "1", "b": "2"}), &json!("answer 2")));
    let seen = stage.remote.requests();
    let upload = &seen[0];
    assert_eq!(upload.header("content-type"), told["type"].as_str());
    let boundary = upload.header("content-type").unwrap().split_once("boundary=").unwrap().1;
    let head_end = b"Content-Type: application/dicom\r\n\r\n";
    let at = upload.body.windows(head_end.len()).position(|part| part == head_end).unwrap() + head_end.len();
    let file = &upload.body[at..at + 5 * 1024 * 1024];
    let sha: String = Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(told["sha"], sha, "the file arrived byte for byte");
    assert!(upload.body.ends_with(format!("\r\n--{boundary}--\r\n").as_bytes()));
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Basic dXNlcjpwYTpzcw==")));
    assert_eq!(seen[1].uri.to_string(), "/v2/list?q=a+b&q=%C3%A4%26&n=1");
    assert_eq!(seen[3].body, "onetwo");
    stage.bench.server.stop().await;
}
