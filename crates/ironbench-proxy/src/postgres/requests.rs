//! Handles the messages of the client.

use std::collections::HashMap;
use std::sync::Arc;

use ironbench_capture::observed::Obstacle;

use super::prepared::{Prepared, bound_values, types};
use super::{Portal, PostgresTracker, Request, Running, Tracked, UnknownMessage};
use crate::Instant;
use crate::framing::{LONGEST, Message, beginning};

/// Maximum number of bytes of a session's unanswered requests.
pub(super) const MAX_PENDING_BYTES: usize = 8 << 20;
const MAX_STATEMENTS: usize = 10_000;
const MAX_PORTALS: usize = 1000;
/// Maximum length of the name of a statement or portal.
const LONGEST_NAME: usize = 4000;

impl PostgresTracker {
    pub(super) fn client_message(&mut self, Message { tag, body, is_cut }: Message, now: Instant) -> Tracked {
        if self.is_skipping && !matches!(tag, b'S' | b'X') {
            return Ok(());
        }
        match tag {
            b'Q' => {
                self.request += 1;
                let text = body.strip_suffix(b"\0").unwrap_or(body);
                let running = self.running(now, None, text.into(), is_cut);
                self.push(Request::Query(running));
                (self.request, self.bound_at) = (self.request + 1, None);
            }
            b'P' => {
                self.bound_at.get_or_insert(now);
                self.parse(body, is_cut)?;
            }
            b'B' => {
                self.bound_at.get_or_insert(now);
                self.bind(body, is_cut, now)?;
            }
            b'E' => {
                let portal = name(&mut &*body)?;
                let at = self.bound_at.take().unwrap_or(now);
                let mut running = match self.portals.get_mut(portal) {
                    Some(Portal::Fetched(name, text)) => {
                        let (name, text) = (name.clone(), text.clone());
                        let mut running = self.running(at, name, text, false);
                        running.obstacle = Some(Obstacle::Fetch);
                        running
                    }
                    Some(bound) => {
                        let Portal::Bound(running) = bound else { return Err(UnknownMessage) };
                        let fetched = Portal::Fetched(running.name.clone(), running.text.clone());
                        let Portal::Bound(running) = std::mem::replace(bound, fetched) else {
                            return Err(UnknownMessage);
                        };
                        self.portal_bytes -= running.bytes;
                        running
                    }
                    None => self.running(at, Some(Arc::default()), Arc::default(), true),
                };
                (running.at, running.request) = (at, self.request);
                self.push(Request::Execute(running));
            }
            b'D' => {
                let (kind, mut name) = body.split_first().ok_or(UnknownMessage)?;
                let name = c_string(&mut name).ok_or(UnknownMessage)?;
                let described = if *kind == b'S' { self.statements.get(name).cloned() } else { None };
                self.push(Request::Describe(described));
            }
            b'C' => {
                let (kind, mut name) = body.split_first().ok_or(UnknownMessage)?;
                let name = c_string(&mut name).ok_or(UnknownMessage)?;
                let closed = if *kind == b'S' { self.statements.remove_entry(name) } else { None };
                if *kind == b'P' {
                    self.remove_portal(name);
                }
                self.push(Request::Close(closed));
            }
            b'S' => {
                self.is_skipping = false;
                (self.request, self.bound_at) = (self.request + 1, None);
                if !self.in_copy {
                    self.push(Request::Sync);
                }
            }
            b'F' => {
                let oid = body.first_chunk().map_or(0, |oid| u32::from_be_bytes(*oid));
                let text = format!("function call of pg_proc {oid}");
                let mut running = self.running(now, None, text.as_bytes().into(), false);
                running.obstacle = Some(Obstacle::FunctionCall);
                self.push(Request::Function(running));
                self.request += 1;
            }
            b'c' | b'f' if self.in_copy => self.in_copy = false,
            b'c' | b'f' if !self.pending.is_empty() => self.push(Request::CopyEnd),
            // The bodies of these messages are not kept (`kept_client_bytes`). These bodies are rows of a COPY, passwords
            // and SASL messages.
            b'c' | b'f' | b'd' | b'H' | b'X' | b'p' => {}
            _ => return Err(UnknownMessage),
        }
        Ok(())
    }

    /// Creates a statement that starts at `at`. If `is_cut`, only the beginning of `text` is kept.
    pub(super) fn running(&self, at: Instant, name: Option<Arc<[u8]>>, text: Arc<[u8]>, is_cut: bool) -> Box<Running> {
        let text = if is_cut { beginning(&text).into() } else { text };
        let obstacle = match () {
            () if is_cut => Some(Obstacle::LongText),
            () if !self.is_utf8 && !text.is_ascii() => Some(Obstacle::Encoding),
            () => None,
        };
        let (request, bytes) = (self.request, size_of::<Running>() + text.len());
        Box::new(Running {
            at,
            name,
            text,
            values: Vec::new(),
            obstacle,
            request,
            rows: 0,
            received: 0,
            error: None,
            bytes,
        })
    }

