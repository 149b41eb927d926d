//! The data directory: made when it is not there, readable by its owner only, and for the demo gone at the end.

use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failed};

#[derive(Debug)]
pub enum DataDir {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl DataDir {
    pub fn at(path: &Path) -> Result<DataDir, Failed> {
        make(path).map_err(|error| {
            let message = format!("the data directory {} cannot be used: {error}", path.display());
            Failed::new(Exit::StoreUnavailable, message)
        })?;
        Ok(DataDir::Kept(path.to_owned()))
    }

    pub fn temporary() -> Result<DataDir, Failed> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("postrider-demo-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        builder.tempdir().map(DataDir::Temporary).map_err(|error| {
            Failed::new(Exit::StoreUnavailable, format!("a temporary data directory cannot be made: {error}"))
        })
    }

    pub fn path(&self) -> &Path {
        match self {
            DataDir::Kept(path) => path,
            DataDir::Temporary(dir) => dir.path(),
        }
    }

    pub fn is_temporary(&self) -> bool {
        matches!(self, DataDir::Temporary(_))
    }
}

fn make(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    if !std::fs::metadata(path)?.is_dir() {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_data_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(DataDir::at(file.path()).unwrap_err().exit, Exit::StoreUnavailable);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_look_into_a_new_one() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::at(&parent.path().join("a/b")).unwrap();
        for dir in [dir, DataDir::temporary().unwrap()] {
            assert_eq!(std::fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_temporary_one_is_gone_at_the_end() {
        let dir = DataDir::temporary().unwrap();
        let path = dir.path().to_owned();
        assert!(path.is_dir());
        drop(dir);
        assert!(!path.exists());
    }
}
