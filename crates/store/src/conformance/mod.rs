//! One suite for every store, cut by topic. `conformance_suite!(make_store)` turns each case into a test.
//!
//! `make_store` is an `async fn(StoreLimits) -> impl TestStore` that gives a fresh, empty store each time. The suite must not know which
//! store it runs on: it sees the contract only, and it reads no clock and rolls no dice.
#![allow(clippy::unwrap_used, reason = "these are tests, wherever they are compiled")]

pub mod alerts;
pub mod answers;
pub mod audit;
pub mod calls;
pub mod commands;
pub mod configuration;
pub mod configure;
pub mod credentials;
pub mod endpoints;
pub mod events;
pub(crate) mod fixture;
pub mod health;
pub mod intake;
pub mod jobs;
pub mod lines;
pub mod listing;
pub mod ownership;
pub mod people;
pub mod retention;
pub mod security;
pub mod settle;
pub mod sources;
pub mod topics;
pub mod walk;
pub mod window;

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Store, StoreLimits};

/// A store under test, and the power to kill it.
#[async_trait]
pub trait TestStore: Send {
    fn store(&self) -> Arc<dyn Store>;

    /// Ends the store without a goodbye and opens it again over the same data. Whatever it had answered is still there, and with an
    /// embedded store every lease has ended. `store()` gives the new one from then on.
    async fn reopen(&mut self);
}

/// The limits that the suite's stores are made with: low enough to reach.
pub const LIMITS: StoreLimits = StoreLimits { queue_messages_max: 400, queue_bytes_max: 1_000_000 };

