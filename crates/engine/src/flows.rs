//! The recent history of what was attempted, by project and by connection: what pages draw, with no table scanned for it.
//!
//! In memory, of this process, since its start. A project has an hour, a day and a week with the times that attempts took; a connection has the last
//! hour. It must not know who reads them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use postrider_core::Failure;
use postrider_core::flow::{FlowRange, Ring, quantile};
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::{Timestamp, Wait};

/// `flow_connections_max`: connections with a history of their own.
const CONNECTIONS_MAX: usize = 10_000;
/// `flow_projects_max`.
const PROJECTS_MAX: usize = 1_000;
/// In milliseconds; what took longer than the last is counted beside it.
const TOOK_MILLIS: [u64; 13] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

/// What happened in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Attempts that delivered.
    pub delivered: u32,
    /// Attempts that failed.
    pub failed: u32,
    /// Deliveries that became dead letters.
    pub dead: u32,
    took: [u32; TOOK_MILLIS.len() + 1],
}

impl Flow {
    /// In milliseconds, as far as buckets tell.
    pub fn took(&self, part: f64) -> Option<u64> {
        quantile(&TOOK_MILLIS, &self.took, part)
    }

    /// Both together.
    pub fn and(mut self, other: &Flow) -> Flow {
        self.delivered = self.delivered.saturating_add(other.delivered);
        self.failed = self.failed.saturating_add(other.failed);
        self.dead = self.dead.saturating_add(other.dead);
        for (mine, theirs) in self.took.iter_mut().zip(other.took) {
            *mine = mine.saturating_add(theirs);
        }
        self
    }
}

/// The same of one connection, as a small picture shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    pub delivered: u32,
    pub failed: u32,
}

/// How the last attempt of a connection that failed did so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    pub at: Timestamp,
    pub failure: Failure,
    /// As the attempt has it, cut to what a line can show.
    pub error: Option<String>,
}

/// `last_error_chars_max`
const ERROR_CHARS_MAX: usize = 300;

#[derive(Default)]
pub(crate) struct Flows(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    projects: HashMap<ProjectId, [Ring<Flow>; 3]>,
    connections: HashMap<ConnectionId, Ring<Pulse>>,
    errors: HashMap<ConnectionId, LastError>,
}

impl Flows {
    pub fn attempted(
        &self,
        project: ProjectId,
        connection: ConnectionId,
        is_delivered: bool,
        took: Wait,
        now: Timestamp,
    ) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = took.as_millis();
        let place = TOOK_MILLIS.partition_point(|bound| *bound < millis);
        kept.of_project(project, now, |flow| {
            let counter = if is_delivered { &mut flow.delivered } else { &mut flow.failed };
            *counter = counter.saturating_add(1);
            flow.took[place] = flow.took[place].saturating_add(1);
        });
        if let Some(pulse) = kept.of_connection(connection, now) {
            let counter = if is_delivered { &mut pulse.delivered } else { &mut pulse.failed };
            *counter = counter.saturating_add(1);
        }
    }

    /// The last one of each connection, of as many connections as have a history.
    pub fn failed(&self, connection: ConnectionId, failure: Failure, error: Option<&str>, now: Timestamp) {
        let error = error.map(|error| error.chars().take(ERROR_CHARS_MAX).collect());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.errors.len() >= CONNECTIONS_MAX && !kept.errors.contains_key(&connection) {
            // The oldest make room.
            let mut times: Vec<Timestamp> = kept.errors.values().map(|error| error.at).collect();
            let (_, middle, _) = times.select_nth_unstable(CONNECTIONS_MAX / 2);
            let middle = *middle;
            kept.errors.retain(|_, error| error.at > middle);
        }
        kept.errors.insert(connection, LastError { at: now, failure, error });
    }

    pub fn last_error(&self, connection: ConnectionId) -> Option<LastError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).errors.get(&connection).cloned()
    }

    pub fn dead_lettered(&self, project: ProjectId, now: Timestamp) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.of_project(project, now, |flow| flow.dead = flow.dead.saturating_add(1));
    }

    /// Oldest first, each with the time at which it begins.
    pub fn of_project(&self, project: ProjectId, range: FlowRange, now: Timestamp) -> Vec<(Timestamp, Flow)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.projects.get(&project) {
            Some(rings) => rings[range as usize].read(now),
            None => Ring::new(range).read(now),
        }
    }

    /// The last hour; `None` when nothing was attempted in it.
    pub fn of_connection(&self, connection: ConnectionId, now: Timestamp) -> Option<Vec<Pulse>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = kept.connections.get(&connection).filter(|ring| !ring.is_quiet(now))?;
        Some(ring.read(now).into_iter().map(|(_, pulse)| pulse).collect())
    }
}

