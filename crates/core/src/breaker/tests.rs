//! The circuit, held against an independent model.

use super::*;
use proptest::prelude::*;

const RULES: BreakerRules = BreakerRules { failures_max: 3, open_for: Wait::from_secs(10) };

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn end(breaker: &mut Breaker, ended: Ended, is_probe: bool, now: Timestamp) -> Turn {
    breaker.ended(ended, is_probe, &RULES, now, || Roll::MIDDLE)
}

fn opened() -> Breaker {
    let mut breaker = Breaker::default();
    for second in 1..=3 {
        end(&mut breaker, Ended::Failed, false, at(second));
    }
    breaker
}

#[test]
fn d29_only_what_the_endpoint_did_counts() {
    for failure in Failure::ALL {
        let counts = matches!(failure, Failure::Status | Failure::Timeout | Failure::Unreachable);
        assert_eq!(Ended::of(Some(failure)) == Ended::Failed, counts, "{failure}");
    }
    assert_eq!(Ended::of(None), Ended::Succeeded);
}

#[test]
fn r04_it_opens_after_so_many_failures_in_a_row() {
    let mut breaker = Breaker::default();
    for (what, second) in
        [(Ended::Failed, 1), (Ended::Failed, 2), (Ended::Succeeded, 3), (Ended::Failed, 4), (Ended::Failed, 5)]
    {
        assert_eq!(end(&mut breaker, what, false, at(second)), Turn::None);
    }
    assert_eq!(end(&mut breaker, Ended::SaysNothing, false, at(6)), Turn::None, "neither a failure nor a success");
    assert_eq!(breaker.admits(at(6)), Admits::All);
    let turn = end(&mut breaker, Ended::Failed, false, at(7));
    assert_eq!(turn, Turn::Opened { until: at(17), failed_in_a_row: 3, is_new: true });
    assert_eq!(breaker.admits(at(16)), Admits::None { until: Some(at(17)) });
}

#[test]
fn r04_one_probe_decides() {
    let mut breaker = opened();
    assert_eq!(breaker.admits(at(13)), Admits::Probe);
    breaker.probe_begins();
    assert_eq!(breaker.admits(at(14)), Admits::None { until: None }, "one, not one for each who asks");
    assert_eq!(end(&mut breaker, Ended::Failed, false, at(15)), Turn::None, "an old one that ends now");
    assert_eq!(
        end(&mut breaker, Ended::Failed, true, at(20)),
        Turn::Opened { until: at(40), failed_in_a_row: 4, is_new: false }
    );
    assert_eq!(breaker.admits(at(40)), Admits::Probe);
    breaker.probe_begins();
    assert_eq!(end(&mut breaker, Ended::Succeeded, true, at(41)), Turn::Closed { open_since: at(3) });
    assert_eq!(breaker.admits(at(41)), Admits::All);
}

#[test]
fn r04_a_probe_that_says_nothing_is_followed_by_another() {
    let mut breaker = opened();
    breaker.probe_begins();
    assert_eq!(end(&mut breaker, Ended::SaysNothing, true, at(14)), Turn::None);
    assert_eq!(breaker.admits(at(14)), Admits::Probe);
    breaker.probe_begins();
    breaker.probe_was_none(at(15));
    assert_eq!(breaker.admits(at(15)), Admits::Probe);
}

#[test]
fn r04_it_stays_open_longer_each_time_up_to_a_limit() {
    let mut breaker = opened();
    let mut now = at(13);
    let mut waits = Vec::new();
    for _ in 0..6 {
        breaker.probe_begins();
        let Turn::Opened { until, .. } = end(&mut breaker, Ended::Failed, true, now) else { panic!("it opens again") };
        waits.push(until.since(now).as_millis() / 1000);
        now = until;
    }
    assert_eq!(waits, [20, 40, 80, 80, 80, 80]);
}

#[test]
fn r04_a_late_success_closes_and_a_clock_set_back_does_not_hold() {
    let mut breaker = opened();
    assert_eq!(end(&mut breaker, Ended::Succeeded, false, at(5)), Turn::Closed { open_since: at(3) });
    assert_eq!(opened().admits(at(-1000)), Admits::Probe);
}

#[test]
fn r04_a_breaker_that_is_off_never_opens() {
    let mut breaker = Breaker::default();
    for second in 0..1000 {
        assert_eq!(breaker.ended(Ended::Failed, false, &BreakerRules::NEVER, at(second), || Roll::MIDDLE), Turn::None);
    }
    assert_eq!(breaker.admits(at(1000)), Admits::All);
}

/// The same told as a story: the whole list of what happened is read anew for each answer.
#[derive(Default)]
struct Model {
    story: Vec<(i64, bool, bool, f64)>,
}

impl Model {
    /// When it is open until, how long that was in times the first, and whether a probe is under way, from the story alone.
    fn read(&self, rules: &BreakerRules, probing: bool) -> Option<(i64, u32)> {
        let mut row = 0_u32;
        let mut open: Option<(i64, u32)> = None;
        for (ms, succeeded, is_probe, roll) in &self.story {
            if *succeeded {
                (row, open) = (0, None);
                continue;
            }
            let times = match open {
                None => {
                    row += 1;
                    if row < rules.failures_max {
                        continue;
                    }
                    1
                }
                Some((_, times)) if *is_probe => (times * 2).min(OPEN_TIMES_MAX),
                Some(_) => continue,
            };
            let whole = i64::try_from(rules.open_for.as_millis()).unwrap() * i64::from(times);
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
            let wait = whole / 2 + (whole as f64 * roll) as i64;
            open = Some((ms + wait, times));
        }
        if probing { open.map(|(_, times)| (i64::MAX, times)) } else { open }
    }
}

proptest! {
    #[test]
    fn r04_the_breaker_agrees_with_the_story(
        failures_max in 1_u32..6, open_ms in 2_u64..20_000,
        steps in prop::collection::vec((0_i64..8000, 0_u8..6, 0.0_f64..1.0), 1..200),
    ) {
        let rules = BreakerRules { failures_max, open_for: Wait::from_millis(open_ms) };
        let (mut breaker, mut model) = (Breaker::default(), Model::default());
        // Attempts under way, begun before it opened or as the probe.
        let mut probing = false;
        let mut under_way = 0_u32;
        let mut now = 0;
        for (passed, what, roll) in steps {
            now += passed;
            let at = Timestamp::from_millis(now);
            let open = model.read(&rules, probing);
            let wanted = match open {
                None => Admits::All,
                Some((i64::MAX, _)) => Admits::None { until: None },
                Some((until, _)) if until <= now => Admits::Probe,
                Some((until, _)) => Admits::None { until: Some(Timestamp::from_millis(until)) },
            };
            prop_assert_eq!(breaker.admits(at), wanted, "at {}", now);
            match (what, wanted) {
                (0..=2, Admits::All) => under_way += 1,
                (0..=2, Admits::Probe) => {
                    breaker.probe_begins();
                    probing = true;
                }
                _ => {
                    let is_probe = probing && (what == 5 || under_way == 0);
                    if !is_probe && under_way == 0 {
                        continue;
                    }
                    let succeeded = what == 4 && roll < 0.3;
                    let ended = if succeeded { Ended::Succeeded } else { Ended::Failed };
                    breaker.ended(ended, is_probe, &rules, at, || Roll::new(roll).unwrap());
                    if is_probe { probing = false } else { under_way -= 1 }
                    // Once it is closed, the probe is an attempt like any other.
                    if succeeded && probing {
                        probing = false;
                        under_way += 1;
                    }
                    model.story.push((now, succeeded, is_probe, roll));
                }
            }
        }
    }
}
