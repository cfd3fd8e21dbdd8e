//! PostgreSQL messages on a blocking stream.

use std::io;
use std::ops::{Deref, DerefMut};

use super::fault::Fault;
use super::protocol::{Framer, Message, Rows, framing::kept_size};
use crate::wire::fault::Broken;
use crate::wire::pipe::Pipe;

pub(super) struct Channel {
    pipe: Pipe,
    framer: Framer,
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
        Self { pipe, framer: Framer::new() }
    }

    pub fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// Waits for the next message and returns it.
    pub fn next(&mut self, rows: Rows) -> Result<Message<'_>, Fault> {
        loop {
            if let Some((tag, from, to)) = self.take(rows)? {
                return Ok(Message { tag, body: &self.pipe.input.bytes[from..to] });
            }
            self.pipe.more()?;
        }
    }

    /// Reads the bytes that have arrived, once and without waiting, because a server may send faster than the client
    /// reads. A closed connection is an error only if no complete message is left.
    pub fn read_arrived(&mut self) -> Result<(), Fault> {
        let closed = self.pipe.receive_any()? == Some(0);
        if closed && self.peek()?.is_none() {
            return Err(Broken::Io(io::ErrorKind::UnexpectedEof.into()).into());
        }
        Ok(())
    }

    /// Waits until the next message is complete and returns its tag, without consuming it.
    pub fn wait_peek(&mut self) -> Result<u8, Fault> {
        loop {
            match self.peek()? {
                Some(tag) => return Ok(tag),
                None => self.pipe.more()?,
            }
        }
    }

    /// Returns the tag of the next message if it is complete, without consuming it.
    pub fn peek(&self) -> Result<Option<u8>, Fault> {
        let unread = self.pipe.unread();
        Ok(kept_size(unread)?.filter(|&size| size <= unread.len()).map(|_| unread[0]))
    }

    /// Takes a complete message: its tag, and the position of its body in the input.
    fn take(&mut self, rows: Rows) -> Result<Option<(u8, usize, usize)>, Fault> {
        let input = &mut self.pipe.input;
        let mut unread = &input.bytes[input.start..input.end];
        let found = self.framer.next(&mut unread, rows)?.map(|message| (message.tag, message.body.len()));
        input.start = input.end - unread.len();
        Ok(found.map(|(tag, length)| (tag, input.start - length, input.start)))
    }
}
