//! A delivery's attempts on a line of time, as places in a picture: pure, so that what a page draws can be tested without one.
//!
//! Waits grow from seconds to a day, so their lengths are drawn as logarithms and written beside. It must not know of markup, nor what follows from an
//! attempt.

use postrider_core::{Timestamp, Wait};

use super::parts::{Span, plain};

/// `timeline_attempts_max`: of more, the first and the last are drawn, and how many are left out is said.
pub const DRAWN_MAX: usize = 24;
/// Of those, so many are the first.
const FIRST: usize = 4;
/// The picture is so wide, in its own units, and scales to the page.
pub const WIDTH: f64 = 960.0;
const LEFT: f64 = 24.0;
const RIGHT: f64 = 24.0;
/// The least that two marks are apart.
const GAP_MIN: f64 = 20.0;
/// Gaps from here on have room for their length in words.
const LABEL_MIN: f64 = 44.0;

/// One attempt, as far as the picture needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    pub number: u32,
    pub started_at: Timestamp,
    pub took: Wait,
    /// `None`: delivered.
    pub failure: Option<String>,
    pub status: Option<u16>,
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Arrived,
    Delivered,
    Failed,
    /// Nobody knows what became of it.
    Interrupted,
    /// Put on the line by a person: a retry, a resend, an edit.
    ByHand,
    SetAside,
    Ended,
    /// Still to come.
    Next,
}

impl Shape {
    pub const fn as_str(self) -> &'static str {
        match self {
            Shape::Arrived => "arrived",
            Shape::Delivered => "delivered",
            Shape::Failed => "failed",
            Shape::Interrupted => "interrupted",
            Shape::ByHand => "by-hand",
            Shape::SetAside => "set-aside",
            Shape::Ended => "ended",
            Shape::Next => "next",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub x: f64,
    pub shape: Shape,
    /// Below the mark; empty for none.
    pub label: String,
    /// When somebody points at it.
    pub title: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    pub from: f64,
    pub to: f64,
    /// How long it is; empty where there is no room to say it.
    pub label: String,
    /// Attempts left out within it.
    pub left_out: usize,
    /// It lies ahead.
    pub is_ahead: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    pub marks: Vec<Mark>,
    pub gaps: Vec<Gap>,
}

impl Timeline {
    /// The middle of a gap, for its label.
    pub fn middle(gap: &Gap) -> f64 {
        (gap.from + gap.to) / 2.0
    }

    /// For whoever cannot see the picture.
    pub fn in_words(&self) -> String {
        self.marks.iter().map(|mark| mark.title.as_str()).collect::<Vec<_>>().join("; ")
    }
}

/// Something at a time, beside the attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Timestamp,
    pub shape: Shape,
    pub title: String,
}

/// Attempts and events in their order. `next`: when the next attempt is due, if one is.
pub fn timeline(arrived_at: Timestamp, attempts: &[Tried], events: Vec<Event>, next: Option<Timestamp>) -> Timeline {
    let mut points = vec![Point {
        at: arrived_at,
        shape: Shape::Arrived,
        label: String::new(),
        title: format!("Arrived {}", utc(arrived_at)),
        left_out_before: 0,
    }];
    points.extend(tried_points(attempts));
    points.extend(events.into_iter().map(|event| Point {
        at: event.at,
        shape: event.shape,
        label: String::new(),
        title: format!("{} {}", event.title, utc(event.at)),
        left_out_before: 0,
    }));
    points.sort_by_key(|point| point.at);
    if let Some(at) = next {
        points.push(Point {
            at: at.max(points.last().map_or(at, |last| last.at)),
            shape: Shape::Next,
            label: "next".to_owned(),
            title: format!("Next attempt {}", utc(at)),
            left_out_before: 0,
        });
    }
    placed(&points)
}

struct Point {
    at: Timestamp,
    shape: Shape,
    label: String,
    title: String,
    left_out_before: usize,
}

fn tried_points(attempts: &[Tried]) -> Vec<Point> {
    let left_out = attempts.len().saturating_sub(DRAWN_MAX);
    let from_end = FIRST + left_out;
    let drawn = attempts.iter().enumerate().filter(|(at, _)| left_out == 0 || *at < FIRST || *at >= from_end);
    drawn
        .map(|(at, tried)| Point {
            at: tried.started_at,
            shape: match tried.failure.as_deref() {
                None => Shape::Delivered,
                Some("interrupted") => Shape::Interrupted,
                Some(_) => Shape::Failed,
            },
            label: tried.number.to_string(),
            title: title_of(tried),
            left_out_before: if left_out > 0 && at == from_end { left_out } else { 0 },
        })
        .collect()
}

fn title_of(tried: &Tried) -> String {
    let outcome = match (&tried.failure, &tried.error, tried.status) {
        (None, _, Some(status)) => format!("delivered, HTTP {status}"),
        (None, _, None) => "delivered".to_owned(),
        (Some(_), Some(error), _) => error.clone(),
        (Some(failure), None, _) => failure.replace('_', " "),
    };
    format!("Attempt {} {}, took {}: {outcome}", tried.number, utc(tried.started_at), Span(tried.took))
}

