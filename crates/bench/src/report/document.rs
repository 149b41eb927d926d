//! The report as the document that stands in the repository. It must not know how anything was measured.

use super::Report;
use super::table::{QUICK, bounds, plain, range};
use crate::figure::{count, show};

pub fn document(report: &Report) -> String {
    let mut out = String::from("# Benchmarks\n\n");
    out.push_str(
        "Written by `cargo xtask bench --docs`; do not edit by hand. The benchmark drives the release binary over its HTTP API with its own load\n\
         generator and its own receiver, all on one machine, and measures what each part of a delivery costs alone in the same run. Shares\n\
         and ratios carry over to other machines; absolute figures do not.\n\n",
    );
    if report.quick {
        out.push_str(&format!("**{QUICK}**\n\n"));
    }
    let machine = &report.machine;
    out.push_str(&format!(
        "- Machine: {}, {} cores, {} MiB of memory, Linux {}\n- Versions: Postrider {}, {}\n- Medians of {} runs; the spread is from the lowest to the highest\n\n",
        machine.cpu, machine.cores, count(machine.memory_mib as f64), machine.kernel, report.version, report.rustc, report.runs
    ));
    ceiling(report, &mut out);
    out.push_str("## Rows\n\n| what | measured | spread | must | goal | reached |\n|---|---|---|---|---|---|\n");
    for line in &report.lines {
        let measured = line.value.as_ref().map_or_else(|| "not measured".to_owned(), |v| show(v.median, line.unit));
        let spread = line.value.as_ref().map_or_else(String::new, |value| range(value, line.unit));
        let (must, goal) = bounds(line.good, line.unit, line.must, line.goal);
        let reached = line.reached.as_str();
        out.push_str(&format!("| {} | {measured} | {spread} | {must} | {goal} | {reached} |\n", line.title));
    }
    out.push_str("\n## Behind the rows\n");
    for line in &report.lines {
        if let Some(note) = &line.note {
            out.push_str(&format!("\n`{}` was not measured: {note}.\n", line.row));
        }
        if line.details.is_empty() {
            continue;
        }
        out.push_str(&format!("\n`{}`\n\n", line.row));
        for detail in &line.details {
            out.push_str(&format!("- {}: {}\n", detail.name, plain(detail.value.median)));
        }
    }
    out
}

fn ceiling(report: &Report, out: &mut String) {
    let Some(ceiling) = &report.ceiling else { return };
    out.push_str(&format!(
        "## The ceiling\n\nNo delivery is cheaper than its parts. The ceiling is the number of cores divided by the sum of the CPU time of the five parts,\neach measured alone with 1 KiB of body: **{} messages a second**.\n\n| part | median | spread |\n|---|---|---|\n",
        count(ceiling.median)
    ));
    for part in &report.parts {
        let counts = if part.counts { "" } else { " (beside the ceiling)" };
        out.push_str(&format!(
            "| {}{counts} | {} {} | {} to {} |\n",
            part.title,
            plain(part.value.median),
            part.unit,
            plain(part.value.min),
            plain(part.value.max)
        ));
    }
    if let Some(bare) = &report.bare_ceiling {
        out.push_str(&format!(
            "\nWith bare SQL in place of our own store the ceiling would be {} messages a second.\n",
            count(bare.median)
        ));
    }
    out.push('\n');
}
