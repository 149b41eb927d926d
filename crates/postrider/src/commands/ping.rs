//! `connections ping`: how far it came, a line for each part of the way.

use postrider::Reached;

use crate::output::{self, Sheet};

pub fn show(reached: &Reached) {
    let mut sheet = Sheet::default();
    sheet.line("target", &reached.target);
    sheet.line("reachable", if reached.is_reachable { "yes" } else { "no" });
    sheet.maybe("address", reached.address.as_ref());
    for stage in &reached.stages {
        let failed = reached.failed_at.as_ref() == Some(&stage.stage);
        let took = format!("{:.3} ms", stage.took_ms);
        sheet.line(words(&stage.stage), if failed { format!("{took}, then it failed") } else { took });
    }
    sheet.maybe("status", reached.status);
    sheet.maybe("certificate ends", reached.certificate_ends_at.as_deref().map(output::local_beside));
    sheet.maybe("error", reached.error.as_ref());
    sheet.maybe("what to do", reached.advice.as_ref());
    sheet.print();
}

fn words(stage: &str) -> &str {
    match stage {
        "token" => "token",
        "resolve" => "name look-up",
        "connect" => "connect",
        "tls" => "TLS",
        "first_byte" => "first byte",
        other => other,
    }
}
