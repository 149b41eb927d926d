//! `cargo xtask fuzz [TARGET…] [--seconds N]`: the fuzz targets one after the other, from the committed corpus and back to it.
//!
//! What a run learns is kept in `target/fuzz`; of that a minimised few KiB go into `fuzz/corpus`, from where ordinary tests replay them. An
//! input that breaks a property goes there too, and so becomes a regression test. This module must not know what the targets check.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::workspace::{cargo, root, target};
use crate::{install, process};

const SECONDS_DEFAULT: u32 = 60;
/// What the committed corpus of one target may hold beside what people wrote.
const CORPUS_FILES_MAX: usize = 32;
const CORPUS_BYTES_MAX: u64 = 4096;
/// Written by people, or found by a run that failed: never minimised away.
const KEPT: [&str; 2] = ["seed-", "crash-"];

pub fn run(args: &[String]) -> Result<(), String> {
    let (chosen, seconds) = read_args(args, &targets()?)?;
    let mut steps = Steps::default();
    steps.step("cargo-fuzz", || {
        install::cargo_fuzz()?;
        process::run(cargo_fuzz("build").args(["--sanitizer", "none"])).map(|()| Outcome::Done)
    });
    if !steps.has_failed() {
        for name in &chosen {
            steps.step(name, || Target::new(name)?.run(seconds).map(|()| Outcome::Done));
        }
    }
    steps.finish()
}

/// The targets asked for, all of them if none is, and the seconds for each.
fn read_args(args: &[String], targets: &[String]) -> Result<(Vec<String>, u32), String> {
    let (mut chosen, mut seconds) = (Vec::new(), SECONDS_DEFAULT);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            let given = args.next().and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
            seconds = given.ok_or("--seconds takes a number from 1 on")?;
        } else if targets.contains(arg) {
            chosen.push(arg.clone());
        } else {
            return Err(format!("`{arg}` is no fuzz target: there are {}", targets.join(", ")));
        }
    }
    Ok((if chosen.is_empty() { targets.to_vec() } else { chosen }, seconds))
}

fn targets() -> Result<Vec<String>, String> {
    let files = files(&root().join("fuzz/fuzz_targets"))?;
    Ok(files.iter().filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect())
}

struct Target {
    name: String,
    /// Committed.
    corpus: PathBuf,
    /// Where cargo-fuzz puts what broke a property.
    artifacts: PathBuf,
    /// Everything that runs have found worth keeping on this machine.
    learnt: PathBuf,
    minimised: PathBuf,
}

impl Target {
    fn new(name: &str) -> Result<Self, String> {
        let (fuzz, work) = (root().join("fuzz"), target()?.join("fuzz").join(name));
        let target = Target {
            name: name.to_owned(),
            corpus: fuzz.join("corpus").join(name),
            artifacts: fuzz.join("artifacts").join(name),
            learnt: work.join("learnt"),
            minimised: work.join("minimised"),
        };
        if target.minimised.exists() {
            fs::remove_dir_all(&target.minimised).map_err(|error| said("clearing", &target.minimised, &error))?;
        }
        for folder in [&target.corpus, &target.artifacts, &target.learnt, &target.minimised] {
            fs::create_dir_all(folder).map_err(|error| said("making", folder, &error))?;
        }
        Ok(target)
    }

