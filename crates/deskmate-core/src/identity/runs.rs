//! Tokens of runs: each for one run of an agent, kept like every credential, and ended with the run.

use super::rows;
use super::token::SecretKind;
use crate::Result;
use crate::call::Cx;

/// Hands out the token of a run. One from before ends.
pub(crate) fn issue_run(cx: &mut Cx<'_, '_>, run: &str, ttl_us: i64) -> Result<String> {
    end_run(cx, run)?;
    let (_, secret) = rows::issue(cx, SecretKind::Run, run, &[], ttl_us)?;
    Ok(secret.reveal().to_owned())
}

/// The run has ended, and so has its token.
pub(crate) fn end_run(cx: &mut Cx<'_, '_>, run: &str) -> Result<()> {
    let now = cx.now();
    for row in rows::good_of(cx, run, SecretKind::Run)? {
        rows::end(cx, &row.id, now, "its run has ended")?;
    }
    Ok(())
}
