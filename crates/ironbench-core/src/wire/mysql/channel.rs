//! MySQL packets on a blocking stream.

use std::ops::{Deref, DerefMut};

use super::fault::Fault;
use super::protocol::{Framer, Rows, frontend};
use crate::wire::pipe::Pipe;

pub(super) struct Channel {
    pipe: Pipe,
    framer: Framer,
    /// Sequence number of the next packet.
    pub sequence: u8,
}

impl Deref for Channel {
    type Target = Pipe;

    fn deref(&self) -> &Pipe {
        &self.pipe
    }
}

impl DerefMut for Channel {
    fn deref_mut(&mut self) -> &mut Pipe {
        &mut self.pipe
    }
}

impl Channel {
    pub fn new(pipe: Pipe) -> Self {
        Self { pipe, framer: Framer::new(), sequence: 0 }
    }

    pub fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// Waits for the next packet and returns it.
    pub fn next(&mut self, rows: Rows) -> Result<&[u8], Fault> {
        loop {
            let input = &mut self.pipe.input;
            let mut unread = &input.bytes[input.start..input.end];
            let found = self.framer.next(&mut unread, rows)?.map(|packet| (packet.sequence, packet.body.len()));
            input.start = input.end - unread.len();
            if let Some((sequence, length)) = found {
                self.sequence = sequence.wrapping_add(1);
                let end = self.pipe.input.start;
                return Ok(&self.pipe.input.bytes[end - length..end]);
            }
            self.pipe.more()?;
        }
    }

    /// Sends `body` as the next packet.
    pub fn answer(&mut self, body: &[u8]) -> Result<(), Fault> {
        let sequence = self.sequence;
        frontend::packet(&mut self.pipe.output, sequence, |out| out.extend_from_slice(body));
        self.sequence = sequence.wrapping_add(1);
        Ok(self.pipe.flush()?)
    }
}
