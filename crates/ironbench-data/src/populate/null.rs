//! Generates rows and discards them, to measure the cost of the client itself.

use std::ops::Range;

use ironbench_core::drive::{Ending, Step, Transaction};
use ironbench_core::measure::Tally;
use ironbench_core::wire::transport::Mailbox;

use super::values::Binary;
use super::{ClientShare, Method};
use crate::populate::postgres::PIECE;

pub struct Populator<'p> {
    share: ClientShare<'p>,
    /// Rows of the current commit that remain to be sent.
    rows: Range<u64>,
    payload: Vec<u8>,
}

impl<'p> Populator<'p> {
    pub fn new(share: ClientShare<'p>) -> Self {
        Self { share, rows: 0..0, payload: Vec::new() }
    }

    fn next_message(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        mailbox.outbox.clear();
        if self.rows.is_empty() {
            tally.commits += 1;
            return Step::Ended(Ending { kind: 0, well: true, retries: 0 });
        }
        let populate = self.share.populate;
        let (most_rows, most_bytes) = match populate.method {
            Method::Rows => (1, usize::MAX),
            Method::Batch => (populate.batch, usize::MAX),
            Method::Copy => (u64::MAX, PIECE),
        };
        let mut sent = 0;
        while sent < most_rows && mailbox.outbox.len() < most_bytes {
            let Some(row) = self.rows.next() else { break };
            populate.table.row(row + 1, &mut self.payload, &mut Binary(&mut mailbox.outbox));
            sent += 1;
        }
        if populate.method == Method::Copy && !self.rows.is_empty() { Step::SendWithoutReply } else { Step::Send }
    }
}

impl Transaction for Populator<'_> {
    fn share(&self) -> Option<u64> {
        Some(self.share.left())
    }

    fn begin(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.rows = self.share.take();
        self.next_message(mailbox, tally)
    }

    fn resume(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.next_message(mailbox, tally)
    }

    fn reply(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.next_message(mailbox, tally)
    }
}
