//! What a newcomer reads when the demo has started: commands to copy, and what they will show.

use std::path::Path;

/// How to call this very program from where it was started.
pub fn program() -> String {
    let (exe, here) = (std::env::current_exe().ok(), std::env::current_dir().ok());
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).map(|dir| dir.join("postrider")).collect::<Vec<_>>())
        .unwrap_or_default();
    call(exe.as_deref(), here.as_deref(), &on_path)
}

fn call(exe: Option<&Path>, here: Option<&Path>, on_path: &[std::path::PathBuf]) -> String {
    let Some(exe) = exe else { return "postrider".to_owned() };
    if on_path.iter().any(|known| known == exe) {
        return "postrider".to_owned();
    }
    let path = here.and_then(|here| exe.strip_prefix(here).ok()).unwrap_or(exe).display().to_string();
    // A bare name would be looked for on the PATH.
    let path = if path.contains('/') { path } else { format!("./{path}") };
    if path.contains(' ') { format!("'{path}'") } else { path }
}

/// `first`: the link by which the first owner is made.
pub fn text(address: &str, key: &str, program: &str, first: &str) -> String {
    format!(
        r#"
This is a demo: its data is gone when it stops (Ctrl-C). It talks to a receiver of its own that misbehaves:

  Billing API    works
  Flaky API      fails three times, then works: see it retried, everything behind it waiting
  Claims API     always 500: into the dead-letter queue (DLQ) after each round
  Slow API       hangs past the timeout of 1 s: the same
  Warehouse API  nothing listens there: from the DLQ to the topic `undeliverable` after 5 s
  Orders API     fails a whole round; the DLQ's action retries it after 10 s, and it works
  Partner API    no queue: 429 with Retry-After, and the caller waits for the outcome
  Web shop       calls the channel Order intake (`POST /demo/orders` here), whose service fails each run once
  Patient Registry  has no DLQ and does not take the first patient's date of birth: the queue is blocked until you correct it

In a browser: {first}
  Make yourself the owner, open the Patient Registry's delivery queue, edit the body at its head, and see everything behind it go.

In another terminal, from the same directory (with `cargo run --release` the program is target/release/postrider):

  export POSTRIDER_SERVER={address} POSTRIDER_KEY={key}
  {program} connections list
  {program} deliveries list
  {program} dlq list
  {program} queue list "Flaky API"
  {program} deliveries show ID                 (an ID from a list: every attempt with its time and answer)
  {program} dlq retry ID
  echo '{{"invoice": 1}}' | {program} send "Billing API" --body -
  {program} topics messages undeliverable
  {program} schedule "Flaky API"

Give it half a minute to fill.
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_called_as_it_can_be_from_here() {
        let call = |exe: &str, on_path: &[&str]| {
            let on_path: Vec<_> = on_path.iter().map(Into::into).collect();
            call(Some(Path::new(exe)), Some(Path::new("/home/a/postrider")), &on_path)
        };
        assert_eq!(call("/home/a/postrider/target/release/postrider", &[]), "target/release/postrider");
        assert_eq!(call("/home/a/postrider/postrider", &[]), "./postrider");
        assert_eq!(call("/usr/bin/postrider", &["/bin/postrider", "/usr/bin/postrider"]), "postrider");
        assert_eq!(call("/opt/post rider/postrider", &[]), "'/opt/post rider/postrider'");
    }

    #[test]
    fn the_commands_can_be_copied() {
        let text = text("http://127.0.0.1:8080", "k", "target/release/postrider", "http://127.0.0.1:8080/ui");
        assert!(text.contains("export POSTRIDER_SERVER=http://127.0.0.1:8080 POSTRIDER_KEY=k\n"));
        assert!(text.contains("echo '{\"invoice\": 1}' | target/release/postrider send \"Billing API\" --body -\n"));
    }
}
