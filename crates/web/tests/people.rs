//! Users, log-in, sessions and what a viewer sees, over a real socket as a browser speaks (P07, D44).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use std::time::Duration;

use parts::api::{Api, CONNECTIONS, DELIVERIES};
use parts::browser::Browser;
use postrider_core::{Timestamp, Wait};
use postrider_engine::{Clock, SystemClock};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery";

/// The system's clock, as far ahead as a test wants it.
struct Ahead {
    system: Arc<dyn Clock>,
    by_ms: AtomicI64,
}

impl Ahead {
    fn new() -> Arc<Ahead> {
        Arc::new(Ahead { system: SystemClock::shared(), by_ms: AtomicI64::new(0) })
    }

    fn go(&self, minutes: i64) {
        self.by_ms.fetch_add(minutes * 60_000, Ordering::Relaxed);
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.system.now().as_millis() + self.by_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Wait {
        self.system.monotonic()
    }
}

/// Somebody to log in as.
async fn user(api: &Api, name: &str, role: &str, more: Value) -> Value {
    let mut body = json!({"name": name, "role": role, "password": PASSWORD});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, made) = api.call("POST", "/api/v1/users", &body.to_string()).await;
    assert_eq!(status, 201, "{made}");
    made
}

async fn noted(api: &Api, action: &str) -> Vec<Value> {
    api.get(&format!("/api/v1/audit?action={action}")).await["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn p07_a_user_logs_in_and_out_and_nothing_opens_without_that() {
    let api = Api::start_site(SystemClock::shared()).await;
    user(&api, "ada@example.org", "owner", json!({})).await;
    let mut browser = Browser::new(&api);
    let (status, head, _) = browser.asks("GET", "/ui/projects/default/deliveries?status=DLQ", "", "").await;
    assert_eq!(status, 303);
    assert!(
        head.contains("location: /ui/log-in?next=%2fui%2fprojects%2fdefault%2fdeliveries%3fstatus%3ddlq"),
        "{head}"
    );
    let back = "back=%2Fui%2Fprojects%2Fdefault%2Ffailed";
    let fields = format!("name=Ada%40Example.org&password={}&{back}", PASSWORD.replace(' ', "+"));
    let (status, head, _) = browser.sends("/ui/log-in", "/ui/log-in", &fields).await;
    assert_eq!(status, 303, "{head}");
    assert!(head.contains("location: /ui/projects/default/failed"), "{head}");
    let set = head.lines().find(|line| line.starts_with("set-cookie: postrider_session=")).unwrap();
    assert!(set.contains("; httponly") && set.contains("; samesite=strict") && set.contains("path=/ui"), "{set}");
    assert!(!set.contains("; secure"), "not over plain http, where it would come back to nobody: {set}");
    let token = browser.cookie("postrider_session").unwrap().to_owned();
    assert_eq!(token.len(), 64);
    let (status, page) = browser.get("/ui/projects/default/failed").await;
    assert!(status == 200 && page.contains("ada@example.org"), "{page}");
    let (status, head, _) = browser.sends("/ui/account", "/ui/log-out", "").await;
    assert!(status == 303 && head.contains("location: /ui/log-in"), "{head}");
    // Somebody who has kept the cookie has nothing.
    browser.cookies.push(("postrider_session".to_owned(), token));
    assert_eq!(browser.get("/ui/projects/default/failed").await.0, 303);
    let actions: Vec<usize> = [noted(&api, "user.log_in").await.len(), noted(&api, "user.log_out").await.len()].into();
    assert_eq!(actions, [1, 1]);
    api.stop().await;
}

#[tokio::test]
async fn p07_behind_https_the_cookie_is_for_https_only() {
    let api = Api::start_site(SystemClock::shared()).await;
    user(&api, "ada", "owner", json!({})).await;
    let mut browser = Browser::new(&api);
    let (_, page) = browser.get("/ui/log-in").await;
    let token = page.split_once("name=\"csrf\" value=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let fields = format!("csrf={token}&name=ada&password={}", PASSWORD.replace(' ', "+"));
    let (status, head, _) = browser.asks("POST", "/ui/log-in", "X-Forwarded-Proto: https\r\n", &fields).await;
    assert_eq!(status, 303);
    assert!(
        head.lines().any(|line| line.starts_with("set-cookie: postrider_session=") && line.contains("; secure")),
        "{head}"
    );
    api.stop().await;
}

#[tokio::test]
async fn p07_a_refused_log_in_says_nothing_of_who_exists_and_tries_run_out() {
    let clock = Ahead::new();
    let api = Api::start_site(clock.clone()).await;
    user(&api, "ada", "owner", json!({})).await;
    let mut browser = Browser::new(&api);
    let text_of = |page: &str| page.split_once("role=\"alert\">").unwrap().1.split('<').next().unwrap().to_owned();
    let mut said = Vec::new();
    for (name, password) in
        [("ada", "wrong+password"), ("nobody", "wrong+password"), ("nobody", "correct+horse+battery")]
    {
        let fields = format!("name={name}&password={password}");
        let (status, head, page) = browser.sends("/ui/log-in", "/ui/log-in", &fields).await;
        assert!(status == 401 && !head.contains("postrider_session="), "{head}");
        assert!(!page.contains("correct horse") && !page.contains("wrong password"), "no password comes back");
        said.push(text_of(&page));
    }
    assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
    for _ in 0..9 {
        assert_eq!(browser.logs_in("ada", "wrong password").await, 401);
    }
    let (status, head, page) =
        browser.sends("/ui/log-in", "/ui/log-in", "name=ada&password=correct+horse+battery").await;
    assert_eq!(status, 429, "the tries have run out, also for the right password");
    assert!(head.contains("retry-after: ") && text_of(&page).starts_with("Too many tries"), "{head}");
    user(&api, "bob", "viewer", json!({})).await;
    assert_eq!(browser.logs_in("bob", PASSWORD).await, 303, "nobody else has to wait");
    clock.go(1);
    let mut other = Browser::new(&api);
    assert_eq!(other.logs_in("ada", PASSWORD).await, 303);
    api.stop().await;
}

#[tokio::test]
async fn p07_the_first_owner_is_made_by_a_link_that_works_once() {
    let api = Api::start_site(SystemClock::shared()).await;
    let old = api.engine().first_link().await.unwrap().unwrap();
    let link = api.engine().first_link().await.unwrap().unwrap();
    let page = format!("/ui/first?token={}", link.expose());
    let mut browser = Browser::new(&api);
    for wrong in ["/ui/first".to_owned(), "/ui/first?token=x".to_owned(), format!("/ui/first?token={}", old.expose())] {
        let (status, text) = browser.get(&wrong).await;
        assert!(status == 404 && text.contains("has been used"), "{wrong}: {text}");
    }
    let fields =
        |password: &str, again: &str| format!("token={}&name=ada&password={password}&again={again}", link.expose());
    for (password, again, says) in
        [("short", "short", "12 characters"), ("long+enough+words", "others+they+are", "differ")]
    {
        let (status, _, text) = browser.sends(&page, "/ui/first", &fields(password, again)).await;
        assert!(status == 422 && text.contains(says), "{text}");
    }
    let (status, head, _) = browser.sends(&page, "/ui/first", &fields("long+enough+words", "long+enough+words")).await;
    assert!(status == 303 && head.contains("set-cookie: postrider_session="), "{head}");
    assert_eq!(browser.get("/ui/users").await.0, 200, "an owner of the installation, logged in");
    let mut other = Browser::new(&api);
    assert_eq!(other.get(&page).await.0, 404);
    assert!(api.engine().first_link().await.unwrap().is_none(), "there is a user, so there is no link");
    let users = api.get("/api/v1/users").await;
    assert_eq!((users["data"][0]["name"].as_str(), users["data"][0]["role"].as_str()), (Some("ada"), Some("owner")));
    let made = noted(&api, "user.create").await;
    assert_eq!((made.len(), made[0]["actor"]["id"].as_str()), (1, Some("first-link")));
    api.stop().await;
}

#[tokio::test]
async fn p07_no_form_works_without_its_token_or_from_another_site() {
    let api = Api::start_site(SystemClock::shared()).await;
    user(&api, "ada", "owner", json!({})).await;
    let mut browser = Browser::new(&api);
    let fields = "name=ada&password=correct+horse+battery";
    let (status, head, _) = browser.asks("POST", "/ui/log-in", "", fields).await;
    assert!(status == 403 && !head.contains("postrider_session="), "{head}");
    assert_eq!(browser.logs_in("ada", PASSWORD).await, 303);
    let new_user = "name=eve&role=owner&password=correct+horse+battery";
    for (headers, token) in [("", "csrf=x&"), ("", ""), ("Sec-Fetch-Site: cross-site\r\n", "right")] {
        let (_, page) = browser.get("/ui/users").await;
        let right = page.split_once("name=\"csrf\" value=\"").unwrap().1.split('"').next().unwrap().to_owned();
        let token = if token == "right" { format!("csrf={right}&") } else { token.to_owned() };
        let (status, _, _) = browser.asks("POST", "/ui/users", headers, &format!("{token}{new_user}")).await;
        assert_eq!(status, 403, "{headers}{token}");
    }
    assert_eq!(api.get("/api/v1/users").await["data"].as_array().unwrap().len(), 1);
    assert_eq!(browser.sends("/ui/users", "/ui/users", new_user).await.0, 303);
    assert_eq!(api.get("/api/v1/users").await["data"].as_array().unwrap().len(), 2);
    api.stop().await;
}

#[tokio::test]
async fn p07_a_session_ends_idle_or_old_and_a_page_that_asks_by_itself_keeps_none_open() {
    let clock = Ahead::new();
    let api = Api::start_site(clock.clone()).await;
    user(&api, "ada", "owner", json!({})).await;
    let mut browser = Browser::new(&api);
    assert_eq!(browser.logs_in("ada", PASSWORD).await, 303);
    for _ in 0..12 {
        clock.go(55);
        assert_eq!(browser.get("/ui/account").await.0, 200, "it is used");
    }
    clock.go(55);
    assert_eq!(browser.get("/ui/account").await.0, 200);
    clock.go(10);
    assert_eq!(browser.get("/ui/account").await.0, 303, "twelve hours are over");
    assert_eq!(browser.logs_in("ada", PASSWORD).await, 303);
    for _ in 0..3 {
        clock.go(20);
        browser.asks("GET", "/ui/account", "X-Postrider-Live: 1\r\n", "").await;
    }
    assert_eq!(browser.get("/ui/account").await.0, 303, "nobody has done anything for an hour");
    api.stop().await;
}

#[tokio::test]
async fn p07_a_new_password_ends_all_other_sessions() {
    let api = Api::start_site(SystemClock::shared()).await;
    let id = user(&api, "ada", "owner", json!({})).await["id"].as_str().unwrap().to_owned();
    let (mut here, mut there) = (Browser::new(&api), Browser::new(&api));
    assert_eq!((here.logs_in("ada", PASSWORD).await, there.logs_in("ada", PASSWORD).await), (303, 303));
    let change = |current: &str| format!("current={current}&password=another+good+one&again=another+good+one");
    let (status, _, page) = here.sends("/ui/account", "/ui/account", &change("wrong")).await;
    assert!(status == 422 && page.contains("current password is wrong"), "{page}");
    assert_eq!(there.get("/ui/account").await.0, 200);
    assert_eq!(here.sends("/ui/account", "/ui/account", &change("correct+horse+battery")).await.0, 303);
    assert_eq!((here.get("/ui/account").await.0, there.get("/ui/account").await.0), (200, 303));
    assert_eq!(there.logs_in("ada", PASSWORD).await, 401);
    assert_eq!(there.logs_in("ada", "another good one").await, 303);
    // By somebody else: all of them, and the answer has no password.
    let (status, changed) =
        api.call("PATCH", &format!("/api/v1/users/{id}"), r#"{"password": "a third good one"}"#).await;
    assert!(status == 200 && changed.get("password").is_none(), "{changed}");
    assert_eq!((here.get("/ui/account").await.0, there.get("/ui/account").await.0), (303, 303));
    let log = noted(&api, "user.replace").await;
    assert_eq!(log[0]["after"]["password"], "***");
    assert!(!json!(log).to_string().contains("good one"));
    api.stop().await;
}

/// A dead letter whose body and answer hold this word.
async fn dead_letter(api: &Api, word: &str) -> String {
    api.connection("c", r#", "use_queue": true, "max_retries": 0, "data_format": "text""#).await;
    let sent = api
        .call("POST", &format!("{CONNECTIONS}/c/publish"), &json!({"body": word, "path": "/fail"}).to_string())
        .await
        .1;
    let id = sent["msg_id"].as_str().unwrap().to_owned();
    api.until(&id, "DLQ").await;
    id
}

#[tokio::test]
async fn p07_a_viewer_sees_no_body_unless_allowed_and_d44_each_look_is_noted() {
    let api = Api::start_site(SystemClock::shared()).await;
    let id = dead_letter(&api, "haemoglobin").await;
    user(&api, "vera", "viewer", json!({})).await;
    user(&api, "dora", "developer", json!({})).await;
    let page = format!("/ui/projects/default/deliveries/{id}");
    let ways = ["", "/body", "/body?as=raw", "/download", "/answers"].map(|rest| format!("{page}{rest}"));
    let mut viewer = Browser::new(&api);
    assert_eq!(viewer.logs_in("vera", PASSWORD).await, 303);
    for (at, way) in ways.iter().enumerate() {
        let (status, text) = viewer.get(way).await;
        assert_eq!(status, if at == 0 { 200 } else { 403 }, "{way}");
        assert!(!text.contains("haemoglobin"), "{way}: {text}");
    }
    for way in ["/edit", "/discard", "/forward", "/resend"] {
        assert_eq!(viewer.get(&format!("{page}{way}")).await.0, 403, "{way}");
    }
    let (status, head, _) = viewer.sends(&page, &format!("{page}/retry"), "").await;
    assert_eq!(status, 403, "{head}");
    assert_eq!(noted(&api, "delivery.body.view").await.len(), 0, "nobody has seen anything");
    let mut developer = Browser::new(&api);
    assert_eq!(developer.logs_in("dora", PASSWORD).await, 303);
    assert_eq!(developer.get(&page).await.0, 200);
    assert_eq!(noted(&api, "delivery").await.len(), 0, "the page itself shows no body");
    for (looks, way) in ways[1..4].iter().enumerate() {
        let (status, text) = developer.get(way).await;
        assert!(status == 200 && text.contains("haemoglobin"), "{way}: {text}");
        let seen = noted(&api, "delivery.body.view").await;
        assert_eq!((seen.len(), seen[0]["actor"]["name"].as_str()), (looks + 1, Some("dora")), "{way}");
    }
    assert!(developer.get(&ways[4]).await.1.contains("haemoglobin"));
    assert_eq!(noted(&api, "delivery.attempts.view").await.len(), 1);
    for way in ["/ui/users", "/ui/projects/default/users"] {
        assert_eq!(developer.get(way).await.0, 403, "users are the owners' business");
    }
    let (status, _) = api.call("PATCH", "/api/v1/users/vera", r#"{"seesBodies": true}"#).await;
    assert_eq!(status, 200);
    assert_eq!(viewer.get(&ways[1]).await.0, 303, "changed, so logged out");
    assert_eq!(viewer.logs_in("vera", PASSWORD).await, 303);
    assert!(viewer.get(&ways[1]).await.1.contains("haemoglobin"));
    api.stop().await;
}

#[tokio::test]
async fn p07_a_user_of_a_project_sees_that_one_only() {
    let api = Api::start_site(SystemClock::shared()).await;
    dead_letter(&api, "x").await;
    let body = json!({"name": "otto", "role": "owner", "password": PASSWORD}).to_string();
    assert_eq!(api.call("POST", "/api/v1/projects/other/users", &body).await.0, 201);
    let mut browser = Browser::new(&api);
    assert_eq!(browser.logs_in("otto", PASSWORD).await, 303);
    assert_eq!(browser.get("/ui/projects/other/failed").await.0, 200);
    assert_eq!(browser.get("/ui/projects/other/users").await.0, 200);
    let (status, page) = browser.get("/ui/projects/default/failed").await;
    assert_eq!(status, 404, "{page}");
    assert_eq!(browser.get("/ui/users").await.0, 403);
    let twin = json!({"name": "OTTO", "role": "owner", "password": PASSWORD}).to_string();
    assert_eq!(api.call("POST", "/api/v1/users", &twin).await.0, 409, "a name is one person's");
    api.stop().await;
}

#[tokio::test]
async fn p07_users_are_refused_by_field_and_the_last_owner_stays() {
    let api = Api::start_site(SystemClock::shared()).await;
    for (body, field) in [
        (json!({"name": "a b", "role": "owner", "password": PASSWORD}), "name"),
        (json!({"name": "ada", "role": "king", "password": PASSWORD}), "role"),
        (json!({"name": "ada", "role": "owner", "password": "short"}), "password"),
        (json!({"name": "ada", "role": "owner"}), "password"),
        (json!({"name": "ada", "role": "owner", "password": PASSWORD, "x": 1}), "x"),
    ] {
        let (status, problem) = api.call("POST", "/api/v1/users", &body.to_string()).await;
        assert!(status == 422 && problem["errors"][0]["field"] == field, "{body}: {problem}");
        assert!(!problem.to_string().contains("short"), "{problem}");
    }
    assert_eq!(api.get("/api/v1/users").await["data"], json!([]));
    user(&api, "ada", "owner", json!({})).await;
    assert_eq!(api.call("DELETE", "/api/v1/users/ada", "").await.0, 409);
    assert_eq!(api.call("PATCH", "/api/v1/users/ada", r#"{"role": "viewer"}"#).await.0, 409);
    user(&api, "bob", "owner", json!({})).await;
    assert_eq!(api.call("DELETE", "/api/v1/users/ada", "").await.0, 204);
    assert_eq!(api.call("GET", "/api/v1/users/ada", "").await.0, 404);
    api.stop().await;
}

#[tokio::test]
async fn i09_a_hostile_body_is_shown_as_text_under_a_strict_policy() {
    let api = Api::start_site(SystemClock::shared()).await;
    let id = dead_letter(&api, "<script>alert('x')</script>\u{202e}\u{0}<img src=x onerror=alert(1)>").await;
    user(&api, "dora", "developer", json!({})).await;
    let mut browser = Browser::new(&api);
    assert_eq!(browser.logs_in("dora", PASSWORD).await, 303);
    for rest in ["/body", "/body?as=raw", "/answers"] {
        let way = format!("/ui/projects/default/deliveries/{id}{rest}");
        let (status, head, page) = browser.asks("GET", &way, "", "").await;
        assert_eq!(status, 200, "{way}");
        assert!(
            head.contains("content-security-policy: default-src 'none'") && head.contains("script-src 'self'"),
            "{head}"
        );
        assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "{page}");
        assert!(page.contains("U+202E") && !page.contains('\u{202e}'), "{page}");
    }
    let way = format!("/ui/projects/default/deliveries/{id}/download");
    let (_, head, _) = browser.asks("GET", &way, "", "").await;
    assert!(
        head.contains("content-disposition: attachment") && head.contains("x-content-type-options: nosniff"),
        "{head}"
    );
    assert_eq!(api.get(DELIVERIES).await["data"].as_array().unwrap().len(), 1);
    api.stop().await;
}

#[tokio::test]
async fn i09_a_page_that_watches_is_told_of_changes_and_nobody_else_is() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let api = Api::start_site(SystemClock::shared()).await;
    api.connection("c", r#", "use_queue": true"#).await;
    let live = "/ui/projects/default/connections/rest/c/live";
    let mut browser = Browser::new(&api);
    assert_eq!(browser.get(live).await.0, 303, "nobody is logged in");
    user(&api, "vera", "viewer", json!({})).await;
    assert_eq!(browser.logs_in("vera", PASSWORD).await, 303);
    let cookie = browser.cookie("postrider_session").unwrap();
    let mut stream = tokio::net::TcpStream::connect(api.address()).await.unwrap();
    let request = format!("GET {live} HTTP/1.1\r\nHost: x\r\nCookie: postrider_session={cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut heard = String::new();
    let mut chunk = [0; 4096];
    let mut hears = async |wanted: &str, times: usize, within: Duration| {
        let reading = async {
            while heard.matches(wanted).count() < times {
                let read = stream.read(&mut chunk).await.unwrap();
                assert!(read > 0, "it ended: {heard}");
                heard.push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        };
        tokio::time::timeout(within, reading).await.is_ok()
    };
    assert!(hears("retry: 5000", 1, Duration::from_secs(20)).await);
    assert_eq!(api.call("POST", &format!("{CONNECTIONS}/c/pause"), "{}").await.0, 200);
    // What has changed since the page was made is told at once, and from then on each change.
    assert!(hears("event: changed", 1, Duration::from_secs(20)).await);
    let mut is_told = false;
    for _ in 0..20 {
        assert_eq!(api.call("POST", &format!("{CONNECTIONS}/c/publish"), r#"{"body": "x"}"#).await.0, 202);
        is_told = hears("event: changed", 2, Duration::from_secs(1)).await;
        if is_told {
            break;
        }
    }
    assert!(is_told);
    assert!(heard.to_lowercase().contains("content-type: text/event-stream"), "{heard}");
    drop(stream);
    let other = browser.get("/ui/projects/default/connections/rest/gone/live").await;
    assert_eq!(other.0, 404);
    api.stop().await;
}

#[tokio::test]
async fn z45_the_queue_page_of_a_channel_names_method_path_and_service_of_each_request() {
    let api = Api::start_site(SystemClock::shared()).await;
    let channel = json!({"name": "Orders", "type": "rest", "url_path": "/orders/{id}", "service": "order.intake",
        "method": "PUT", "use_queue": true});
    let (status, made) = api.call("POST", "/api/v1/projects/default/channels", &channel.to_string()).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(api.call("POST", "/api/v1/projects/default/channels/Orders/pause", "{}").await.0, 200);
    let answer = api.raw(b"PUT /orders/7?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}").await;
    assert_eq!(answer.0, 200, "{answer:?}");
    let page = api.get("/api/v1/projects/default/channels/Orders/queue").await;
    let row = &page["data"][0];
    let named = json!([row["method"], row["path"], row["service"]]);
    assert_eq!(named, json!(["PUT", "/orders/7?a=b", "order.intake"]));
    user(&api, "vera", "viewer", json!({})).await;
    let mut browser = Browser::new(&api);
    assert_eq!(browser.logs_in("vera", PASSWORD).await, 303);
    let (status, shown) = browser.get("/ui/projects/default/connections/channel_rest/Orders/queue").await;
    assert_eq!(status, 200, "{shown}");
    for wanted in ["PUT /orders/7?a=b", "service order.intake"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    api.stop().await;
}
