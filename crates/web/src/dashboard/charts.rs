//! Pictures of the recent past, drawn here as SVG: bars of what flowed, lines of how long it took, and the small ones of lists.
//!
//! Each has axes with units, and its values in titles, so that they are seen by pointing and heard by reading. It must not know where figures come from.

use std::fmt::Write as _;

use postrider_core::{Timestamp, Wait};
use serde::Deserialize;

use super::parts::{Count, Span, plain};

const WIDTH: f64 = 720.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;

/// `/flow` as the API shows it.
#[derive(Deserialize)]
pub struct Flow {
    pub step_seconds: u64,
    pub since: Timestamp,
    pub total: Figures,
    pub data: Vec<Bucket>,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub struct Figures {
    pub delivered: u64,
    pub failed: u64,
    pub dead: u64,
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub p99_ms: Option<u64>,
}

#[derive(Deserialize)]
pub struct Bucket {
    pub at: Timestamp,
    #[serde(flatten)]
    pub figures: Figures,
}

impl Flow {
    /// What happened in a bucket, per minute.
    fn per_minute(&self, count: u64) -> f64 {
        count as f64 * 60.0 / self.step_seconds.max(1) as f64
    }
}

struct Frame {
    height: f64,
    most: f64,
    len: usize,
}

impl Frame {
    fn x(&self, index: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * index as f64 / self.len.max(1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        let whole = self.height - TOP - BOTTOM;
        TOP + whole * (1.0 - (value / self.most).clamp(0.0, 1.0))
    }

    fn step(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.len.max(1) as f64
    }

    /// Lines and numbers at the left, times below.
    fn axes(&self, svg: &mut String, flow: &Flow, label: impl Fn(f64) -> String) {
        for part in [0.0, 0.5, 1.0] {
            let (value, y) = (self.most * part, self.y(self.most * part));
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>",
                WIDTH - RIGHT
            );
            let _ = write!(
                svg,
                "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                label(value)
            );
        }
        let every = (self.len / 6).max(1);
        for (index, bucket) in flow.data.iter().enumerate().skip(every / 2).step_by(every) {
            let time = plain(bucket.at);
            let shown = if flow.step_seconds >= 3600 { time.get(5..13) } else { time.get(11..16) };
            let (x, y) = (self.x(index), self.height - 6.0);
            let hour = if flow.step_seconds >= 3600 { ":00" } else { "" };
            let _ = write!(
                svg,
                "<text class=\"axis\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}{hour}</text>",
                shown.unwrap_or_default()
            );
        }
    }
}

/// A number that is easy to halve, at or above this.
fn rounded(most: f64) -> f64 {
    if most <= 2.0 {
        return 2.0;
    }
    let power = 10f64.powf(most.log10().floor());
    [1.0, 2.0, 4.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= most).unwrap_or(most)
}

/// Bars by the minute: delivered below, failed on top of it, and a mark above for each bucket with dead letters.
pub fn flow(flow: &Flow) -> String {
    let most = flow.data.iter().map(|bucket| flow.per_minute(bucket.figures.delivered + bucket.figures.failed));
    let frame = Frame { height: 190.0, most: rounded(most.fold(0.0, f64::max)), len: flow.data.len() };
    let Figures { delivered, failed, dead, .. } = flow.total;
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Attempts a minute: {delivered} delivered, {failed} failed, {dead} dead letters in all\">",
        frame.height
    );
    frame.axes(&mut svg, flow, shown);
    let width = (frame.step() - 1.0).max(1.0);
    for (index, bucket) in flow.data.iter().enumerate() {
        let Figures { delivered, failed, dead, .. } = bucket.figures;
        if delivered + failed + dead == 0 {
            continue;
        }
        let x = frame.x(index);
        let (good, all) = (flow.per_minute(delivered), flow.per_minute(delivered + failed));
        let (floor, middle, top) = (frame.y(0.0), frame.y(good), frame.y(all));
        let _ = write!(
            svg,
            "<g><title>{} UTC, {} long: {delivered} delivered, {failed} failed, {dead} dead letters</title><rect class=\"hit\" x=\"{x:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/><rect class=\"bar-good\" x=\"{x:.1}\" y=\"{middle:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/><rect class=\"bar-bad\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
            plain(bucket.at),
            Span(Wait::from_secs(flow.step_seconds)),
            frame.step(),
            floor - TOP,
            floor - middle,
            middle - top,
        );
        if dead > 0 {
            let middle = x + width / 2.0;
            let _ = write!(svg, "<path class=\"mark-dead\" d=\"M{middle:.1} {:.1}l-4 -7h8z\"/>", top - 1.0);
        }
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

fn shown(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 { Count(value.round() as u64).to_string() } else { format!("{value:.1}") }
}

/// How long attempts took: half of them, 95 % and 99 %.
pub fn took(flow: &Flow) -> String {
    let of = [
        ("line-p50", "50 %", (|figures: &Figures| figures.p50_ms) as fn(&Figures) -> Option<u64>),
        ("line-p95", "95 %", |figures| figures.p95_ms),
        ("line-p99", "99 %", |figures| figures.p99_ms),
    ];
    let most = flow.data.iter().filter_map(|bucket| bucket.figures.p99_ms).max().unwrap_or_default();
    let frame = Frame { height: 150.0, most: rounded(most as f64).max(10.0), len: flow.data.len() };
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"How long attempts took, up to {}\">",
        frame.height,
        Span(Wait::from_millis(most))
    );
    frame.axes(&mut svg, flow, |value| Span(Wait::from_millis(value as u64)).to_string());
    for (class, _, figure) in of {
        let mut path = String::new();
        let mut is_down = false;
        for (index, bucket) in flow.data.iter().enumerate() {
            let Some(value) = figure(&bucket.figures) else {
                is_down = false;
                continue;
            };
            let (x, y) = (frame.x(index) + frame.step() / 2.0, frame.y(value as f64));
            // A point alone is a line of no length, which its round ends show.
            let _ = if is_down { write!(path, "L{x:.1} {y:.1}") } else { write!(path, "M{x:.1} {y:.1}h0") };
            is_down = true;
        }
        let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    for (index, bucket) in flow.data.iter().enumerate() {
        let Some(p50) = bucket.figures.p50_ms else { continue };
        let span = |millis: Option<u64>| Span(Wait::from_millis(millis.unwrap_or(p50))).to_string();
        let _ = write!(
            svg,
            "<g><title>{} UTC: 50 % within {}, 95 % within {}, 99 % within {}</title><rect class=\"hit\" x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/></g>",
            plain(bucket.at),
            span(Some(p50)),
            span(bucket.figures.p95_ms),
            span(bucket.figures.p99_ms),
            frame.x(index),
            frame.step(),
            frame.height - TOP - BOTTOM,
        );
    }
    svg + "</svg>"
}

/// The last hour in the space of a word.
pub fn spark(delivered: &[u64], failed: &[u64]) -> String {
    let sums: Vec<u64> = delivered.iter().zip(failed).map(|(good, bad)| good + bad).collect();
    let most = sums.iter().copied().max().unwrap_or_default().max(1) as f64;
    let (good, bad): (u64, u64) = (delivered.iter().sum(), failed.iter().sum());
    let label = format!("{good} delivered, {bad} failed in the last hour");
    let mut svg = format!(
        "<svg class=\"spark\" viewBox=\"0 0 120 20\" role=\"img\" aria-label=\"{label}\"><title>{label}</title>"
    );
    for (index, (good, bad)) in delivered.iter().zip(failed).enumerate() {
        let (good, bad) = (*good as f64 / most * 19.0, *bad as f64 / most * 19.0);
        let x = index * 2;
        if good > 0.0 {
            let _ = write!(
                svg,
                "<rect class=\"bar-good\" x=\"{x}\" y=\"{:.1}\" width=\"1.5\" height=\"{good:.1}\"/>",
                20.0 - good
            );
        }
        if bad > 0.0 {
            let _ = write!(
                svg,
                "<rect class=\"bar-bad\" x=\"{x}\" y=\"{:.1}\" width=\"1.5\" height=\"{bad:.1}\"/>",
                20.0 - good - bad
            );
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: P05
    #[test]
    fn p05_a_chart_has_its_values_in_titles_and_round_numbers_on_its_axis() {
        let at = Timestamp::from_millis(1_773_317_100_000);
        let figures =
            Figures { delivered: 30, failed: 7, dead: 1, p50_ms: Some(20), p95_ms: Some(90), p99_ms: Some(900) };
        let data = vec![Bucket { at, figures }, Bucket { at, figures: Figures::default() }];
        let of = Flow { step_seconds: 60, since: at, total: figures, data };
        let svg = flow(&of);
        assert!(svg.contains("30 delivered, 7 failed, 1 dead letters</title>") && svg.contains(">40<"), "{svg}");
        assert!(took(&of).contains("50 % within 20 ms, 95 % within 90 ms, 99 % within 900 ms"));
        assert!(spark(&[1, 0], &[0, 2]).contains("1 delivered, 2 failed in the last hour"));
        assert_eq!([0.0, 3.0, 41.0, 999.0].map(rounded), [2.0, 4.0, 50.0, 1000.0]);
        assert!(![svg, took(&of)].iter().any(|svg| svg.contains("NaN") || svg.contains("style=")));
    }
}
