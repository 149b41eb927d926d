//! Every file that fuzzing left behind is given to its property again: what was once found stays found, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use postrider_properties::ALL;

/// A corpus that outgrows this is no longer a minimised one.
const CORPUS_BYTES_MAX: u64 = 16 * 1024;

fn fuzz(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(folder)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("the folder is read").path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_file_of_every_corpus_keeps_its_property() {
    let mut broken = Vec::new();
    for property in ALL {
        let files = entries(&fuzz("corpus").join(property.name));
        assert!(!files.is_empty(), "{} has no corpus", property.name);
        for file in files {
            let data = fs::read(&file).unwrap();
            if std::panic::catch_unwind(|| (property.holds)(&data)).is_err() {
                broken.push(file);
            }
        }
    }
    assert!(broken.is_empty(), "the properties do not hold for {broken:#?}");
}

#[test]
fn every_property_has_its_fuzz_target_and_its_corpus_and_none_is_left_over() {
    let properties: BTreeSet<String> = ALL.iter().map(|property| property.name.to_owned()).collect();
    let names = |folder: &str| -> BTreeSet<String> {
        entries(&fuzz(folder))
            .iter()
            .map(|path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
            .collect()
    };
    assert_eq!(names("fuzz_targets"), properties);
    assert_eq!(names("corpus"), properties);
}

#[test]
fn corpora_stay_small() {
    for property in ALL {
        let files = entries(&fuzz("corpus").join(property.name));
        let bytes: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        assert!(bytes <= CORPUS_BYTES_MAX, "{} has {bytes} bytes", property.name);
    }
}