/// Makes a test of every case of the suite, for the store that `make_store` makes.
///
/// The tests stand where the macro does: `conformance_suite!(crate::tests::make_store);`.
#[macro_export]
macro_rules! conformance_suite {
    ($make_store:path) => {
        $crate::conformance_tests! { on_store $make_store,
            intake {
                z11_each_request_is_told_how_many_wait_ahead,
                z11_what_has_left_the_queue_is_not_ahead,
                z13_what_was_accepted_reads_back_whole,
                a_missing_connection_refuses_its_own_request_only,
                a_known_id_refuses_the_whole_batch,
                d15_a_repeat_gets_the_first_id_until_its_key_ends,
                d07_a_full_queue_refuses_and_drops_nothing,
                d07_a_queue_full_of_bytes_refuses,
                d04_a_delivery_is_claimed_as_it_is_stored,
                d04_a_claim_under_an_ended_lease_waits_unspent,
                d12_direct_calls_go_straight_to_the_log,
                d12_a_call_with_a_gap_in_its_attempts_is_refused,
                bodies_of_one_event_are_stored_once,
            }
            ownership {
                d05_only_queues_with_something_waiting_are_taken_oldest_first,
                d05_a_living_owner_keeps_its_queue,
                d05_a_renewal_after_the_end_is_refused,
                d05_a_released_queue_is_not_taken_over,
                d05_named_queues_are_taken_also_when_empty,
                d05_who_takes_a_queue_learns_what_a_former_owner_left,
                d06_what_is_stored_tells_who_held_its_queue,
                d05_a_worker_gets_its_own_queue_again_under_a_new_token,
                d05_a_worker_id_is_used_once,
                d05_a_stale_token_changes_nothing,
                d05_a_lease_given_back_is_stale_for_its_own_worker_too,
            }
            window {
                z14_an_ordered_queue_loads_in_the_order_of_arrival,
                a_window_keeps_to_its_bytes_but_brings_one,
                d04_a_claim_takes_fresh_ones_before_retries,
                a_claim_raises_the_version,
                the_next_due_time_is_the_earliest_of_what_is_pending,
            }
            settle {
                z13_a_success_moves_to_the_log_with_its_attempt,
                z16_a_failed_head_keeps_its_place,
                z20_a_dead_letter_leaves_the_queue_with_its_note,
                z21_a_dead_letter_comes_back_at_the_tail,
                d27_a_resend_brings_a_delivery_back_from_the_log,
                a_waiting_delivery_is_sent_to_the_tail,
                d06_a_version_is_compared,
                d06_only_the_owner_changes_what_waits_in_its_queue,
                a_lease_reaches_only_what_waits,
                what_is_not_there_is_gone,
                d05_a_stale_one_leaves_the_others_of_its_batch_alone,
                settlements_of_one_delivery_apply_in_their_order,
                a_gap_in_the_attempts_is_refused,
                an_end_without_its_time_is_refused,
                z23_an_edit_keeps_what_was_accepted,
                z22_a_forward_carries_the_edited_body,
            }
            commands {
                d06_a_command_waits_until_its_owner_answers,
                d06_a_settlement_answers_its_command,
                d06_a_command_needs_a_living_owner_and_a_waiting_delivery,
            }
            configuration {
                d16_names_are_unique_in_their_project,
                projects_are_found_by_name_and_by_id,
                z11_turning_order_on_lines_up_by_arrival,
                z11_turning_order_on_leaves_out_nothing_that_was_claimed,
                z21_a_dead_letter_comes_back_after_order_was_given_up,
                z18_a_connection_with_requests_is_deleted_only_by_force,
                an_empty_connection_is_deleted,
            }
            configure {
                d18_one_refused_change_undoes_the_whole_batch,
            }
            security {
                p07_a_definition_changes_together_with_its_entry,
                d16_names_of_definitions_are_unique_in_their_project,
                a_connection_names_a_definition_of_its_own_project,
                a_definition_in_use_stays_and_names_its_users,
            }
            answers {
                d15_an_answer_is_kept_until_its_key_ends,
                d15_a_refused_request_gives_its_key_back,
                d15_ended_answers_go,
            }
            calls {
                d15_a_key_is_reserved_once_until_it_ends,
                d15_direct_and_stored_requests_share_their_keys,
            }
            credentials {
                p07_names_of_keys_are_unique_in_their_project,
                p07_the_last_use_only_moves_forward,
            }
            people {
                p07_names_of_users_are_unique_in_the_installation,
                p07_the_installation_keeps_an_owner,
                p07_the_first_owner_is_made_once,
                p07_a_session_opens_only_at_the_version_that_was_looked_at,
                p07_a_change_of_a_user_ends_the_sessions_but_one,
                p07_sessions_of_one_user_have_a_bound_and_old_ones_go,
            }
            audit {
                p07_a_job_and_its_entry_are_written_together,
                p07_a_settlement_by_hand_leaves_its_entry_only_when_it_applies,
                p07_a_command_leaves_its_entry_when_its_owner_applies_it,
                p07_the_audit_log_is_listed_newest_first_by_page_and_filter,
                p07_old_entries_go_in_bounded_steps,
            }
            topics {
                z22_a_message_is_given_out_until_it_is_acknowledged,
                z22_what_is_missing_or_taken_is_refused,
                a_topic_goes_with_its_messages_and_subscriptions,
                a_deleted_subscription_owes_nothing,
            }
            endpoints {
                d46_keys_are_replaced_only_by_whoever_saw_them,
                v06_a_test_and_a_verification_change_nothing_else,
            }
            health {
                v04_the_timer_switches_off_what_still_stands_as_it_saw_it,
                v06_on_again_the_count_starts_over_in_a_new_epoch,
                v04_the_owner_is_told_by_one_who_has_taken_it_over,
            }
            events {
                d40_the_body_of_an_event_is_stored_once,
                d40_an_event_makes_its_topic_or_is_refused,
                d40_a_given_id_is_published_once,
                d07_an_event_without_room_leaves_nothing,
                z22_a_forward_without_room_leaves_all_where_it_is,
                r13_the_transformation_of_a_deleted_subscription_is_kept_while_something_needs_it,
                d40_a_connection_that_is_gone_is_left_out,
                events_are_listed_newest_first_over_all_topics,
            }
            lines {
                r15_of_each_line_only_the_foremost_is_claimed,
                r15_one_in_the_middle_leaves_the_others_in_their_order,
                r15_what_comes_back_goes_to_the_end_of_its_line,
                r15_order_of_a_whole_queue_can_be_turned_on_and_off_over_lines,
                r15_a_queue_is_listed_with_those_who_wait_for_others,
                r04_what_an_owner_says_holds_as_long_as_its_lease,
            }
            sources {
                r12_a_source_is_changed_only_by_whoever_saw_it_and_shares_no_topic,
                r12_what_came_before_is_known_by_its_id_and_then_by_its_signature,
                r12_a_webhook_without_room_leaves_nothing_not_even_its_receipt,
                r12_a_new_forward_takes_the_place_of_a_dead_one_with_the_same_body,
            }
            retention {
                v07_the_log_goes_in_bounded_steps_oldest_first,
                d07_what_waits_and_the_dlq_are_never_pruned,
                z23_an_edited_delivery_takes_both_bodies_with_it,
                d41_a_message_that_is_owed_stays,
                d06_old_commands_go,
                d15_ended_keys_go,
            }
            listing {
                v07_deliveries_are_listed_newest_first_over_queue_dlq_and_log,
                a_page_stays_good_while_deliveries_come_and_move,
                v07_all_conditions_of_a_filter_hold,
                z14_a_queue_is_listed_as_it_will_be_delivered,
                z21_dead_letters_are_found_oldest_first,
                connections_and_topics_are_listed_by_name,
                each_queue_of_a_project_has_its_summary,
                every_column_can_be_asked_for,
                v08_labels_tell_what_waits_from_what_is_tried_again,
                a_correlation_id_is_found_wherever_it_came_from,
            }
            jobs {
                z23_a_job_is_about_what_was_there_when_it_began,
                z23_a_job_takes_the_ids_it_names_in_their_order,
                z23_a_step_is_written_whole_or_not_at_all,
                z22_a_step_forwards_or_leaves_all_where_it_is,
                d06_a_jobs_commands_are_counted_where_they_are_answered,
                p08_a_job_that_is_held_takes_no_step,
                p08_only_so_many_jobs_at_once_and_ended_ones_go,
            }
        }
        $crate::conformance_tests! { on_test_store $make_store,
            intake {
                z13_a_kill_loses_nothing_that_was_answered,
                d02_commit_order_is_position_order,
                d15_keys_survive_a_kill,
            }
            ownership {
                z13_a_kill_ends_every_lease,
                z13_a_graceful_stop_is_remembered,
            }
            window {
                d04_the_next_owner_finds_what_was_claimed,
            }
            settle {
                z22_a_forward_is_in_the_topic_and_not_in_the_dlq,
                d03_settlements_survive_a_kill_in_their_order,
            }
            configuration {
                v09_an_allowance_is_taken_by_all_together_and_kept,
                z18_a_change_keeps_the_queue,
                named_values_are_kept_until_removed,
            }
            configure {
                d18_a_batch_is_applied_in_its_order_and_survives_a_kill,
            }
            security {
                definitions_survive_a_kill,
            }
            answers {
                d15_a_claim_and_an_answer_survive_a_kill,
            }
            calls {
                d15_a_reserved_key_survives_a_kill,
            }
            alerts {
                p09_a_crossing_is_written_once_with_its_event_and_survives_a_kill,
                p09_alerts_page_from_the_newest_and_old_ones_go,
            }
            credentials {
                p07_a_key_reads_back_whole_and_survives_a_kill,
            }
            people {
                p07_a_user_and_a_session_read_back_whole_and_survive_a_kill,
            }
            audit {
                p07_a_change_and_its_entry_are_written_together,
                p07_a_batch_and_its_entries_are_written_together,
            }
            topics {
                z22_every_existing_subscription_gets_each_message,
            }
            endpoints {
                d46_an_endpoint_comes_with_its_keys_and_goes_with_its_connection,
            }
            sources {
                r12_a_webhook_and_its_receipts_survive_a_kill_together,
            }
            health {
                v04_health_is_written_with_the_attempt_and_survives_a_kill,
                v03_a_late_success_does_not_undo_a_410,
            }
            events {
                d40_an_event_and_its_deliveries_survive_a_kill_together,
                z22_a_forward_is_pushed_in_the_transaction_that_takes_it_out_of_the_dlq,
                p02_a_push_subscription_changes_together_with_its_entry,
            }
            lines {
                r15_a_line_survives_a_kill,
            }
            jobs {
                z13_a_job_goes_on_behind_its_cursor_after_a_kill,
            }
            walk {
                z13_a_random_walk_keeps_the_books,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    (on_store $make_store:path, $($topic:ident { $($case:ident,)* })*) => {
        $($(
            #[tokio::test]
            async fn $case() {
                let test = $make_store($crate::conformance::LIMITS).await;
                let store = $crate::conformance::TestStore::store(&test);
                $crate::conformance::$topic::$case(&*store).await;
            }
        )*)*
    };
    (on_test_store $make_store:path, $($topic:ident { $($case:ident,)* })*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let mut test = $make_store($crate::conformance::LIMITS).await;
                $crate::conformance::$topic::$case(&mut test).await;
            }
        )*)*
    };
}

