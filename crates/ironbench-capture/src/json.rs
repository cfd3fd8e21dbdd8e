//! Parses the format `jsonlog`, which has one JSON object per line (PostgreSQL 18 documentation, 19.8.5).

use std::borrow::Cow;

use serde::Deserialize;

use crate::entry::{Clock, Entry, Severity, session_id, virtual_transaction};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(default)]
    line_num: u32,
    #[serde(borrow, default)]
    user: Cow<'a, str>,
    #[serde(borrow, default)]
    dbname: Cow<'a, str>,
    #[serde(borrow, default)]
    application_name: Cow<'a, str>,
    #[serde(borrow, default)]
    ps: Cow<'a, str>,
    #[serde(borrow, default)]
    vxid: Cow<'a, str>,
    #[serde(borrow, default)]
    error_severity: Cow<'a, str>,
    #[serde(borrow, default)]
    state_code: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    detail: Cow<'a, str>,
    #[serde(borrow, default)]
    context: Cow<'a, str>,
    #[serde(borrow, default)]
    statement: Cow<'a, str>,
}

/// Returns the entry, and its number within the session. Returns None if the line is not a log entry.
pub fn entry<'a>(line: &'a [u8], clock: &mut Clock) -> Option<(Entry<'a>, u32)> {
    let line: Line<'a> = serde_json::from_slice(line).ok()?;
    let text = |text: Cow<'a, str>| match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    let entry = Entry {
        at_us: clock.read(line.timestamp.as_bytes())?,
        session: session_id(line.session_id.as_bytes())?,
        has_start: true,
        user: text(line.user),
        database: text(line.dbname),
        application: text(line.application_name),
        state: text(line.ps),
        transaction: virtual_transaction(line.vxid.as_bytes()),
        severity: Severity::of(line.error_severity.as_bytes()),
        sqlstate: text(line.state_code),
        message: text(line.message),
        detail: text(line.detail),
        context: text(line.context),
        statement: text(line.statement),
    };
    Some((entry, line.line_num))
}
