//! What differs between two texts, line by line (Myers, "An O(ND) difference algorithm", 1986), within a bound on the work.
//!
//! Lines that both begin and end with are set aside first. Where the rest differs too much to be compared, all of it is shown as taken out and put
//! in, which is true and only less exact. Pure. It must not know what the texts are.

/// `difference_edits_max`: lines taken out and put in, beyond which it is not looked for any longer.
const EDITS_MAX: usize = 1000;
/// Lines around a change that are shown.
const AROUND: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Same,
    Out,
    In,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferentLine<'t> {
    pub side: Side,
    /// Its number in the old text, from 1.
    pub old: Option<usize>,
    pub new: Option<usize>,
    pub text: &'t str,
}

/// Runs of changed lines with some around; between two of them lines were left out.
pub fn difference<'t>(old: &'t str, new: &'t str) -> Vec<Vec<DifferentLine<'t>>> {
    hunks(&all_lines(old, new))
}

fn lines_of(text: &str) -> Vec<&str> {
    // What ends in an end of line has nothing behind it, and one that has none there is another text.
    text.split_inclusive('\n').collect()
}

fn all_lines<'t>(old: &'t str, new: &'t str) -> Vec<DifferentLine<'t>> {
    let (old, new) = (lines_of(old), lines_of(new));
    let before = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let after =
        old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(|(one, other)| one == other).count();
    let (old_middle, new_middle) = (&old[before..old.len() - after], &new[before..new.len() - after]);
    let mut sides = vec![Side::Same; before];
    sides.extend(compared(old_middle, new_middle).unwrap_or_else(|| {
        let taken_out = std::iter::repeat_n(Side::Out, old_middle.len());
        taken_out.chain(std::iter::repeat_n(Side::In, new_middle.len())).collect()
    }));
    sides.extend(std::iter::repeat_n(Side::Same, after));
    numbered(&sides, &old, &new)
}

fn numbered<'t>(sides: &[Side], old: &[&'t str], new: &[&'t str]) -> Vec<DifferentLine<'t>> {
    let (mut at_old, mut at_new) = (0, 0);
    let mut lines = Vec::with_capacity(sides.len());
    for side in sides {
        let text = if *side == Side::In { new.get(at_new) } else { old.get(at_old) };
        let (is_old, is_new) = (*side != Side::In, *side != Side::Out);
        at_old += usize::from(is_old);
        at_new += usize::from(is_new);
        lines.push(DifferentLine {
            side: *side,
            old: is_old.then_some(at_old),
            new: is_new.then_some(at_new),
            text: text.copied().unwrap_or_default().trim_end_matches('\n'),
        });
    }
    lines
}

/// The shortest way from one to the other; `None`: it takes more edits than are looked for.
fn compared(old: &[&str], new: &[&str]) -> Option<Vec<Side>> {
    let edits_max = (old.len() + new.len()).min(EDITS_MAX);
    // `furthest[edits_max + k]`: how far down `old` one gets on the diagonal k = old − new.
    let mut furthest = vec![0_usize; 2 * edits_max + 2];
    let mut trace = Vec::new();
    let goal = (old.len(), new.len());
    for edits in 0..=edits_max {
        trace.push(furthest[edits_max - edits..=edits_max + edits].to_vec());
        for step in 0..=edits {
            let at = edits_max + 2 * step - edits;
            let from_new = step == 0 || (step != edits && furthest[at - 1] < furthest[at + 1]);
            let mut x = if edits == 0 {
                0
            } else if from_new {
                furthest[at + 1]
            } else {
                furthest[at - 1] + 1
            };
            let mut y = (x + edits_max).checked_sub(at)?;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at] = x;
            if (x, y) == goal {
                return Some(walked_back(&trace, goal));
            }
        }
    }
    None
}

