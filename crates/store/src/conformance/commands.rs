//! Cases of operators' commands to the owner of a queue (D06). They must not carry them out.

use postrider_core::delivery::Status;
use postrider_core::id::CommandId;

use super::fixture::*;
use crate::*;

pub async fn d06_a_command_waits_until_its_owner_answers(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let other = world.connection("other", true).await;
    let stored = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    let foreign = world.owner(&other, 5).await;
    let second = Command { act: CommandAct::AttemptNow, ..world.command(&connection, stored[1], 8) };
    let body = bytes::Bytes::from_static(b"\0new");
    let first = Command { act: CommandAct::Edit { body }, ..world.command(&connection, stored[0], 7) };
    for command in [&second, &first] {
        assert!(store.submit_command(command.clone(), at(8)).await.unwrap());
    }
    assert_eq!(store.commands(lease).await.unwrap(), [first.clone(), second.clone()], "oldest first");
    assert_eq!(store.commands(lease).await.unwrap().len(), 2, "they stay until answered");
    assert!(store.commands(foreign).await.unwrap().is_empty());
    assert_eq!(store.take_answer(first.id).await, Ok(None));
    store.answer_command(lease, first.id, CommandAnswer::AlreadyDelivered).await.unwrap();
    assert_eq!(store.commands(lease).await.unwrap(), [second]);
    assert_eq!(store.take_answer(first.id).await, Ok(Some(CommandAnswer::AlreadyDelivered)));
    assert_eq!(store.take_answer(first.id).await, Ok(None), "taking it removes the command");
    let unknown = store.answer_command(lease, CommandId::from_u128(99), CommandAnswer::NotWaiting).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub async fn d06_a_settlement_answers_its_command(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 1).await;
    let old = world.owner(&connection, 0).await;
    let command = world.command(&connection, stored[0], 5);
    assert!(store.submit_command(command.clone(), at(5)).await.unwrap());
    let lease = world.owner(&connection, 20_000).await;
    assert_eq!(store.commands(lease).await.unwrap(), std::slice::from_ref(&command), "it waits for the next owner");
    let discarded = ended(world.delivery(stored[0]).await.progress, Status::Discarded, at(9));
    let answers = Some((command.id, CommandAnswer::Applied));
    for (guard, wanted) in [(old, None), (lease, Some(CommandAnswer::Applied))] {
        let decision = world.decision(stored[0], Guard::Lease(guard), discarded.clone()).await;
        world.settle(Settlement { answers, ..decision }).await;
        assert_eq!(store.take_answer(command.id).await, Ok(wanted));
    }
    assert!(store.commands(lease).await.unwrap().is_empty());
}

pub async fn d06_a_command_needs_a_living_owner_and_a_waiting_delivery(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 3).await;
    let submit = async |id, millis| {
        let command = world.command(&connection, id, millis);
        store.submit_command(command, at(millis)).await.unwrap()
    };
    assert!(!submit(stored[0], 1).await, "nobody owns the queue");
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[0], lease, Status::Dlq).await;
    world.attempted(stored[1], lease, Status::Success).await;
    assert!(!submit(stored[0], 6).await, "in the DLQ");
    assert!(!submit(stored[1], 6).await, "in the log");
    assert!(!submit(postrider_core::id::DeliveryId::from_u128(99), 6).await);
    assert!(submit(stored[2], 6).await);
    assert_eq!(store.commands(lease).await.unwrap().len(), 1, "those refused leave no trace");
}
