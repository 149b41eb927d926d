//! The connections of the run: their settings, how their receiver behaves, and how a request on them must end.
//!
//! It must not know what happened in a run.

/// Where dead letters of the connection end that forwards them.
pub const TOPIC: &str = "letters";

/// How the receiver answers, by the number of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Well,
    /// Two of twelve in a row are refused, whichever they are, until the receiver is healed.
    Flaky,
    /// One number in five is always refused.
    Poison,
    /// One number in five is refused twice, then taken.
    TwiceRefused,
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub name: &'static str,
    pub ordered: bool,
    /// What can be sent and not yet durably settled at one instant.
    pub in_flight_max: usize,
    pub manner: Manner,
    /// How a request ends that is never delivered.
    pub undelivered: &'static str,
    /// The DLQ empties by itself.
    pub dlq_empties: bool,
    pub settings: &'static str,
}

/// How far a FIFO queue may run ahead of its settlements, and the one under way (D03).
const FIFO: usize = 16 + 1;
/// Its five slots, and as many decisions on their way to the store as the engine's window holds.
const SLOTS: usize = 5 + 64;

const fn fifo(name: &'static str, manner: Manner, undelivered: &'static str, settings: &'static str) -> Plan {
    Plan { name, ordered: true, in_flight_max: FIFO, manner, undelivered, dlq_empties: false, settings }
}

pub const OPERATED: &str = "operated";
pub const KEPT: &str = "kept";
pub const DIRECT: &str = "direct";
pub const HEALTHY: &str = "healthy";
pub const UNORDERED: &str = "unordered";

pub const PLANS: [Plan; 9] = [
    fifo(HEALTHY, Manner::Well, "", r#""max_retries":3"#),
    // Waits of 0 s and 1 s: rounds are cut short by the kills and go on.
    fifo("flaky", Manner::Flaky, "", r#""max_retries":5,"use_dlq":false"#),
    fifo(KEPT, Manner::Poison, "DLQ", r#""max_retries":1"#),
    Plan {
        ordered: false,
        in_flight_max: SLOTS,
        ..fifo(UNORDERED, Manner::Well, "", r#""max_retries":3,"ordered":false,"concurrency":5"#)
    },
    Plan {
        dlq_empties: true,
        ..fifo(
            "retried",
            Manner::TwiceRefused,
            "",
            r#""max_retries":0,"dlq_action":"retry","dlq_retries":500,"dlq_retry_interval":0.2"#,
        )
    },
    Plan {
        dlq_empties: true,
        ..fifo(
            "forwarded",
            Manner::Poison,
            "FORWARDED",
            r#""max_retries":0,"dlq_action":"forward","dlq_forward_to":"letters","dlq_retry_interval":0.1"#,
        )
    },
    Plan {
        dlq_empties: true,
        ..fifo(
            "discarded",
            Manner::Poison,
            "DISCARDED",
            r#""max_retries":0,"dlq_action":"discard","dlq_retry_interval":0.1"#,
        )
    },
    fifo(DIRECT, Manner::Poison, "DLQ", r#""max_retries":0"#),
    fifo(OPERATED, Manner::Well, "", r#""max_retries":2"#),
];

pub fn plan(name: &str) -> Option<&'static Plan> {
    PLANS.iter().find(|plan| plan.name == name)
}

pub fn key(connection: &str, number: u64) -> String {
    format!("{connection}#{number}")
}

/// What the receiver answers to the `earlier + 1`th receipt of a request; `turn` counts the receipts of its connection.
pub fn answer(manner: Manner, key: &str, earlier: usize, turn: usize, healed: bool) -> u16 {
    let number: u64 = key.rsplit('#').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let refuses = match manner {
        Manner::Well => false,
        Manner::Flaky => !healed && turn % 12 < 2,
        Manner::Poison => number % 5 == 3,
        Manner::TwiceRefused => number % 5 == 3 && earlier < 2,
    };
    if refuses { 500 } else { 200 }
}