#[cfg(test)]
mod tests {
    /// A case that is not in the list would never run.
    #[test]
    fn every_case_is_in_the_suite() {
        let (_, list) = include_str!("mod.rs").split_once("macro_rules! conformance_suite").unwrap();
        let topics = [
            include_str!("intake.rs"),
            include_str!("ownership.rs"),
            include_str!("window.rs"),
            include_str!("settle.rs"),
            include_str!("sources.rs"),
            include_str!("commands.rs"),
            include_str!("configuration.rs"),
            include_str!("configure.rs"),
            include_str!("security.rs"),
            include_str!("answers.rs"),
            include_str!("calls.rs"),
            include_str!("topics.rs"),
            include_str!("credentials.rs"),
            include_str!("people.rs"),
            include_str!("endpoints.rs"),
            include_str!("health.rs"),
            include_str!("events.rs"),
            include_str!("alerts.rs"),
            include_str!("audit.rs"),
            include_str!("retention.rs"),
            include_str!("listing.rs"),
            include_str!("walk.rs"),
            include_str!("jobs.rs"),
            include_str!("lines.rs"),
        ];
        let mut cases = 0;
        for line in topics.iter().flat_map(|topic| topic.lines()) {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let (case, _) = rest.split_once('(').unwrap();
            assert!(list.contains(&format!("{case},")), "`{case}` is not in the list");
            cases += 1;
        }
        assert!(cases > 50, "only {cases} cases found");
    }
}
