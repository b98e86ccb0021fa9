//! Asking a PostgreSQL database that is somebody else's: one question, in a transaction that cannot write.

use std::time::Duration;

use postgres::{Config, fallible_iterator::FallibleIterator};

use crate::postgres::tls;
use crate::{Error, Kind, Result};

/// What came back.
pub struct Asked {
    /// The columns, in order.
    pub columns: Vec<String>,
    /// The rows, each a JSON object.
    pub rows: Vec<String>,
    /// Whether there were more.
    pub truncated: bool,
}

/// Asks one question and takes at most so many rows and bytes. The database bounds the time, and refuses whatever would change it:
/// only one statement can be sent this way, and it stands where only a question can stand.
pub fn ask_postgres(url: &str, sql: &str, rows_max: usize, bytes_max: usize, time: Duration) -> Result<Asked> {
    // The address may hold a password: what is wrong with it is not repeated.
    let mut config: Config = url.parse().map_err(|_| Error::new(Kind::Other, "the address of the database cannot be read"))?;
    config.connect_timeout(Duration::from_secs(5)).tcp_user_timeout(time + Duration::from_secs(5)).application_name("deskmate");
    let mut client = config.connect(tls()?)?;
    let millis = time.as_millis().max(1);
    client.batch_execute(&format!("set statement_timeout = {millis}; set lock_timeout = {millis}; set idle_in_transaction_session_timeout = '60s'"))?;
    let mut transaction = client.build_transaction().read_only(true).start()?;
    let question = sql.trim().trim_end_matches(';');
    let columns = transaction.prepare(question)?.columns().iter().map(|column| column.name().to_owned()).collect();
    // A comment at its end must not swallow what follows.
    let wrapped = format!("select row_to_json(asked)::text from (\n{question}\n) asked limit {}", rows_max.saturating_add(1));
    let statement = transaction.prepare(&wrapped)?;
    let (mut rows, mut bytes, mut truncated) = (Vec::new(), 0, false);
    {
        let mut found = transaction.query_raw(&statement, std::iter::empty::<&(dyn postgres::types::ToSql + Sync)>())?;
        while let Some(row) = found.next()? {
            let text: String = row.try_get(0)?;
            bytes += text.len();
            if rows.len() >= rows_max || bytes > bytes_max {
                truncated = true;
                break;
            }
            rows.push(text);
        }
    }
    transaction.rollback()?;
    Ok(Asked { columns, rows, truncated })
}