    fn run(&self, seconds: u32) -> Result<(), String> {
        let mut fuzz = self.fuzzer(&self.learnt, &self.corpus);
        fuzz.arg(format!("-max_total_time={seconds}"));
        // An input over ten seconds is as good as a hang.
        fuzz.args(["-max_len=2048", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        let words = root().join("fuzz/dict").join(&self.name);
        if words.exists() {
            fuzz.arg(format!("-dict={}", words.display()));
        }
        process::run(&mut fuzz).map_err(|error| match self.keep_what_broke() {
            Ok(kept) => format!("{error}; kept as a test: {kept}"),
            Err(worse) => format!("{error}; {worse}"),
        })?;
        let mut merge = self.fuzzer(&self.minimised, &self.learnt);
        merge.arg("-set_cover_merge=1");
        process::run(&mut merge)?;
        self.commit_minimised()
    }

    /// libFuzzer over these two folders, the first of which it writes to; its own options follow.
    fn fuzzer(&self, writes: &Path, reads: &Path) -> Command {
        let mut command = cargo_fuzz("run");
        command.args(["--sanitizer", "none", &self.name]).args([writes, reads]).arg("--");
        command
    }

    fn keep_what_broke(&self) -> Result<String, String> {
        let mut kept = Vec::new();
        for file in files(&self.artifacts)? {
            let name = name_of(&file);
            let digest = name.rsplit('-').next().unwrap_or_default();
            let to = self.corpus.join(format!("crash-{digest}"));
            fs::rename(&file, &to).map_err(|error| said("moving", &file, &error))?;
            kept.push(to.display().to_string());
        }
        Ok(kept.join(", "))
    }

    /// Some of the minimised inputs, as many as there is room for.
    fn commit_minimised(&self) -> Result<(), String> {
        for file in files(&self.corpus)?.iter().filter(|file| !KEPT.iter().any(|kept| name_of(file).starts_with(kept)))
        {
            fs::remove_file(file).map_err(|error| said("removing", file, &error))?;
        }
        let mut inputs = Vec::new();
        for file in files(&self.minimised)? {
            let bytes = fs::metadata(&file).map_err(|error| said("reading", &file, &error))?.len();
            inputs.push((bytes, file));
        }
        for file in from_small_to_large(inputs) {
            let to = self.corpus.join(name_of(&file));
            fs::copy(&file, to).map_err(|error| said("copying", &file, &error))?;
        }
        Ok(())
    }
}

/// Evenly from the small to the large: the smallest alone would say little. One that has no room left is passed over.
fn from_small_to_large(mut inputs: Vec<(u64, PathBuf)>) -> Vec<PathBuf> {
    inputs.sort();
    let step = inputs.len().div_ceil(CORPUS_FILES_MAX).max(1);
    let mut room = CORPUS_BYTES_MAX;
    let fitting = inputs.into_iter().step_by(step).filter(|(bytes, _)| {
        let fits = *bytes <= room;
        room -= if fits { *bytes } else { 0 };
        fits
    });
    fitting.map(|(_, file)| file).collect()
}

/// There is no unsafe code of ours for a sanitizer to watch; without one, the stable compiler builds the targets, and they run faster.
fn cargo_fuzz(verb: &str) -> Command {
    let mut command = cargo();
    command.args(["fuzz", verb]);
    command
}

/// In the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = fs::read_dir(folder).map_err(|error| said("reading", folder, &error))?;
    let mut files: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    Ok(files)
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn said(doing: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{doing} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_choose_targets_and_seconds() {
        let targets = ["id", "time"].map(str::to_owned);
        let read = |args: &[&str]| read_args(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), &targets);
        assert_eq!(read(&[]), Ok((targets.to_vec(), 60)));
        assert_eq!(read(&["time", "--seconds", "5"]), Ok((vec!["time".to_owned()], 5)));
        for bad in [&["clock"][..], &["--seconds"], &["--seconds", "0"], &["--seconds", "-1"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn inputs_of_all_sizes_are_kept_while_there_is_room() {
        let input = |bytes: u64, name: &str| (bytes, PathBuf::from(name));
        let kept = from_small_to_large(vec![input(3000, "d"), input(2, "a"), input(2000, "c"), input(1000, "b")]);
        assert_eq!(kept, ["a", "b", "c"].map(PathBuf::from));
        let many = from_small_to_large((1..=99).map(|bytes| input(bytes, &bytes.to_string())).collect());
        assert_eq!((many.first(), many.last()), (Some(&PathBuf::from("1")), Some(&PathBuf::from("97"))));
        assert!(many.len() <= CORPUS_FILES_MAX);
    }
}
