//! What people do to deliveries: retry, resend, discard, set aside, attempt now, edit, forward (Z23, D06, D27, D44).
//!
//! What waits in a leased queue is changed by its owner between attempts, everything else by version. It must not know the rules of what is
//! allowed; the core refuses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use postrider_core::decide::{ByHand, Decision, Event, Refused, Snapshot, decide};
use postrider_core::delivery::{Delivery, Origin, Status};
use postrider_core::id::{CommandId, DeliveryId, ForwardId, ProjectId};
use postrider_core::topic::TopicName;
use postrider_store::{
    AuditEntry, Command, CommandAct, CommandAnswer, Forward, Guard, NewBody, Placement, Settled, Settlement,
};

use serde_json::json;

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::forwarding::{self, By};
use crate::refusal::Refusal;
use crate::runner::ToRunner;
use crate::shared::Shared;
use crate::{dispatcher, quotas, switching};

/// How often a change by version is tried when somebody else was faster.
const TRIES: u32 = 8;
/// An owner in another process cannot tell us; its answer is looked for this often.
const LOOK_FOR_ANSWER: Duration = Duration::from_secs(1);

/// One wish of a person.
pub(crate) enum Wish {
    Act(ByHand),
    Edit(Bytes),
    Forward { topic: TopicName, keep_header: bool },
}

impl Wish {
    fn by_hand(&self) -> ByHand {
        match self {
            Wish::Act(act) => *act,
            Wish::Edit(_) => ByHand::Edit,
            Wish::Forward { .. } => ByHand::Forward,
        }
    }

    /// What the owner of a queue can be asked for; retry, resend and forward are about what no longer waits.
    fn command(&self) -> Option<CommandAct> {
        match self {
            Wish::Edit(body) => Some(CommandAct::Edit { body: body.clone() }),
            Wish::Act(ByHand::Discard) => Some(CommandAct::Discard),
            Wish::Act(ByHand::SetAside) => Some(CommandAct::SetAside),
            // Resending what waits means: attempt it now (D27).
            Wish::Act(ByHand::AttemptNow | ByHand::Resend) => Some(CommandAct::AttemptNow),
            Wish::Act(ByHand::Retry | ByHand::Forward | ByHand::Edit) | Wish::Forward { .. } => None,
        }
    }
}

/// What the audit log is told: the act, and what the delivery was before it. The body stays out of it.
fn entry(shared: &Shared, actor: &Actor, delivery: &Delivery, wish: &Wish) -> AuditEntry {
    let (action, after) = match wish {
        Wish::Act(ByHand::Retry) => ("delivery.retry", None),
        Wish::Act(ByHand::Resend) => ("delivery.resend", None),
        Wish::Act(ByHand::Discard) => ("delivery.discard", None),
        Wish::Act(ByHand::SetAside) => ("delivery.set_aside", None),
        Wish::Act(ByHand::AttemptNow) => ("delivery.attempt_now", None),
        Wish::Edit(body) => ("delivery.edit", Some(json!({"body_bytes": body.len()}))),
        Wish::Act(ByHand::Edit) => ("delivery.edit", None),
        Wish::Forward { topic, .. } => ("delivery.forward", Some(json!({"topic": topic}))),
        Wish::Act(ByHand::Forward) => ("delivery.forward", None),
    };
    let mut entry = shared.audit_entry(actor, Some(delivery.project_id), action);
    entry.object = Some(delivery.id.to_string());
    entry.object_name = shared.connections.get(delivery.connection_id).map(|connection| connection.name.clone());
    entry.after = after;
    entry.with_before(json!({"status": delivery.progress.status.as_str(), "attempts": delivery.progress.attempts}))
}

/// Answers with the delivery as it stands then.
pub(crate) async fn grant(
    shared: &Arc<Shared>,
    actor: &Actor,
    project: ProjectId,
    id: DeliveryId,
    wish: Wish,
) -> Result<Delivery, Refusal> {
    if let Wish::Edit(body) = &wish {
        let (given, allowed) = (body.len() as u64, shared.options.body_bytes_max);
        if given > allowed {
            return Err(Refusal::TooLarge { given, allowed });
        }
    }
    if let Wish::Act(act @ (ByHand::Retry | ByHand::Resend | ByHand::AttemptNow)) = &wish {
        let delivery = read(shared, project, id).await?;
        if let Some(connection) = shared.connections.get(delivery.connection_id) {
            switching::check_by_hand(shared, &connection)?;
            if *act == ByHand::Resend && connection.spec.target.webhook().is_some() {
                quotas::take(shared, project).await?;
            }
        }
    }
    for _ in 0..TRIES {
        let delivery = read(shared, project, id).await?;
        refuse_forward(&delivery, &wish)?;
        let held = delivery.progress.status.is_waiting();
        if held
            && let Some(act) = wish.command()
            && let Some(answer) = ask_owner(shared, &delivery, act, entry(shared, actor, &delivery, &wish)).await?
        {
            return match answer {
                CommandAnswer::Applied => read(shared, project, id).await,
                CommandAnswer::AlreadyDelivered => Err(Refusal::NotNow(Refused::AlreadyDelivered)),
                // It left the queue meanwhile: as it is now, other rules hold.
                CommandAnswer::NotWaiting => continue,
            };
        }
        if let Some(done) = change(shared, actor, &delivery, &wish).await? {
            return Ok(done);
        }
    }
    Err(Refusal::Conflict("the delivery keeps changing; try again".to_owned()))
}

