//! kill -9 of the real binary under load, over and over, on connections of every kind, with operators at work (Z13).
//!
//! The checker keeps its own books from what was told over HTTP and what its own receiver saw; the server's lists are only what the books are
//! compared with. `POSTRIDER_KILL_ROUNDS` sets how many rounds (default 20), `POSTRIDER_KILL_SEED` replays their moments and choices;
//! `cargo xtask crash` sets both.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod books;
mod checker;
mod checker_tests;
#[path = "../harness/mod.rs"]
mod harness;
mod operators;
mod publishers;
mod receiver;
mod scenario;
mod survey;

use std::path::Path;
use std::time::{Duration, Instant};

use books::{Books, Shared, Told};
use harness::{Api, Server, pseudo_random};
use operators::Operator;
use publishers::{How, Numbers, ask_until_killed};
use receiver::Remote;
use scenario::{DIRECT, HEALTHY, OPERATED, PLANS, TOPIC, UNORDERED};

const PROJECT: &str = "/api/v1/projects/default";
/// Findings that are shown; one broken rule breaks it for many.
const SHOWN_MAX: usize = 20;

// proves: Z11, Z13, Z20, Z21, Z22, Z23
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_nothing_accepted_is_lost_over_kill_nine() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = setting("POSTRIDER_KILL_ROUNDS").unwrap_or(20);
    let seed = setting("POSTRIDER_KILL_SEED").unwrap_or(7);
    println!("seed {seed}; to replay: cargo xtask crash --rounds {rounds} --seed {seed}");
    let began = Instant::now();
    let dir = tempfile::tempdir().unwrap();
    let books = Shared::default();
    let remote = Remote::start(books.clone()).await;
    let numbers = Numbers::new();
    let mut dice = seed;
    let mut kills = 0;

    for round in 1..=rounds {
        kills += u64::from(stillborn(dir.path(), &remote, &mut dice).await);
        remote.begin_life().await;
        let server = Server::start(dir.path()).await;
        let api = Api::new(&server.address);
        if round == 1 {
            create(&api, &remote.address).await;
        }
        let life = Duration::from_millis(40 + pseudo_random(&mut dice) % 500);
        let everybody = set_to_work(&api, &books, &numbers, &mut dice, round);
        tokio::time::sleep(life).await;
        server.kill_nine().await;
        kills += 1;
        for one in everybody {
            one.await.unwrap();
        }
        progress(&books.open(), round, rounds, life);
    }

    remote.heal();
    remote.begin_life().await;
    let server = Server::start(dir.path()).await;
    let api = Api::new(&server.address);
    for name in [OPERATED, HEALTHY] {
        api.call("POST", &format!("{PROJECT}/connections/{name}/resume"), "").await.unwrap();
    }
    survey::wait_for_rest(&api).await;
    survey::survey(&api, &books).await;
    server.stop().await;

    let books = books.open();
    report(&books, kills, began.elapsed());
    let findings = checker::findings(&books);
    assert!(
        findings.is_empty(),
        "{} findings with seed {seed}; to replay: cargo xtask crash --rounds {rounds} --seed {seed}\n{}",
        findings.len(),
        findings[..findings.len().min(SHOWN_MAX)].join("\n")
    );
    shows_something(&books, rounds);
}

/// One start in four is killed before it is ready.
async fn stillborn(data: &Path, remote: &Remote, dice: &mut u64) -> bool {
    if !pseudo_random(dice).is_multiple_of(4) {
        return false;
    }
    remote.begin_life().await;
    Server::start_and_kill(data, Duration::from_millis(pseudo_random(dice) % 120)).await;
    true
}

