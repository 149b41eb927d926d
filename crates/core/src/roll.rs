//! A roll of the die, made by the shell and handed in. The core must not know where it came from.

/// A number from 0 up to and not including 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Roll(f64);

impl Roll {
    /// The roll that leaves a jittered wait as it is.
    pub const MIDDLE: Roll = Roll(0.5);

    /// `None` for anything outside 0.0..1.0, NaN included.
    pub fn new(value: f64) -> Option<Roll> {
        (0.0..1.0).contains(&value).then_some(Roll(value))
    }

    pub fn value(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r03_a_roll_is_at_least_zero_and_under_one() {
        for taken in [0.0, 0.5, 0.999_999] {
            assert_eq!(Roll::new(taken).map(Roll::value), Some(taken));
        }
        for refused in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Roll::new(refused), None, "{refused}");
        }
        assert_eq!(Roll::new(0.5), Some(Roll::MIDDLE));
    }
}
