//! `export`: the configuration as a file that `import` takes.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::reach;
use crate::args::{ExportArgs, GlobalArgs};
use crate::exit::{Exit, Failed};
use crate::output;

pub async fn run(global: &GlobalArgs, args: ExportArgs) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    let text = if args.all { client.export_all().await? } else { client.export().await? };
    match &args.file {
        // It ends with its own line. Whatever it holds is escaped where YAML asks for that.
        None => output::print(text.trim_end()),
        Some(file) => write(file, &text)?,
    }
    Ok(Exit::Done)
}

/// Beside it first: a file that is there is replaced as a whole or not at all.
fn write(file: &Path, text: &str) -> Result<(), Failed> {
    let failed =
        |error: std::io::Error| Failed::new(Exit::Failure, format!("{} cannot be written: {error}", file.display()));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any new file; the umask takes away what it should.
    let everybody = std::fs::Permissions::from_mode(0o666);
    let mut beside = tempfile::Builder::new().permissions(everybody).tempfile_in(folder).map_err(failed)?;
    std::io::Write::write_all(&mut beside, text.as_bytes()).map_err(failed)?;
    beside.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}