impl Kept {
    fn of_project(&mut self, project: ProjectId, now: Timestamp, count: impl Fn(&mut Flow)) {
        if !self.projects.contains_key(&project) && self.projects.len() >= PROJECTS_MAX {
            self.projects.retain(|_, rings| !rings[FlowRange::Week as usize].is_quiet(now));
            if self.projects.len() >= PROJECTS_MAX {
                return;
            }
        }
        let rings = self.projects.entry(project).or_insert_with(|| FlowRange::ALL.map(Ring::new));
        rings.iter_mut().for_each(|ring| count(ring.at(now)));
    }

    fn of_connection(&mut self, connection: ConnectionId, now: Timestamp) -> Option<&mut Pulse> {
        if !self.connections.contains_key(&connection) && self.connections.len() >= CONNECTIONS_MAX {
            self.connections.retain(|_, ring| !ring.is_quiet(now));
            if self.connections.len() >= CONNECTIONS_MAX {
                return None;
            }
        }
        Some(self.connections.entry(connection).or_insert_with(|| Ring::new(FlowRange::Hour)).at(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p05_a_project_and_a_connection_see_what_was_attempted() {
        let flows = Flows::default();
        let now = Timestamp::from_millis(1_773_317_134_000);
        let (project, connection) = (ProjectId::from_u128(1), ConnectionId::from_u128(2));
        for millis in [3, 4, 80_000] {
            flows.attempted(project, connection, millis < 10, Wait::from_millis(millis), now);
        }
        flows.dead_lettered(project, now);
        for range in FlowRange::ALL {
            let (_, last) = flows.of_project(project, range, now).pop().unwrap();
            assert_eq!((last.delivered, last.failed, last.dead), (2, 1, 1));
            assert_eq!((last.took(0.5), last.took(0.99)), (Some(4), Some(60_000)));
        }
        assert_eq!(flows.of_connection(connection, now).unwrap()[59], Pulse { delivered: 2, failed: 1 });
        let later = now + Wait::from_secs(3600);
        assert_eq!(flows.of_connection(connection, later), None);
        assert_eq!(flows.of_project(ProjectId::from_u128(9), FlowRange::Day, now).len(), 144);
    }

    #[test]
    fn i09_the_last_error_of_each_connection_is_kept_and_their_number_is_bounded() {
        let flows = Flows::default();
        let at = |number: u64| Timestamp::from_millis(1_773_317_134_000 + i64::try_from(number).unwrap());
        for number in 0..CONNECTIONS_MAX as u64 + 10 {
            flows.failed(ConnectionId::from_u128(number.into()), Failure::Timeout, None, at(number));
        }
        let last = ConnectionId::from_u128(CONNECTIONS_MAX as u128 + 9);
        flows.failed(last, Failure::Status, Some(&"x".repeat(5000)), at(1 << 20));
        let error = flows.last_error(last).unwrap();
        assert_eq!((error.failure, error.error.map(|error| error.len())), (Failure::Status, Some(ERROR_CHARS_MAX)));
        assert_eq!(flows.last_error(ConnectionId::from_u128(0)), None, "the oldest made room");
        assert!(flows.0.lock().unwrap().errors.len() <= CONNECTIONS_MAX);
    }
}