    /// Appends a request to those that the server has not answered. If they take too much memory, only the beginning of
    /// the text is kept.
    fn push(&mut self, mut request: Request) {
        if let Request::Query(running) | Request::Execute(running) | Request::Function(running) = &mut request {
            if self.pending_bytes + running.bytes > MAX_PENDING_BYTES {
                running.text = beginning(&running.text).into();
                running.values = Vec::new();
                running.obstacle = Some(Obstacle::LongText);
                running.bytes = size_of::<Running>() + running.text.len();
            }
            self.pending_bytes += running.bytes;
        }
        self.pending.push_back(request);
    }

    fn parse(&mut self, body: &[u8], is_cut: bool) -> Tracked {
        let mut rest = body;
        let name: Arc<[u8]> = name(&mut rest)?.into();
        let (text, types) = match c_string(&mut rest) {
            Some(text) => (text, types(rest)),
            None if is_cut => (rest, Box::default()),
            None => return Err(UnknownMessage),
        };
        let prepared = Arc::new(Prepared::new(text, types, is_cut));
        let has_room = self.statements.len() < MAX_STATEMENTS || self.statements.contains_key(&name);
        let before = if has_room { self.statements.insert(Arc::clone(&name), Arc::clone(&prepared)) } else { None };
        self.push(Request::Parse(name, before, prepared));
        Ok(())
    }

    fn bind(&mut self, body: &[u8], is_cut: bool, now: Instant) -> Tracked {
        let mut rest = body;
        let portal = name(&mut rest)?;
        let name = name(&mut rest)?;
        let known = self.statements.get_key_value(name).map(|(name, prepared)| (name.clone(), prepared.clone()));
        let mut running = match &known {
            Some((name, prepared)) => self.running(now, Some(name.clone()), prepared.text.clone(), false),
            None => self.running(now, Some(name.into()), Arc::default(), true),
        };
        let is_whole = known.as_ref().is_some_and(|(_, prepared)| !prepared.is_cut) && !is_cut;
        match known.filter(|_| is_whole) {
            None => running.obstacle = Some(Obstacle::LongText),
            Some((_, prepared)) => {
                let (values, obstacle) = bound_values(&prepared, rest).ok_or(UnknownMessage)?;
                let has_other_text = !self.is_utf8 && values.iter().flatten().any(|value| !value.is_ascii());
                running.obstacle = running.obstacle.or(obstacle);
                if has_other_text {
                    running.obstacle = Some(Obstacle::Encoding);
                }
                // The text is shared with the prepared statement.
                let of_values = values.iter().flatten().map(Vec::len).sum::<usize>() + size_of_val(&*values);
                running.bytes = size_of::<Running>() + of_values;
                running.values = values;
            }
        }
        if self.portals.len() >= MAX_PORTALS {
            self.clear_portals();
        }
        self.remove_portal(portal);
        if self.portal_bytes + running.bytes > MAX_PENDING_BYTES {
            (running.values, running.obstacle) = (Vec::new(), Some(Obstacle::LongText));
            running.bytes = size_of::<Running>();
        }
        self.portal_bytes += running.bytes;
        self.portals.insert(portal.into(), Portal::Bound(running));
        self.push(Request::Bind);
        Ok(())
    }
}

impl PostgresTracker {
    fn remove_portal(&mut self, name: &[u8]) {
        if let Some(Portal::Bound(running)) = self.portals.remove(name) {
            self.portal_bytes -= running.bytes;
        }
    }

    pub(super) fn clear_portals(&mut self) {
        (self.portals, self.portal_bytes) = (HashMap::new(), 0);
    }
}

/// Returns how many bytes of a client's message are kept. Passwords and rows are not kept.
pub(super) fn kept_client_bytes(tag: u8) -> usize {
    match tag {
        b'Q' | b'P' | b'B' => LONGEST,
        b'E' | b'D' | b'C' => 4096,
        b'F' => 4,
        _ => 0,
    }
}

/// Reads the name of a statement or portal.
fn name<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], UnknownMessage> {
    c_string(rest).filter(|name| name.len() <= LONGEST_NAME).ok_or(UnknownMessage)
}

/// Reads a string that ends with a zero byte. Returns None if there is no zero byte.
fn c_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = memchr::memchr(0, rest)?;
    let text = &rest[..end];
    *rest = &rest[end + 1..];
    Some(text)
}
