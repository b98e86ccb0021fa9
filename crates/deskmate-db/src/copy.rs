//! Copies of a whole SQLite file, made while others write to it.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::{Error, Kind, Result, sqlite};

/// How much is copied between two looks at the progress: 4 MiB.
const STEP_PAGES: i32 = 1_024;

/// Copies one state of a SQLite file to a new file, which stands alone afterwards. `told` learns how many pages are
/// done, and of how many.
pub fn copy_sqlite(from: &Path, to: &Path, mut told: impl FnMut(u64, u64)) -> Result<()> {
    if to.exists() {
        return Err(Error::new(Kind::Other, format!("{} exists already", to.display())));
    }
    let source = sqlite::open_reader(from)?;
    // The snapshot is held over all steps: without it, every commit of a running server would begin the copy anew.
    source.execute_batch("begin")?;
    source.query_row("select count(*) from sqlite_master", [], |row| row.get::<_, i64>(0))?;
    let mut target = Connection::open(to)?;
    {
        let backup = Backup::new(&source, &mut target)?;
        loop {
            let step = backup.step(STEP_PAGES)?;
            let progress = backup.progress();
            let total = u64::try_from(progress.pagecount).unwrap_or(0);
            told(total.saturating_sub(u64::try_from(progress.remaining).unwrap_or(0)), total);
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                _ => return Err(Error::new(Kind::Busy, "SQLite: the file stays locked")),
            }
        }
    }
    target.execute_batch("pragma journal_mode = delete")?;
    target.close().map_err(|(_, error)| error)?;
    sync(to)
}

/// Makes a SQLite file that nobody has open stand alone: what its log holds goes into the file itself.
pub fn seal_file(path: &Path) -> Result<()> {
    let connection = sqlite::open_connection(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.execute_batch("pragma journal_mode = delete")?;
    connection.close().map_err(|(_, error)| error)?;
    sync(path)
}

fn sync(path: &Path) -> Result<()> {
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::new(Kind::Unavailable, format!("{}: {error}", path.display())))
}
