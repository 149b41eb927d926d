//! The known key that a misspelt one was probably meant to be. It must not know what keys are for.

/// More misspelt than this is another word.
const MISTAKES_MAX: usize = 3;

/// The known word with the fewest mistakes, the first of several; `None` when none is near.
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let word: Vec<char> = word.to_lowercase().replace(['-', ' '], "_").chars().take(64).collect();
    let most = MISTAKES_MAX.min(word.len() / 3);
    known
        .map(|candidate| (mistakes(&word, &candidate.chars().collect::<Vec<_>>()), candidate))
        .filter(|(count, _)| *count <= most)
        .min_by_key(|(count, _)| *count)
        .map(|(_, candidate)| candidate)
}

/// Letters added, left out, replaced, or swapped with their neighbour.
fn mistakes(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z03_a_misspelt_key_finds_the_one_that_was_meant() {
        let known = ["max_retries", "max_attempts", "host", "use_dlq", "dlq_retries"];
        let cases = [
            ("max_retrys", Some("max_retries")),
            ("maxRetries", Some("max_retries")),
            ("max-retries", Some("max_retries")),
            ("hots", Some("host")),
            ("use_dqlq", Some("use_dlq")),
            ("dlq_retires", Some("dlq_retries")),
            ("password", None),
            ("h", None),
            ("", None),
        ];
        for (word, meant) in cases {
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        }
    }

    #[test]
    fn z03_mistakes_are_counted() {
        let count = |a: &str, b: &str| mistakes(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", "abc"), 0);
        assert_eq!(count("abdc", "abcd"), 1, "a swap is one");
        assert_eq!(count("kitten", "sitting"), 3);
    }
}
