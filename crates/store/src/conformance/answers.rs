//! Cases of idempotency keys of requests that act. They must not depend on what was asked.

use super::TestStore;
use super::fixture::*;
use crate::*;

fn asked(key: u8, request: u8, ends_at_ms: i64) -> Idempotency {
    Idempotency { key_hash: [key; 32], request_hash: [request; 32], ends_at: at(ends_at_ms) }
}

fn answer(body: Option<&str>) -> KeptAnswer {
    KeptAnswer { status: 201, location: Some("/jobs/1".to_owned()), body: body.map(str::to_owned) }
}

pub async fn d15_an_answer_is_kept_until_its_key_ends(store: &dyn Store) {
    assert_eq!(store.claim_answer(asked(1, 1, 1000), at(0)).await, Ok(Claimed::First));
    assert_eq!(store.claim_answer(asked(1, 1, 1500), at(500)).await, Ok(Claimed::Unanswered));
    assert_eq!(store.claim_answer(asked(1, 2, 1500), at(500)).await, Ok(Claimed::KeyReused));
    store.keep_answer([1; 32], Some(answer(Some("{}")))).await.unwrap();
    assert_eq!(store.claim_answer(asked(1, 1, 1500), at(999)).await, Ok(Claimed::Answered(answer(Some("{}")))));
    assert_eq!(store.claim_answer(asked(1, 2, 1500), at(999)).await, Ok(Claimed::KeyReused));
    assert_eq!(store.claim_answer(asked(1, 2, 2000), at(1000)).await, Ok(Claimed::First), "it had ended");
    store.keep_answer([1; 32], Some(answer(None))).await.unwrap();
    assert_eq!(store.claim_answer(asked(1, 2, 3000), at(1500)).await, Ok(Claimed::Answered(answer(None))));
}

pub async fn d15_a_refused_request_gives_its_key_back(store: &dyn Store) {
    assert_eq!(store.claim_answer(asked(1, 1, 1000), at(0)).await, Ok(Claimed::First));
    store.keep_answer([1; 32], None).await.unwrap();
    assert_eq!(store.claim_answer(asked(1, 2, 1000), at(1)).await, Ok(Claimed::First));
    store.keep_answer([9; 32], Some(answer(None))).await.unwrap();
    assert_eq!(store.claim_answer(asked(9, 1, 1000), at(1)).await, Ok(Claimed::First), "nothing was claimed there");
}

pub async fn d15_ended_answers_go(store: &dyn Store) {
    for key in 1..=3 {
        store.claim_answer(asked(key, 1, 1000 * i64::from(key)), at(0)).await.unwrap();
    }
    assert_eq!(store.prune(at(0), at(2000), 1).await.unwrap().idempotency_keys, 1);
    assert_eq!(store.prune(at(0), at(2000), 10).await.unwrap().idempotency_keys, 1);
    assert_eq!(store.prune(at(0), at(2000), 10).await.unwrap().idempotency_keys, 0);
    assert_eq!(store.claim_answer(asked(3, 1, 5000), at(2000)).await, Ok(Claimed::Unanswered));
}

pub async fn d15_a_claim_and_an_answer_survive_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    store.claim_answer(asked(1, 1, 1000), at(0)).await.unwrap();
    store.claim_answer(asked(2, 1, 1000), at(0)).await.unwrap();
    store.keep_answer([2; 32], Some(answer(Some("{}")))).await.unwrap();
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.claim_answer(asked(1, 1, 1000), at(1)).await, Ok(Claimed::Unanswered));
    assert_eq!(store.claim_answer(asked(2, 1, 1000), at(1)).await, Ok(Claimed::Answered(answer(Some("{}")))));
}
