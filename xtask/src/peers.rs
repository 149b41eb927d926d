//! The peer lab: programs that others wrote, installed into `target/peers`, against which Postrider is tested.
//!
//! What is installed is pinned in `tests/peers`. Tests find the lab by two environment variables.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{install, process, workspace};

/// The installed lab.
pub struct Lab {
    venv: PathBuf,
    node: PathBuf,
}

impl Lab {
    /// The Python that has the pinned packages.
    pub fn python(&self) -> PathBuf {
        self.venv.join("bin/python")
    }

    /// How tests find the lab: the Python environment, and the folder that has `node_modules`.
    pub fn variables(&self) -> [(&'static str, &Path); 2] {
        [("POSTRIDER_PEERS_VENV", &self.venv), ("POSTRIDER_PEERS_NODE", &self.node)]
    }
}

/// `cargo xtask peers`: installs the lab and prints the variables in a form that a shell reads.
pub fn run() -> Result<(), String> {
    let lab = install()?;
    for (name, folder) in lab.variables() {
        println!("export {name}='{}'", folder.display());
    }
    Ok(())
}

/// Installs what is missing or pinned otherwise than installed; at once when nothing is.
pub fn install() -> Result<Lab, String> {
    let pins = workspace::root().join("tests/peers");
    let lab_folder = workspace::target()?.join("peers");
    let lab = Lab { venv: lab_folder.join("venv"), node: lab_folder.join("node") };
    let requirements = pins.join("requirements.txt");
    install_once(&lab.venv, &[&requirements], || {
        install::python()?;
        process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&lab.venv))?;
        let mut pip = Command::new(lab.python());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        process::run(pip.arg(&requirements))
    })?;
    let manifests = [pins.join("package.json"), pins.join("package-lock.json")];
    install_once(&lab.node, &[&manifests[0], &manifests[1]], || {
        install::npm()?;
        for manifest in &manifests {
            let name = manifest.file_name().expect("the manifests were named just above");
            std::fs::copy(manifest, lab.node.join(name)).map_err(|error| format!("copying: {error}"))?;
        }
        // Scripts of packages are not run: nothing here needs them, and they could do anything.
        let mut npm = Command::new("npm");
        npm.current_dir(&lab.node).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        process::run(&mut npm)
    })?;
    // WireMock runs on the one, playwright drives the other.
    install::java()?;
    install::chromium()?;
    Ok(lab)
}

/// Runs `work` unless `folder` carries the stamp of a finished installation from these very pins.
fn install_once(folder: &Path, pins: &[&Path], work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let mut wanted = String::new();
    for pin in pins {
        let text = std::fs::read_to_string(pin).map_err(|error| format!("cannot read {}: {error}", pin.display()))?;
        wanted.push_str(&text);
    }
    let stamp = folder.join("installed-from");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| format!("clearing the lab: {error}"))?;
    }
    std::fs::create_dir_all(folder).map_err(|error| format!("making the lab: {error}"))?;
    work()?;
    // Written last: an installation cut short leaves no stamp and is done again.
    std::fs::write(&stamp, wanted).map_err(|error| format!("stamping the lab: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn installs_once_for_the_same_pins_and_again_for_others_or_after_a_failure() {
        let folder = scratch("install");
        let (lab, pin) = (folder.join("lab"), folder.join("pin"));
        let runs = std::cell::Cell::new(0);
        let install = |result: Result<(), String>| {
            install_once(&lab, &[&pin], || {
                runs.set(runs.get() + 1);
                result
            })
        };
        std::fs::write(&pin, "a==1").unwrap();
        assert!(install(Err("cut short".to_owned())).is_err());
        assert!(install(Ok(())).is_ok());
        assert!(install(Ok(())).is_ok());
        assert_eq!(runs.get(), 2);
        std::fs::write(&pin, "a==2").unwrap();
        assert!(install(Ok(())).is_ok());
        assert_eq!(runs.get(), 3);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