fn utc(at: Timestamp) -> String {
    format!("{} UTC", plain(at))
}

/// Each gap gets the least, and of the room that is left a part by the logarithm of its length.
fn placed(points: &[Point]) -> Timeline {
    let lengths: Vec<f64> =
        points.windows(2).map(|pair| (1.0 + pair[1].at.since(pair[0].at).as_millis() as f64 / 1000.0).ln()).collect();
    let sum: f64 = lengths.iter().sum();
    let room = WIDTH - LEFT - RIGHT;
    // So many marks that even the least does not fit: closer, then.
    let least = GAP_MIN.min(room / (lengths.len().max(1) as f64));
    let spare = (room - least * lengths.len() as f64).max(0.0);
    let mut x = LEFT;
    let mut timeline = Timeline::default();
    for (at, point) in points.iter().enumerate() {
        if let Some(length) = at.checked_sub(1).and_then(|before| lengths.get(before)) {
            let from = x;
            x += least + if sum > 0.0 { spare * length / sum } else { 0.0 };
            let wait = point.at.since(points[at - 1].at);
            let has_room = x - from >= LABEL_MIN && wait >= Wait::from_secs(1);
            timeline.gaps.push(Gap {
                from,
                to: x,
                label: if has_room { Span(wait).to_string() } else { String::new() },
                left_out: point.left_out_before,
                is_ahead: point.shape == Shape::Next,
            });
        }
        timeline.marks.push(Mark { x, shape: point.shape, label: point.label.clone(), title: point.title.clone() });
    }
    timeline
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_773_317_134_000 + seconds * 1000)
    }

    fn tried(number: u32, seconds: i64, failure: Option<&str>) -> Tried {
        Tried {
            number,
            started_at: at(seconds),
            took: Wait::from_millis(120),
            failure: failure.map(str::to_owned),
            status: Some(if failure.is_some() { 503 } else { 200 }),
            error: failure.map(|_| "HTTP 503".to_owned()),
        }
    }

    #[test]
    fn i09_attempts_stand_in_their_order_with_the_waits_between() {
        let attempts = [tried(1, 0, Some("status")), tried(2, 60, Some("interrupted")), tried(3, 360, None)];
        let retried = Event { at: at(300), shape: Shape::ByHand, title: "Retried by Ada".to_owned() };
        let drawn = timeline(at(0), &attempts, vec![retried], None);
        let shapes: Vec<_> = drawn.marks.iter().map(|mark| mark.shape).collect();
        assert_eq!(shapes, [Shape::Arrived, Shape::Failed, Shape::Interrupted, Shape::ByHand, Shape::Delivered]);
        assert!(drawn.marks.windows(2).all(|pair| pair[0].x < pair[1].x));
        assert!((drawn.marks[4].x - (WIDTH - RIGHT)).abs() < 0.01);
        let labels: Vec<_> = drawn.gaps.iter().map(|gap| gap.label.as_str()).collect();
        assert_eq!(labels, ["", "1 min", "4 min", "1 min"]);
        assert_eq!(drawn.marks[1].title, "Attempt 1 2026-03-12 12:05:34 UTC, took 120 ms: HTTP 503");
        assert!(drawn.in_words().contains("Retried by Ada"));
    }

    #[test]
    fn i09_a_day_does_not_push_the_first_minute_together() {
        let attempts = [tried(1, 0, Some("status")), tried(2, 60, Some("status")), tried(3, 86_460, Some("status"))];
        let drawn = timeline(at(0), &attempts, Vec::new(), Some(at(100_000)));
        let widths: Vec<_> = drawn.gaps.iter().map(|gap| gap.to - gap.from).collect();
        assert!(widths[1] > 100.0 && widths[2] > widths[1], "{widths:?}");
        assert!(drawn.gaps[3].is_ahead && drawn.marks[4].shape == Shape::Next);
    }

    #[test]
    fn i09_of_many_attempts_the_first_and_the_last_are_drawn() {
        let attempts: Vec<_> = (1..=500).map(|number| tried(number, i64::from(number) * 10, Some("status"))).collect();
        let drawn = timeline(at(0), &attempts, Vec::new(), None);
        assert_eq!(drawn.marks.len(), DRAWN_MAX + 1);
        assert_eq!(drawn.gaps.iter().map(|gap| gap.left_out).sum::<usize>(), 500 - DRAWN_MAX);
        assert_eq!((drawn.marks[4].label.as_str(), drawn.marks[5].label.as_str()), ("4", "481"));
        assert!(drawn.marks.iter().all(|mark| (0.0..=WIDTH).contains(&mark.x)));
    }

    #[test]
    fn a_due_time_that_has_passed_is_drawn_last_all_the_same() {
        let drawn = timeline(at(0), &[tried(1, 10, Some("status"))], Vec::new(), Some(at(5)));
        assert_eq!(drawn.marks.last().map(|mark| mark.shape), Some(Shape::Next));
        assert!(drawn.marks.windows(2).all(|pair| pair[0].x < pair[1].x));
    }
}
