//! What an operator's command makes of a delivery that its queue's owner holds (D06).
//!
//! It must not know where the owner keeps the delivery.

use postrider_core::decide::{ByHand, Event, Refused, Snapshot, decide};
use postrider_core::delivery::{Delivery, Progress};
use postrider_core::policy::DeliveryPolicy;
use postrider_store::{Command, CommandAct, CommandAnswer, NewBody};

use crate::shared::Shared;

pub(super) enum Change {
    /// To be written with the answer `Applied`.
    Write { progress: Box<Progress>, edited_body: Option<NewBody> },
    /// Nothing changes.
    Refuse(CommandAnswer),
}

pub(super) fn change(shared: &Shared, command: &Command, delivery: &Delivery, policy: &DeliveryPolicy) -> Change {
    let now = shared.now();
    let act = match &command.act {
        CommandAct::Edit { .. } => ByHand::Edit,
        CommandAct::Discard => ByHand::Discard,
        CommandAct::SetAside => ByHand::SetAside,
        CommandAct::AttemptNow => ByHand::AttemptNow,
    };
    let progress = &delivery.progress;
    if !progress.status.is_waiting() {
        return Change::Refuse(if progress.delivered_at.is_some() {
            CommandAnswer::AlreadyDelivered
        } else {
            CommandAnswer::NotWaiting
        });
    }
    let snapshot = Snapshot { progress, policy, ladder: delivery.ladder.as_ref() };
    match decide(Event::ByHand(act), snapshot, now, shared.roll()) {
        Ok(decision) => {
            let edited_body = match &command.act {
                CommandAct::Edit { body } => Some(NewBody { id: shared.new_body_id(now), bytes: body.clone() }),
                CommandAct::Discard | CommandAct::SetAside | CommandAct::AttemptNow => None,
            };
            Change::Write { progress: Box::new(decision.progress), edited_body }
        }
        Err(Refused::AlreadyDelivered) => Change::Refuse(CommandAnswer::AlreadyDelivered),
        Err(Refused::InFlight | Refused::WrongStatus { .. }) => Change::Refuse(CommandAnswer::NotWaiting),
    }
}
