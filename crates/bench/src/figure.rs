//! What a row has to show: its figures, their bounds, and how runs become a median with its spread.
//!
//! It must not know how anything is measured.

use serde::{Deserialize, Serialize};

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A share of something measured beside it, shown in per cent.
    Share,
    Times,
    Milliseconds,
    Seconds,
    Mebibytes,
    PerMessage,
}

/// Which side of the bounds is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Good {
    Above,
    Below,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub title: &'static str,
    pub unit: Unit,
    pub good: Good,
    pub must: f64,
    pub goal: f64,
}

pub const fn at_least(title: &'static str, unit: Unit, must: f64, goal: f64) -> Figure {
    Figure { title, unit, good: Good::Above, must, goal }
}

pub const fn at_most(title: &'static str, unit: Unit, must: f64, goal: f64) -> Figure {
    Figure { title, unit, good: Good::Below, must, goal }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    Goal,
    Must,
    No,
    NotMeasured,
}

impl Reached {
    pub fn of(value: f64, good: Good, must: f64, goal: f64) -> Reached {
        let holds = |bound: f64| match good {
            Good::Above => value >= bound,
            Good::Below => value <= bound,
        };
        if holds(goal) {
            Reached::Goal
        } else if holds(must) {
            Reached::Must
        } else {
            Reached::No
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Reached::Goal => "goal",
            Reached::Must => "must",
            Reached::No => "NO",
            Reached::NotMeasured => "not measured",
        }
    }
}

/// The middle of several runs and how far they were apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub runs: Vec<f64>,
}

impl Spread {
    /// `None` for no runs at all.
    pub fn of(runs: Vec<f64>) -> Option<Spread> {
        let mut sorted = runs.clone();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Some(Spread { median, min, max, runs })
    }
}

/// The value below which this share of them lies. `None` for none.
pub fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil().max(1.0) as usize;
    values.get(rank - 1).copied()
}

/// A value with its unit, as short as it can be without losing what matters.
pub fn show(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share if value < 0.02 => format!("{:.2} %", value * 100.0),
        Unit::Share => format!("{:.0} %", value * 100.0),
        Unit::Times => format!("{value:.2} x"),
        Unit::Milliseconds => format!("{value:.2} ms"),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Mebibytes => format!("{value:.0} MiB"),
        Unit::PerMessage if value < 1.0 => format!("{value:.4}"),
        Unit::PerMessage => format!("{value:.2}"),
    }
}

/// A count with thousands set apart.
pub fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_on_their_own_side() {
        assert_eq!(Reached::of(0.7, Good::Above, 0.35, 0.6), Reached::Goal);
        assert_eq!(Reached::of(0.4, Good::Above, 0.35, 0.6), Reached::Must);
        assert_eq!(Reached::of(0.3, Good::Above, 0.35, 0.6), Reached::No);
        assert_eq!(Reached::of(0.5, Good::Below, 2.0, 0.5), Reached::Goal);
        assert_eq!(Reached::of(1.0, Good::Below, 2.0, 0.5), Reached::Must);
        assert_eq!(Reached::of(2.1, Good::Below, 2.0, 0.5), Reached::No);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(Vec::new()), None);
        let mut values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.99), Some(99.0));
        assert_eq!(percentile(&mut values, 0.5), Some(50.0));
        assert_eq!(percentile(&mut [], 0.5), None);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(1_234_567.2), "1,234,567");
        assert_eq!(count(999.0), "999");
        assert_eq!(count(-1000.0), "-1,000");
    }
}
