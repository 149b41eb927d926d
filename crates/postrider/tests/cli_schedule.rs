//! `postrider schedule` without a server: presets and settings tried out.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of the real program")]

mod cli_parts;

use cli_parts::Ran;
use serde_json::Value;

async fn schedule(words: &str) -> Ran {
    Ran::command(&format!("schedule {words}")).await
}

async fn waits(words: &str) -> Vec<f64> {
    let ran = schedule(&format!("{words} --json")).await;
    assert_eq!(ran.code, 0, "{words}: {}", ran.stderr);
    let planned: Value = serde_json::from_str(&ran.stdout).unwrap();
    let attempts = planned["data"].as_array().unwrap();
    // The first attempt is made at once.
    attempts[1..].iter().map(|attempt| attempt["wait_seconds"].as_f64().unwrap()).collect()
}

#[tokio::test]
async fn z03_the_seven_examples_to_the_second() {
    let examples: [(&str, &[f64]); 7] = [
        ("--max-retries 0", &[]),
        (
            "--max-retries 5 --retry-sleep-time 2 --retry-backoff-multiplier 2 --retry-backoff-threshold 60",
            &[2., 4., 8., 8., 8.],
        ),
        ("--max-retries 10", &[2., 4., 8., 8., 8., 8., 8., 8., 6.]),
        ("--max-retries 3 --retry-sleep-time 20", &[8., 8., 8.]),
        ("--max-retries 3 --retry-sleep-time 10 --retry-backoff-threshold 5", &[5.]),
        ("--max-retries 4 --retry-sleep-time 3 --retry-backoff-multiplier 1", &[3., 3., 3., 3.]),
        ("--max-retries 4 --retry-sleep-time 3 --retry-backoff-multiplier 0", &[3., 1., 1., 1.]),
    ];
    for (words, wanted) in examples {
        assert_eq!(waits(words).await, wanted, "{words}");
    }
}

#[tokio::test]
async fn z03_the_table_shows_attempt_wait_and_time_since_the_first() {
    let ran = schedule("--max-retries 10").await;
    let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["1", "0", "s", "0", "s"]);
    assert_eq!(lines[10], ["10", "6", "s", "60", "s"]);
    assert_eq!(lines.len(), 12, "{}", ran.stdout);
    assert!(ran.stdout.contains("sent 10 times within 60 s"), "{}", ran.stdout);
}

// proves: V02, R03
#[tokio::test]
async fn p08_presets_are_planned_without_a_server() {
    let minute = 60.0;
    let webhook = [minute, 5. * minute, 15. * minute, 60. * minute, 360. * minute, 1440. * minute];
    assert_eq!(waits("--preset webhook").await, webhook);
    assert_eq!(waits("--preset forward").await, webhook[..4]);
    assert_eq!(waits("--preset patient").await, [60., 300., 1800., 7200., 21_600., 43_200., 86_400.]);
    assert_eq!(waits("--retry-delays 10,20 --max-attempts 5").await, [10., 20., 20., 20.]);
}

#[tokio::test]
async fn z03_a_setting_out_of_range_is_refused_by_name() {
    for (words, field) in [
        ("--max-retries 1001", "max_retries"),
        ("--max-retries 1 --retry-sleep-time -1", "retry_sleep_time"),
        ("--max-retries 1 --retry-backoff-multiplier 101", "retry_backoff_multiplier"),
        ("--max-retries 1 --retry-backoff-threshold nan", "retry_backoff_threshold"),
        ("--retry-delays 0.5", "retry_delays"),
        ("--retry-delays 5 --max-attempts 21", "max_attempts"),
    ] {
        let ran = schedule(words).await;
        assert_eq!(ran.code, 4, "{words}: {}", ran.stderr);
        assert!(ran.stderr.starts_with(&format!("error: `{field}` is `")), "{words}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[tokio::test]
async fn a_command_line_that_makes_no_sense_ends_with_2() {
    for words in ["", "--preset nobody", "--preset webhook --max-retries 3", "--max-retries many"] {
        assert_eq!(schedule(words).await.code, 2, "{words}");
    }
}