/// From the goal back to the beginning along what was noted before each number of edits.
fn walked_back(trace: &[Vec<usize>], goal: (usize, usize)) -> Vec<Side> {
    let (mut x, mut y) = goal;
    let mut sides = Vec::new();
    for (edits, furthest) in trace.iter().enumerate().skip(1).rev() {
        // `furthest` is the middle part, its centre the diagonal 0.
        let on = |diagonal: isize| {
            let at = diagonal + edits as isize;
            usize::try_from(at).ok().and_then(|at| furthest.get(at)).copied().unwrap_or(0)
        };
        let diagonal = x as isize - y as isize;
        let from_new =
            diagonal == -(edits as isize) || (diagonal != edits as isize && on(diagonal - 1) < on(diagonal + 1));
        let start_x = if from_new { on(diagonal + 1) } else { on(diagonal - 1) + 1 };
        while x > start_x {
            (x, y) = (x - 1, y.saturating_sub(1));
            sides.push(Side::Same);
        }
        if from_new {
            y = y.saturating_sub(1);
            sides.push(Side::In);
        } else {
            x = x.saturating_sub(1);
            sides.push(Side::Out);
        }
    }
    sides.extend(std::iter::repeat_n(Side::Same, x));
    sides.reverse();
    sides
}

fn hunks<'t>(lines: &[DifferentLine<'t>]) -> Vec<Vec<DifferentLine<'t>>> {
    let mut hunks: Vec<Vec<DifferentLine<'t>>> = Vec::new();
    let mut shown_to = 0;
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.side != Side::Same) {
        let from = at.saturating_sub(AROUND).max(shown_to);
        let to = (at + AROUND + 1).min(lines.len());
        if from > shown_to || hunks.is_empty() {
            hunks.push(Vec::new());
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.extend_from_slice(&lines[from.min(to)..to]);
        }
        shown_to = to;
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(old: &str, new: &str) -> Vec<Vec<String>> {
        let line = |line: &DifferentLine<'_>| {
            let sign = match line.side {
                Side::Same => ' ',
                Side::Out => '-',
                Side::In => '+',
            };
            format!("{sign}{}", line.text)
        };
        difference(old, new).iter().map(|hunk| hunk.iter().map(line).collect()).collect()
    }

    #[test]
    fn z23_a_difference_names_what_was_taken_out_and_put_in() {
        assert_eq!(written("a\nb\nc\n", "a\nx\nc\n"), [[" a", "-b", "+x", " c"]]);
        assert!(written("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(written("", "a\n"), [["+a"]]);
        assert_eq!(written("a\n", ""), [["-a"]]);
        assert_eq!(written("a", "a\n"), [["-a", "+a"]], "an end of line at the end is a difference");
    }

    #[test]
    fn lines_far_from_a_change_are_left_out() {
        let old: String = (1..=40).map(|number| format!("{number}\n")).collect();
        let new = old.replace("\n10\n", "\nten\n").replace("\n30\n", "\n");
        let found = difference(&old, &new);
        assert_eq!(found.len(), 2);
        assert_eq!(written(&old, &new)[0], [" 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]);
        assert_eq!(written(&old, &new)[1], [" 27", " 28", " 29", "-30", " 31", " 32", " 33"]);
        assert_eq!((found[1][0].old, found[1][0].new), (Some(27), Some(27)));
        assert_eq!((found[1][4].old, found[1][4].new), (Some(31), Some(30)));
    }

    #[test]
    fn what_has_little_in_common_is_compared_within_a_bound() {
        let text = |seed: usize| (0..50_000).map(|number| format!("{}\n", number * 7 + seed)).collect::<String>();
        let (old, new) = (text(0), text(1));
        let lines: usize = difference(&old, &new).iter().map(Vec::len).sum();
        assert_eq!(lines, 100_000);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_their_difference(old in "[abc\n]{0,60}", new in "[abc\n]{0,60}") {
            let lines = all_lines(&old, &new);
            let of = |side: Side| {
                let mine = lines.iter().filter(|line| line.side == Side::Same || line.side == side);
                mine.map(|line| line.text).collect::<Vec<_>>()
            };
            let plain = |text: &str| lines_of(text).iter().map(|line| line.trim_end_matches('\n').to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(of(Side::Out), plain(&old));
            prop_assert_eq!(of(Side::In), plain(&new));
            for line in lines.iter().filter(|line| line.side == Side::Same) {
                let number = |at: Option<usize>| at.unwrap() - 1;
                prop_assert_eq!(lines_of(&old)[number(line.old)], lines_of(&new)[number(line.new)]);
            }
        }
    }
}
