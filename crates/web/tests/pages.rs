//! Pages without script, over a real socket: what is not there is said to be so, lists go by their columns, and nothing is changed unasked (issue 9).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::api::{Api, CONNECTIONS};
use parts::browser::Browser;
use postrider_engine::SystemClock;
use serde_json::json;

const PASSWORD: &str = "correct horse battery";
const PROJECT: &str = "/ui/projects/default";

async fn owner(api: &Api) -> Browser<'_> {
    let body = json!({"name": "ada", "role": "owner", "password": PASSWORD});
    let (status, made) = api.call("POST", "/api/v1/users", &body.to_string()).await;
    assert_eq!(status, 201, "{made}");
    let mut browser = Browser::new(api);
    assert_eq!(browser.logs_in("ada", PASSWORD).await, 303);
    browser
}

/// Every form that names something, sent for what is not there.
#[tokio::test]
async fn i09_an_act_on_what_is_not_there_is_answered_404_and_not_by_a_way_to_nothing() {
    let api = Api::start_site(SystemClock::shared()).await;
    let mut ada = owner(&api).await;
    let (message, source) = ("msg_01h00000000000000000000000", "src_01h00000000000000000000000");
    let mut acts: Vec<String> = ["retry", "resend", "attempt-now", "set-aside", "discard", "retry-forward", "forward"]
        .map(|act| format!("/deliveries/{message}/{act}"))
        .into();
    acts.extend(
        ["/rest/gone/pause", "/rest/gone/resume", "/rest/gone/ping", "/rest/gone/delete", "/channel_rest/gone/pause"]
            .map(|act| format!("/connections{act}")),
    );
    acts.extend(["switch", "delete", "rotate-token", "replay"].map(|act| format!("/sources/{source}/{act}")));
    acts.extend(
        ["/connections/service/gone/delete", "/topics/gone/delete", "/security/gone/delete"].map(str::to_owned),
    );
    acts.push("/endpoints/ep_01h00000000000000000000000/test".to_owned());
    acts.push("/jobs/job_01h00000000000000000000000".to_owned());
    for act in acts {
        let fields = "topic=undeliverable&verb=pause&from=2026-03-12T12:05:34Z";
        let (status, head, page) = ada.sends("/ui/account", &format!("{PROJECT}{act}"), fields).await;
        assert_eq!(status, 404, "{act}: {head}");
        assert!(page.contains("Not found"), "{act}: {page}");
    }
    api.stop().await;
}

#[tokio::test]
async fn i09_lists_go_by_their_columns_by_links_and_page_by_page() {
    let api = Api::start_site(SystemClock::shared()).await;
    for name in ["beta", "Alpha", "gamma"] {
        api.connection(name, r#", "use_queue": true"#).await;
    }
    let (status, _) = api.call("POST", &format!("{CONNECTIONS}/gamma/pause"), "{}").await;
    assert_eq!(status, 200);
    for _ in 0..3 {
        let (status, answer) = api.call("POST", &format!("{CONNECTIONS}/gamma/publish"), r#"{"body": {}}"#).await;
        assert_eq!(status, 202, "{answer}");
    }
    let names = |list: &serde_json::Value| -> Vec<String> {
        list["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    for (sort, wanted) in [
        ("name", ["Alpha", "beta", "gamma"]),
        ("-name", ["gamma", "beta", "Alpha"]),
        ("-waiting", ["gamma", "Alpha", "beta"]),
        ("oldest", ["gamma", "Alpha", "beta"]),
    ] {
        assert_eq!(names(&api.get(&format!("{CONNECTIONS}?sort={sort}")).await), wanted, "{sort}");
    }
    let first = api.get(&format!("{CONNECTIONS}?sort=name&limit=2")).await;
    assert_eq!((names(&first).len(), &first["next_cursor"]), (2, &json!("2")));
    let second = api.get(&format!("{CONNECTIONS}?sort=name&limit=2&cursor=2")).await;
    assert_eq!((names(&second), &second["next_cursor"]), (vec!["gamma".to_owned()], &json!(null)));
    let (status, problem) = api.call("GET", &format!("{CONNECTIONS}?sort=colour"), "").await;
    assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!("sort")), "{problem}");

    let mut ada = owner(&api).await;
    let (_, page) = ada.get(&format!("{PROJECT}/connections")).await;
    assert!(
        page.contains(
            "aria-sort=\"ascending\"><a class=\"sort\" href=\"/ui/projects/default/connections?sort=-name\">"
        ),
        "{page}"
    );
    let (_, page) = ada.get(&format!("{PROJECT}/connections?sort=-waiting")).await;
    assert!(page.find(">gamma</a>").unwrap() < page.find(">Alpha</a>").unwrap(), "{page}");
    assert_eq!(ada.get(&format!("{PROJECT}/connections?sort=%22%3E%3Cscript%3E")).await.0, 400);
    api.stop().await;
}
