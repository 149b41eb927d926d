//! What became of messages that no remote took, as the server's lists tell it, collected before retention removes it.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use http::Method;
use serde::Serialize;
use serde_json::Value;

use super::plan::Plan;
use super::publisher::{Route, Sent};
use crate::failure::Failure;
use crate::receiver::Book;
use crate::server::Server;

const ENDED: &str = "DISCARDED,FAILED";
const OPEN: &str = "PENDING,PROCESSING,DLQ";
const PAGE_ROWS: usize = 1000;

/// Ids of what was seen discarded or failed, by connection.
#[derive(Default)]
pub struct Ends(BTreeMap<String, HashMap<String, String>>);

impl Ends {
    /// Reads the log of every connection that gives up.
    pub async fn look(&mut self, server: &Server, plans: &[Plan]) -> Result<(), Failure> {
        for plan in plans.iter().filter(|plan| plan.gives_up) {
            let seen = self.0.entry(plan.name.clone()).or_default();
            seen.extend(rows(server, &plan.name, ENDED).await?);
        }
        Ok(())
    }
}

/// Id and status of every row of a connection in these statuses.
async fn rows(server: &Server, connection: &str, statuses: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let after = cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let path = format!(
            "/api/v1/projects/default/deliveries?connection={connection}&status={statuses}&limit={PAGE_ROWS}{after}"
        );
        let page = server.expect(Method::GET, &path, Bytes::new()).await?;
        for row in page["data"].as_array().unwrap_or(&Vec::new()) {
            found.push((text(&row["id"]), text(&row["status"])));
        }
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// One connection in the final count.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Account {
    pub connection: String,
    pub accepted: u64,
    /// Taken by the remote at least once.
    pub taken: u64,
    /// Not taken, and seen as discarded or failed.
    pub given_up: u64,
    /// Not taken, and still in the queue.
    pub waiting: u64,
    /// Not taken, and in the dead-letter queue.
    pub dead: u64,
    pub lost: u64,
}

/// Accounts for every accepted message, one by one where its id was kept.
pub async fn accounts(
    server: &Server,
    plans: &[Plan],
    ends: &Ends,
    (route, sent, book): (&Route, &Sent, &Book),
) -> Result<Vec<Account>, Failure> {
    let mut accounts: Vec<Account> =
        plans.iter().map(|plan| Account { connection: plan.name.clone(), ..Account::default() }).collect();
    let mut missing: Vec<Vec<u64>> = vec![Vec::new(); plans.len()];
    for number in sent.accepted_numbers() {
        let connection = route.connection_of(number);
        accounts[connection].accepted += 1;
        if book.received_at(usize::try_from(number).unwrap_or(usize::MAX)).is_some() {
            accounts[connection].taken += 1;
        } else {
            missing[connection].push(number);
        }
    }
    let ids: HashMap<u64, String> = sent.ids().into_iter().map(|(id, number)| (number, id)).collect();
    for (index, missing) in missing.iter().enumerate().filter(|(_, missing)| !missing.is_empty()) {
        let account = &mut accounts[index];
        let mut open = rows(server, &account.connection, OPEN).await?.into_iter().collect::<HashMap<_, _>>();
        let none = HashMap::new();
        let ended = ends.0.get(&account.connection).unwrap_or(&none);
        for number in missing {
            // Without an id any row still open may be it, once.
            let id = match ids.get(number) {
                Some(id) => Some(id.clone()),
                None => open.keys().next().cloned(),
            };
            match id.as_ref().and_then(|id| open.remove(id)).as_deref() {
                Some("DLQ") => account.dead += 1,
                Some(_) => account.waiting += 1,
                None if id.is_some_and(|id| ended.contains_key(&id)) => account.given_up += 1,
                None => account.lost += 1,
            }
        }
    }
    Ok(accounts)
}
