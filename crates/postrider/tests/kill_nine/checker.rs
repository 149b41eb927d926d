//! What must be true of the books at the end, whatever was killed when. Pure: books in, findings out.
//!
//! It must not ask the server for anything; the server's lists are only one side of each comparison.

use std::collections::{BTreeMap, BTreeSet};

use crate::books::{Answer, Asked, Books, Deed, Listed, Receipt, Told, Try};
use crate::scenario::{PLANS, Plan, plan};

type Rule = fn(&Books) -> Vec<String>;

pub const RULES: [(&str, Rule); 9] = [
    ("no answer that may not be", complaints),
    ("accounted for exactly once", accounted),
    ("ended as received", ended),
    ("counts per status", counts),
    ("first received in order", order),
    ("received again only if in flight at a kill", doubled),
    ("edits, discards and retries by hand", acts),
    ("attempts without gaps and as received", attempts),
    ("each forwarded dead letter on the topic once", letters),
];

pub fn findings(books: &Books) -> Vec<String> {
    let of = |(name, rule): &(&str, fn(&Books) -> Vec<String>)| {
        rule(books).into_iter().map(|what| format!("{name}: {what}")).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(of).collect()
}

/// For each life and connection: those answered 2xx in that life and received again in a later one.
pub fn in_flight_at_kills(books: &Books) -> BTreeMap<(&'static str, u32), BTreeSet<&str>> {
    let mut found: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    let mut taken_in: BTreeMap<&str, u32> = BTreeMap::new();
    for receipt in &books.receipts {
        if let (Some(life), Some(plan)) = (taken_in.get(receipt.id.as_str()), plan(&receipt.connection))
            && *life != receipt.life
        {
            found.entry((plan.name, *life)).or_default().insert(&receipt.id);
        }
        if receipt.status == 200 {
            taken_in.insert(&receipt.id, receipt.life);
        }
    }
    found
}

fn complaints(books: &Books) -> Vec<String> {
    books.complaints.clone()
}

fn accounted(books: &Books) -> Vec<String> {
    let mut found = Vec::new();
    let mut listed: BTreeMap<&str, Vec<&Listed>> = BTreeMap::new();
    for item in &books.listed {
        listed.entry(&item.id).or_default().push(item);
    }
    let mut told: BTreeMap<&str, &Asked> = BTreeMap::new();
    for asked in &books.asked {
        let Some(id) = asked.told.id() else { continue };
        if let Some(other) = told.insert(id, asked) {
            found.push(format!("{id} was told for {} and {}", other.key, asked.key));
        }
        let places = listed.get(id.as_str()).map_or(0, Vec::len);
        if places != 1 {
            found.push(format!("{id} ({}) was accepted and is listed {places} times", asked.key));
        }
    }
    for (id, items) in &listed {
        if items.len() > 1 && !told.contains_key(id) {
            found.push(format!("{id} is listed {} times", items.len()));
        }
    }
    for plan in &PLANS {
        let untold = listed.iter().filter(|(id, items)| items[0].connection == plan.name && !told.contains_key(*id));
        let unanswered = asked_on(books, plan).filter(|asked| asked.told == Told::Nothing).count();
        let untold = untold.count();
        if untold > unanswered {
            found.push(format!(
                "{}: {untold} are listed that nobody was told of, {unanswered} had no answer",
                plan.name
            ));
        }
    }
    let keys: BTreeMap<&str, &Asked> = books.asked.iter().map(|asked| (asked.key.as_str(), asked)).collect();
    let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
    for receipt in &books.receipts {
        match keys.get(receipt.key.as_str()) {
            None => found.push(format!("{} was received and never asked for", receipt.key)),
            Some(asked) if asked.told.id().is_some_and(|id| *id != receipt.id) => {
                found.push(format!("{} was received as {}, told was {:?}", receipt.key, receipt.id, asked.told));
            }
            Some(_) => {}
        }
        if *ids.entry(&receipt.key).or_insert(&receipt.id) != receipt.id {
            found.push(format!("{} was received under two ids", receipt.key));
        }
    }
    found
}

/// How a delivery may stand at the end, from what was received and done; more than one only where an answer never came.
fn ends(plan: &Plan, item: &Listed, last: Option<&Receipt>, books: &ByDelivery<'_>) -> BTreeSet<&'static str> {
    let discards = books.acts_of(&item.id, Deed::Discard);
    if discards.contains(&Answer::Done) {
        return BTreeSet::from(["DISCARDED"]);
    }
    let mut ends = BTreeSet::new();
    match last {
        Some(receipt) if receipt.status == 200 => ends.insert("SUCCESS"),
        Some(_) => ends.insert(plan.undelivered),
        None => false,
    };
    if discards.contains(&Answer::Nothing) {
        ends.insert("DISCARDED");
    }
    // Three interruptions in a row are a failed round (D04).
    let interrupted = item.tries.iter().rev().take_while(|attempt| attempt.interrupted).count();
    if interrupted >= 3 {
        ends.insert(if plan.undelivered.is_empty() { "DLQ" } else { plan.undelivered });
    }
    ends
}

fn ended(books: &Books) -> Vec<String> {
    let by = ByDelivery::new(books);
    let mut found = Vec::new();
    for item in &books.listed {
        let Some(plan) = plan(item.connection) else { continue };
        let last = by.receipts_of(&item.id).last().copied();
        let allowed = ends(plan, item, last, &by);
        if !allowed.contains(item.status.as_str()) {
            found.push(format!("{} {} is {}, not one of {allowed:?}", item.connection, item.id, item.status));
        }
        if item.status == "DLQ" && !item.has_note {
            found.push(format!("{} {} is dead without a note of why and when", item.connection, item.id));
        }
    }
    let status: BTreeMap<&str, &str> =
        books.listed.iter().map(|item| (item.id.as_str(), item.status.as_str())).collect();
    for asked in &books.asked {
        let (id, wanted) = match &asked.told {
            Told::Delivered(id) => (id, "SUCCESS"),
            Told::Dead(id) => (id, "DLQ"),
            Told::Nothing | Told::Queued(_) => continue,
        };
        if status.get(id.as_str()) != Some(&wanted) {
            found.push(format!(
                "the caller of {} was told {:?}, it is {:?}",
                asked.key,
                asked.told,
                status.get(id.as_str())
            ));
        }
        let answered = if wanted == "SUCCESS" { 200 } else { 500 };
        if !by.receipts_of(id).iter().any(|receipt| receipt.tick < asked.known && receipt.status == answered) {
            found.push(format!("the caller of {} was told {:?} before it was so", asked.key, asked.told));
        }
    }
    found
}

/// The lists against the ledger: as many of each status as were seen to end so, but for those whose answer never came.
fn counts(books: &Books) -> Vec<String> {
    let by = ByDelivery::new(books);
    let ids: BTreeMap<&str, &str> =
        books.receipts.iter().map(|receipt| (receipt.key.as_str(), receipt.id.as_str())).collect();
    let mut found = Vec::new();
    for plan in &PLANS {
        let mut certain: BTreeMap<&str, usize> = BTreeMap::new();
        let mut unsure = 0;
        for asked in asked_on(books, plan) {
            let id = asked.told.id().map(String::as_str).or(ids.get(asked.key.as_str()).copied());
            let last = id.and_then(|id| by.receipts_of(id).last());
            let discards = id.map(|id| by.acts_of(id, Deed::Discard)).unwrap_or_default();
            match last {
                _ if discards.contains(&Answer::Done) => *certain.entry("DISCARDED").or_default() += 1,
                Some(receipt) if !discards.contains(&Answer::Nothing) => {
                    *certain.entry(if receipt.status == 200 { "SUCCESS" } else { plan.undelivered }).or_default() += 1;
                }
                _ => unsure += 1,
            }
        }
        let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
        for item in books.listed.iter().filter(|item| item.connection == plan.name) {
            *listed.entry(&item.status).or_default() += 1;
            // Ended by interruptions alone, whatever was received before.
            unsure += usize::from(item.tries.last().is_some_and(|attempt| attempt.interrupted));
        }
        let statuses: BTreeSet<&str> = certain.keys().chain(listed.keys()).copied().collect();
        for status in statuses {
            let (own, theirs) = (certain.get(status).unwrap_or(&0), listed.get(status).unwrap_or(&0));
            if own.abs_diff(*theirs) > unsure {
                found.push(format!("{}: {theirs} {status} are listed, the books have {own} ± {unsure}", plan.name));
            }
        }
    }
    found
}

/// Whoever was asked for after another one was known to be accepted or lost is first received after it.
fn order(books: &Books) -> Vec<String> {
    let mut found = Vec::new();
    let keys: BTreeMap<&str, &Asked> = books.asked.iter().map(|asked| (asked.key.as_str(), asked)).collect();
    let tries: BTreeMap<&str, &[Try]> =
        books.listed.iter().map(|item| (item.id.as_str(), item.tries.as_slice())).collect();
    let mut seen = BTreeSet::new();
    let mut latest: BTreeMap<&str, &Asked> = BTreeMap::new();
    for receipt in &books.receipts {
        let (Some(asked), Some(plan)) = (keys.get(receipt.key.as_str()), plan(&receipt.connection)) else { continue };
        if !plan.ordered || !seen.insert(&receipt.key) {
            continue;
        }
        let last = latest.entry(plan.name).or_insert(asked);
        let tries = tries.get(receipt.id.as_str()).copied().unwrap_or_default();
        if asked.known < last.asked && !left_unseen(tries) {
            found.push(format!("{} was received before its predecessor {}: {tries:?}", last.key, asked.key));
        }
        if asked.asked > last.asked {
            *last = asked;
        }
    }
    found
}

/// Three interruptions in a row are a failed round (D04): it may have left for the DLQ before it was ever received, and a retry puts it at
/// the tail.
pub fn left_unseen(tries: &[Try]) -> bool {
    tries.iter().take_while(|attempt| attempt.interrupted).count() >= 3
}

fn doubled(books: &Books) -> Vec<String> {
    let mut found = Vec::new();
    let mut taken_in: BTreeMap<&str, u32> = BTreeMap::new();
    for receipt in &books.receipts {
        if taken_in.get(receipt.id.as_str()) == Some(&receipt.life) {
            found.push(format!("{} was sent again after a 2xx with no kill between", receipt.key));
        }
        if receipt.status == 200 {
            taken_in.insert(&receipt.id, receipt.life);
        }
    }
    for ((connection, life), ids) in in_flight_at_kills(books) {
        let allowed = plan(connection).map_or(0, |plan| plan.in_flight_max);
        if ids.len() > allowed {
            found.push(format!(
                "{connection}: {} were in flight at the kill of life {life}, at most {allowed} can be",
                ids.len()
            ));
        }
    }
    found
}

/// "Afterwards" is on a TCP connection of the acknowledging life or a later one: what an earlier life had sent was in flight at its kill.
fn acts(books: &Books) -> Vec<String> {
    let by = ByDelivery::new(books);
    let mut found = Vec::new();
    for act in &books.acts {
        let receipts = by.receipts_of(&act.id);
        let after = || receipts.iter().filter(|receipt| receipt.tick > act.known && receipt.life >= act.life);
        match (act.deed, act.answer) {
            (Deed::Discard, Answer::Done) => {
                found.extend(after().map(|receipt| format!("{} was received after its discard", receipt.key)));
            }
            (Deed::Edit, Answer::Done) => {
                let old = after().filter(|receipt| !receipt.edited);
                found.extend(old.map(|receipt| format!("{} was received unedited after its edit", receipt.key)));
            }
            (Deed::Retry, Answer::Done) => {
                let again = receipts.iter().any(|receipt| receipt.tick > act.asked);
                let excused = by.discarded_after(&act.id, act.asked) || by.was_interrupted(&act.id);
                if !again && !excused {
                    found.push(format!("{} was retried by hand and never received again", act.id));
                }
            }
            (_, Answer::Refused | Answer::Nothing) => {}
        }
    }
    let edits: BTreeMap<&str, _> =
        books.acts.iter().filter(|act| act.deed == Deed::Edit).map(|act| (act.id.as_str(), act)).collect();
    for receipt in books.receipts.iter().filter(|receipt| receipt.edited) {
        match edits.get(receipt.id.as_str()) {
            Some(edit) if edit.answer != Answer::Refused && edit.asked < receipt.tick => {}
            _ => found.push(format!("{} was received edited without an edit", receipt.key)),
        }
    }
    found
}

fn attempts(books: &Books) -> Vec<String> {
    let by = ByDelivery::new(books);
    let mut found = Vec::new();
    for item in &books.listed {
        let numbers: Vec<u64> = item.tries.iter().map(|attempt| attempt.number).collect();
        if !numbers.iter().copied().eq(1..=item.attempts) {
            found.push(format!("{} {}: {} attempts, numbered {numbers:?}", item.connection, item.id, item.attempts));
        }
        let receipts = by.receipts_of(&item.id);
        for status in [200, 500] {
            let recorded = item.tries.iter().filter(|attempt| attempt.status == Some(status)).count();
            let received = receipts.iter().filter(|receipt| receipt.status == status).count();
            if recorded > received {
                found.push(format!(
                    "{} {}: {recorded} attempts with {status}, {received} received",
                    item.connection, item.id
                ));
            }
        }
        let recorded = item.tries.iter().filter(|attempt| attempt.status.is_some()).count();
        let lives: BTreeSet<u32> = receipts.iter().map(|receipt| receipt.life).collect();
        // One of a life at most was never settled: the one in flight at its kill.
        if receipts.len() > recorded + lives.len() {
            found.push(format!("{} {}: {} received, {recorded} recorded", item.connection, item.id, receipts.len()));
        }
    }
    found
}

fn letters(books: &Books) -> Vec<String> {
    let mut found = Vec::new();
    let status: BTreeMap<String, &str> =
        books.listed.iter().map(|item| (item.id.replacen("msg_", "evt_", 1), item.status.as_str())).collect();
    let mut on_topic: BTreeMap<&str, usize> = BTreeMap::new();
    let by_key: BTreeMap<&str, &str> =
        books.receipts.iter().map(|receipt| (receipt.key.as_str(), receipt.id.as_str())).collect();
    for letter in &books.letters {
        *on_topic.entry(&letter.id).or_default() += 1;
        match status.get(&letter.id) {
            Some(&"FORWARDED") => {}
            other => found.push(format!("{} is on the topic, and its delivery is {other:?}", letter.id)),
        }
        if let Some(id) = by_key.get(letter.key.as_str())
            && id.replacen("msg_", "evt_", 1) != letter.id
        {
            found.push(format!("{} is on the topic as {}, not as {id}", letter.key, letter.id));
        }
        if !letter.has_note {
            found.push(format!("{} is on the topic without its note", letter.id));
        }
    }
    for item in books.listed.iter().filter(|item| item.status == "FORWARDED") {
        let times = on_topic.get(item.id.replacen("msg_", "evt_", 1).as_str()).copied().unwrap_or(0);
        if times != 1 {
            found.push(format!("{} was forwarded and is on the topic {times} times", item.id));
        }
    }
    found
}

fn asked_on<'a>(books: &'a Books, plan: &'a Plan) -> impl Iterator<Item = &'a Asked> {
    books.asked.iter().filter(move |asked| asked.connection == plan.name)
}

/// The books by delivery.
struct ByDelivery<'a> {
    receipts: BTreeMap<&'a str, Vec<&'a Receipt>>,
    acts: BTreeMap<&'a str, Vec<(Deed, u64, Answer)>>,
    interrupted: BTreeSet<&'a str>,
}

impl<'a> ByDelivery<'a> {
    fn new(books: &'a Books) -> Self {
        let mut by = ByDelivery { receipts: BTreeMap::new(), acts: BTreeMap::new(), interrupted: BTreeSet::new() };
        for receipt in &books.receipts {
            by.receipts.entry(&receipt.id).or_default().push(receipt);
        }
        for act in &books.acts {
            by.acts.entry(&act.id).or_default().push((act.deed, act.asked, act.answer));
        }
        let interrupted = books.listed.iter().filter(|item| item.tries.iter().any(|attempt| attempt.interrupted));
        by.interrupted.extend(interrupted.map(|item| item.id.as_str()));
        by
    }

    fn receipts_of(&self, id: &str) -> &[&'a Receipt] {
        self.receipts.get(id).map_or(&[], Vec::as_slice)
    }

    fn acts_of(&self, id: &str, deed: Deed) -> Vec<Answer> {
        let acts = self.acts.get(id).map_or(&[][..], Vec::as_slice);
        acts.iter().filter(|(done, _, _)| *done == deed).map(|(_, _, answer)| *answer).collect()
    }

    fn discarded_after(&self, id: &str, tick: u64) -> bool {
        let acts = self.acts.get(id).map_or(&[][..], Vec::as_slice);
        acts.iter().any(|(deed, asked, answer)| *deed == Deed::Discard && *asked > tick && *answer != Answer::Refused)
    }

    fn was_interrupted(&self, id: &str) -> bool {
        self.interrupted.contains(id)
    }
}
