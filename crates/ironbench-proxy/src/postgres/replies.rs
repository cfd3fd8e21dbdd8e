//! Handles the messages of the server.

use ironbench_core::wire::postgres::protocol::backend::{affected_rows, sqlstate};

use super::prepared::types;
use super::{PostgresTracker, Request, Running, Tracked, UnknownMessage};
use crate::Instant;
use crate::framing::Message;

impl PostgresTracker {
    pub(super) fn server_message(&mut self, Message { tag, body, .. }: Message, now: Instant) -> Tracked {
        match tag {
            // The server sends these messages during authentication or without a request.
            b'N' | b'A' | b'K' | b'R' | b'v' => return Ok(()),
            b'S' => {
                self.parameter_changed(body);
                return Ok(());
            }
            _ => self.skip_copy_ends(),
        }
        match (tag, self.pending.front_mut()) {
            (b'Z', Some(Request::Query(_) | Request::Function(_))) => {
                let Some(Request::Query(running) | Request::Function(running)) = self.pop() else {
                    return Err(UnknownMessage);
                };
                self.finish(*running, now);
                self.ready(body, now);
            }
            (b'Z', Some(Request::Sync)) => {
                self.pop();
                self.ready(body, now);
            }
            (b'Z', None) if !self.is_established => {
                self.is_established = true;
                self.ready(body, now);
            }
            (b'1', Some(Request::Parse(..)))
            | (b'2', Some(Request::Bind))
            | (b'3', Some(Request::Close(_)))
            | (b'T' | b'n', Some(Request::Describe(_))) => drop(self.pop()),
            (b't', Some(Request::Describe(prepared))) => {
                if let Some(prepared) = prepared {
                    prepared.describe(types(body));
                }
            }
            (b'D', Some(Request::Query(running) | Request::Execute(running))) => running.received += 1,
            (b'C', Some(Request::Query(running))) => running.rows += affected_rows(body),
            (b'C' | b'I' | b's', Some(Request::Execute(running))) => {
                running.rows = if tag == b'C' { affected_rows(body) } else { running.received };
                if let Some(Request::Execute(running)) = self.pop() {
                    self.finish(*running, now);
                }
            }
            (b'E', _) => self.failed(error_code(body), now),
            (b'G', Some(_)) => self.begin_copy(),
            (b'H' | b'c' | b'd', Some(Request::Query(_) | Request::Execute(_)))
            | (b'T' | b'I', Some(Request::Query(_)))
            | (b'V', Some(Request::Function(_))) => {}
            _ => return Err(UnknownMessage),
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<Request> {
        let request = self.pending.pop_front();
        if let Some(Request::Query(running) | Request::Execute(running) | Request::Function(running)) = &request {
            self.pending_bytes -= running.bytes;
        }
        request
    }

    /// Removes the ends of COPYs from the start of the unanswered requests, because they have no answer.
    pub(super) fn skip_copy_ends(&mut self) {
        while matches!(self.pending.front(), Some(Request::CopyEnd)) {
            self.pending.pop_front();
        }
    }

    /// Handles the start of a COPY from the client. Any Sync that the client has already sent arrives before the end of
    /// the rows, so the server does not answer it.
    fn begin_copy(&mut self) {
        let mut has_ended = false;
        let mut index = 0;
        self.pending.retain(|request| {
            index += 1;
            if index == 1 || has_ended {
                return true;
            }
            has_ended = matches!(request, Request::CopyEnd);
            !matches!(request, Request::CopyEnd | Request::Sync)
        });
        self.in_copy = !has_ended;
    }

    /// Handles an error of the server. In the extended protocol, the server then ignores requests until the next Sync.
    fn failed(&mut self, code: [u8; 5], now: Instant) {
        // The error also ends a COPY from the client.
        self.in_copy = false;
        match self.pending.front_mut() {
            // The session ends, for example because the server is shut down.
            None => return,
            Some(Request::Query(running) | Request::Function(running)) => {
                running.error.get_or_insert(code);
                return;
            }
            // The commit of an implicit transaction has failed.
            Some(Request::Sync) => {
                if let Some((_, ended)) = &mut self.ended {
                    ended.error.get_or_insert(code);
                }
                return;
            }
            Some(_) => {}
        }
        let mut failed: Option<Running> = None;
        let mut undone = Vec::new();
        while let Some(request) = self.pending.front() {
            if matches!(request, Request::Sync) {
                break;
            }
            match self.pop() {
                Some(Request::Execute(running)) if failed.as_ref().is_none_or(|one| one.at == 0) => {
                    failed = Some(*running);
                }
                Some(Request::Parse(name, before, prepared)) => {
                    if failed.is_none() && undone.is_empty() {
                        // This is used if the client sent no Execute after this Parse.
                        let mut running = self.running(0, Some(name.clone()), prepared.text.clone(), false);
                        running.request = self.request;
                        failed = Some(*running);
                    }
                    undone.push((name, before));
                }
                Some(Request::Close(Some((name, before)))) => undone.push((name, Some(before))),
                _ => {}
            }
        }
        self.is_skipping = self.pending.is_empty();
        for (name, before) in undone.into_iter().rev() {
            match before {
                Some(before) => drop(self.statements.insert(name, before)),
                None => drop(self.statements.remove(&name)),
            }
        }
        if let Some(mut running) = failed {
            if running.at == 0 {
                running.at = self.bound_at.unwrap_or(now);
            }
            running.error = Some(code);
            running.rows = 0;
            self.finish(running, now);
        }
    }
}

/// Returns how many bytes of a server's message are kept.
pub(super) fn kept_server_bytes(tag: u8) -> usize {
    match tag {
        b'C' => 128,
        b'E' | b'S' => 8192,
        b't' => 2 + 4 * 65_535,
        b'Z' => 1,
        _ => 0,
    }
}

fn error_code(body: &[u8]) -> [u8; 5] {
    sqlstate(body).as_bytes().try_into().unwrap_or(*b"XX000")
}
