//! The report as text for a terminal. It must not know how anything was measured.

use super::Report;
use crate::figure::{Good, Spread, Unit, count, show};

/// What the titles of the rows do not say about a short run.
pub const QUICK: &str = "Taken with --quick: 100,000 messages where a row says 1,000,000, 1,000 connections where it says 10,000, shorter spans. \
Bounds are shown and prove nothing.";

pub fn table(report: &Report) -> String {
    let mut out = String::new();
    if report.quick {
        out.push_str(QUICK);
        out.push_str("\n\n");
    }
    parts(report, &mut out);
    let header = ["row", "what", "measured", "spread", "must", "goal", "reached"].map(str::to_owned);
    let mut rows = vec![header.to_vec()];
    for line in &report.lines {
        let (measured, spread) = line.value.as_ref().map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |value| (show(value.median, line.unit), range(value, line.unit)),
        );
        let (must, goal) = bounds(line.good, line.unit, line.must, line.goal);
        let reached = line.reached.as_str().to_owned();
        rows.push(vec![line.row.clone(), line.title.clone(), measured, spread, must, goal, reached]);
    }
    out.push_str(&aligned(&rows));
    for line in &report.lines {
        if let Some(note) = &line.note {
            out.push_str(&format!("\n{}: not measured: {note}\n", line.row));
        }
        if line.details.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", line.row));
        for detail in &line.details {
            out.push_str(&format!("    {:<45} {:>14}\n", detail.name, plain(detail.value.median)));
        }
    }
    out
}

fn parts(report: &Report, out: &mut String) {
    if report.parts.is_empty() {
        return;
    }
    let mut rows = vec![["part of the ceiling, alone", "median", "spread"].map(str::to_owned).to_vec()];
    for part in &report.parts {
        let spread = format!("{} to {}", plain(part.value.min), plain(part.value.max));
        let counts = if part.counts { "" } else { " (beside it)" };
        rows.push(vec![
            format!("{}{counts}", part.title),
            format!("{} {}", plain(part.value.median), part.unit),
            spread,
        ]);
    }
    out.push_str(&aligned(&rows));
    if let Some(ceiling) = &report.ceiling {
        out.push_str(&format!(
            "ceiling: {} messages a second ({} cores / sum of the parts)\n",
            count(ceiling.median),
            report.machine.cores
        ));
    }
    if let Some(bare) = &report.bare_ceiling {
        out.push_str(&format!("with bare SQL in place of the store: {} messages a second\n\n", count(bare.median)));
    }
}

/// Bounds with the side on which they lie.
pub fn bounds(good: Good, unit: Unit, must: f64, goal: f64) -> (String, String) {
    let sign = match good {
        Good::Above => "≥",
        Good::Below => "≤",
    };
    (format!("{sign} {}", show(must, unit)), format!("{sign} {}", show(goal, unit)))
}

pub fn range(value: &Spread, unit: Unit) -> String {
    if value.runs.len() < 2 {
        return "one run".to_owned();
    }
    format!("{} to {}", show(value.min, unit), show(value.max, unit))
}

/// A number of no particular unit, with as many decimals as matter.
pub fn plain(value: f64) -> String {
    if value.abs() >= 1000.0 {
        count(value)
    } else if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = width - cell.chars().count();
            line.push_str(cell);
            line.push_str(&" ".repeat(padding + 2));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