/// R12: what came in is retried as a new forward, and not three times more.
fn refuse_forward(delivery: &Delivery, wish: &Wish) -> Result<(), Refusal> {
    if delivery.origin != Origin::Incoming || !matches!(wish, Wish::Act(ByHand::Retry)) {
        return Ok(());
    }
    let id = ForwardId::of(delivery.id);
    Err(Refusal::Conflict(format!("it is a forward, and retried as a new one: POST …/incoming-dlq/{id}/retry")))
}

async fn read(shared: &Shared, project: ProjectId, id: DeliveryId) -> Result<Delivery, Refusal> {
    let found = shared.store.delivery(id).await?.filter(|delivery| delivery.project_id == project);
    found.ok_or_else(|| Refusal::NotFound { what: "delivery", name: id.to_string() })
}

/// `None`: nobody holds it.
async fn ask_owner(
    shared: &Shared,
    delivery: &Delivery,
    act: CommandAct,
    entry: AuditEntry,
) -> Result<Option<CommandAnswer>, Refusal> {
    let now = shared.now();
    let id = shared.new_command_id(now);
    let queue_id = delivery.connection_id;
    let command = Command { id, queue_id, delivery_id: delivery.id, act, issued_at: now, job_id: None };
    let mut answered = shared.notifier.expect_answer(id);
    if !shared.store.submit_by_hand(command, entry, now).await? {
        shared.notifier.answered(id);
        return Ok(None);
    }
    shared.queues.tell(queue_id, ToRunner::Commands);
    wait_for_answer(shared, id, &mut answered).await.map(Some)
}

async fn wait_for_answer(
    shared: &Shared,
    id: CommandId,
    answered: &mut tokio::sync::oneshot::Receiver<()>,
) -> Result<CommandAnswer, Refusal> {
    let mut told = false;
    loop {
        tokio::select! {
            biased;
            _ = &mut *answered, if !told => told = true,
            () = tokio::time::sleep(LOOK_FOR_ANSWER) => {}
        }
        if let Some(answer) = shared.store.take_answer(id).await? {
            return Ok(answer);
        }
        if shared.is_stopping() {
            return Err(Refusal::Stopping);
        }
    }
}

/// By version. `None`: somebody else was faster.
async fn change(
    shared: &Arc<Shared>,
    actor: &Actor,
    delivery: &Delivery,
    wish: &Wish,
) -> Result<Option<Delivery>, Refusal> {
    let Some(connection) = shared.connections.get(delivery.connection_id) else {
        return Err(Refusal::Conflict("its connection is gone".to_owned()));
    };
    let now = shared.now();
    let snapshot =
        Snapshot { progress: &delivery.progress, policy: &connection.spec.policy, ladder: delivery.ladder.as_ref() };
    let decision = decide(Event::ByHand(wish.by_hand()), snapshot, now, shared.roll())?;
    let (edited_body, forward) = match wish {
        Wish::Act(_) => (None, None),
        Wish::Edit(body) => (Some(NewBody { id: shared.new_body_id(now), bytes: body.clone() }), None),
        Wish::Forward { topic, keep_header } => {
            let forward = forwarding::forward(shared, delivery, (topic, *keep_header), now, By::Hand).await??;
            let Some(forward) = forward else { return Ok(None) };
            (None, Some(forward))
        }
    };
    let settlement = Settlement { edited_body, ..settlement(delivery, decision, forward) };
    write(shared, delivery, settlement, entry(shared, actor, delivery, wish)).await
}

/// A person's decision about a delivery that no owner holds: written if it has not changed since.
pub(crate) fn settlement(delivery: &Delivery, decision: Decision, forward: Option<Box<Forward>>) -> Settlement {
    Settlement {
        delivery_id: delivery.id,
        queue_id: delivery.connection_id,
        guard: Guard::Version(delivery.version),
        progress: decision.progress,
        placement: if decision.to_tail { Placement::Tail } else { Placement::Keep },
        attempt: None,
        forward,
        edited_body: None,
        answers: None,
        health: None,
    }
}

async fn write(
    shared: &Arc<Shared>,
    delivery: &Delivery,
    settlement: Settlement,
    entry: AuditEntry,
) -> Result<Option<Delivery>, Refusal> {
    let waits = settlement.progress.status.is_waiting();
    let is_dead = settlement.progress.status == Status::Dlq;
    let topic = settlement.forward.as_ref().map(|forward| forward.message.topic.to_string());
    let pushed_to = forwarding::queues_of(&settlement);
    match shared.store.settle_by_hand(settlement, entry).await? {
        Settled::Applied { .. } => {
            forwarding::tell(shared, pushed_to);
            if waits {
                dispatcher::wake(shared, delivery.connection_id);
            } else if is_dead {
                shared.dead_lettered(delivery.connection_id, delivery.id);
            } else {
                shared.sweeps.dead_letter(delivery.connection_id);
            }
            read(shared, delivery.project_id, delivery.id).await.map(Some)
        }
        Settled::NoTopic => Err(Refusal::NotFound { what: "topic", name: topic.unwrap_or_default() }),
        Settled::Full { limit } => Err(Refusal::Full { limit }),
        Settled::Gone => Err(Refusal::NotFound { what: "delivery", name: delivery.id.to_string() }),
        Settled::Stale => Ok(None),
    }
}
