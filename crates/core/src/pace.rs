//! How fast an unordered queue goes on while its remote system cannot be reached.
//!
//! A refused connection costs next to nothing, so a queue with a million waiting would make attempts as fast as the machine can, to no end
//! but to slow down every other queue (Z14). It must not know clocks, slots or sockets.

use crate::Wait;

/// Up to so many unreachable in a row nothing changes: a short outage ends as every failure does.
pub const UNREACHABLE_IN_A_ROW_MAX: u32 = 64;

/// Then the queue rests so long before it takes its next deliveries. One attempt that reaches the remote system ends it.
pub const REST: Wait = Wait::from_millis(50);

/// The rest before the next deliveries are taken, after so many attempts in a row that did not reach the remote system.
pub const fn rest_after(unreachable_in_a_row: u32) -> Option<Wait> {
    if unreachable_in_a_row >= UNREACHABLE_IN_A_ROW_MAX { Some(REST) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: Z14 (a dead remote system is not asked at full speed; a short outage is)
    #[test]
    fn z14_only_a_long_row_of_unreachable_attempts_rests() {
        assert_eq!(rest_after(0), None);
        assert_eq!(rest_after(UNREACHABLE_IN_A_ROW_MAX - 1), None);
        assert_eq!(rest_after(UNREACHABLE_IN_A_ROW_MAX), Some(REST));
        assert_eq!(rest_after(u32::MAX), Some(REST));
    }
}