async fn create(api: &Api, remote: &str) {
    let (status, answer) =
        api.call("POST", &format!("{PROJECT}/topics"), &format!(r#"{{"name":"{TOPIC}"}}"#)).await.unwrap();
    assert_eq!(status, 201, "{answer}");
    for plan in &PLANS {
        let (name, settings) = (plan.name, plan.settings);
        let body = format!(
            r#"{{"name":"{name}","type":"rest","host":"http://{remote}","url_path":"/{name}","use_queue":true,"retry_sleep_time":0,"timeout":60,{settings}}}"#
        );
        let (status, answer) = api.call("POST", &format!("{PROJECT}/connections"), &body).await.unwrap();
        assert_eq!(status, 201, "{answer}");
    }
}

fn set_to_work(
    api: &Api,
    books: &Shared,
    numbers: &Numbers,
    dice: &mut u64,
    round: u64,
) -> Vec<tokio::task::JoinHandle<()>> {
    let ask = |name, how| tokio::spawn(ask_until_killed(api.clone(), books.clone(), numbers.clone(), name, how));
    // A caller does not wait behind what was published (D10): in every other life nothing is, so that callers are told outcomes.
    let is_published = |plan: &&scenario::Plan| plan.name != DIRECT || round.is_multiple_of(2);
    let mut everybody: Vec<_> = PLANS.iter().filter(is_published).map(|plan| ask(plan.name, How::Publish)).collect();
    everybody.extend([ask(DIRECT, How::Send), ask(DIRECT, How::Send)]);
    // Several at once fill what may run ahead and the slots.
    everybody.extend([HEALTHY, HEALTHY, UNORDERED, UNORDERED].map(|name| ask(name, How::Publish)));
    let mut operator = || Operator { api: api.clone(), books: books.clone(), seed: pseudo_random(dice) };
    everybody.push(tokio::spawn(operator().work_on_queue()));
    everybody.push(tokio::spawn(operator().work_on_dead_letters()));
    everybody
}

fn accepted(books: &Books) -> usize {
    books.asked.iter().filter(|asked| asked.told != Told::Nothing).count()
}

fn progress(books: &Books, round: u64, rounds: u64, life: Duration) {
    println!(
        "round {round}/{rounds}: killed after {} ms; so far {} accepted, {} received, {} acts by hand",
        life.as_millis(),
        accepted(books),
        books.receipts.len(),
        books.acts.len()
    );
}

fn report(books: &Books, kills: u64, took: Duration) {
    let again = checker::in_flight_at_kills(books);
    for plan in &PLANS {
        let accepted = books.asked.iter().filter(|a| a.connection == plan.name && a.told != Told::Nothing).count();
        let per_kill = again.iter().filter(|((name, _), _)| *name == plan.name).map(|(_, ids)| ids.len());
        let (most, sum) = per_kill.fold((0, 0), |(most, sum), count| (most.max(count), sum + count));
        println!("{:<10} {accepted:>6} accepted, {sum:>4} received again, at most {most} by one kill", plan.name);
    }
    let unseen = books.listed.iter().filter(|item| checker::left_unseen(&item.tries));
    for item in unseen {
        println!("{} {} was cut off three times before it was received: {:?}", item.connection, item.id, item.tries);
    }
    let sum: usize = again.values().map(std::collections::BTreeSet::len).sum();
    let unanswered = books.asked.len() - accepted(books);
    println!(
        "in all {} accepted, {unanswered} without an answer, {} received, {sum} received again after a 2xx, {} acts by hand, {} forwarded, {kills} kills, {} s",
        accepted(books),
        books.receipts.len(),
        books.acts.len(),
        books.letters.len(),
        took.as_secs()
    );
}

/// A run in which something never happened proves nothing about it.
fn shows_something(books: &Books, rounds: u64) {
    for plan in &PLANS {
        let count = books.asked.iter().filter(|a| a.connection == plan.name && a.told != Told::Nothing).count() as u64;
        assert!(count > rounds, "{}: only {count} were accepted", plan.name);
    }
    let statuses: std::collections::BTreeSet<&str> = books.listed.iter().map(|item| item.status.as_str()).collect();
    for status in ["SUCCESS", "DLQ", "DISCARDED", "FORWARDED"] {
        assert!(statuses.contains(status), "nothing ended {status}");
    }
    for deed in [books::Deed::Edit, books::Deed::Discard, books::Deed::Retry] {
        let done = books.acts.iter().any(|act| act.deed == deed && act.answer == books::Answer::Done);
        assert!(done, "no {deed:?} was acknowledged");
    }
    assert!(
        books.asked.iter().any(|asked| matches!(asked.told, Told::Delivered(_))),
        "no caller was told of a delivery"
    );
}
