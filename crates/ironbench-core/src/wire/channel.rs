//! The messages of a protocol on a blocking stream.

use std::ops::{Deref, DerefMut};

use super::{
    fault::Fault,
    pipe::{Input, Pipe},
    protocol::ServerProtocol,
};

pub struct Channel<P: ServerProtocol> {
    pipe: Pipe,
    pub(super) counter: P::Counter,
}

impl<P: ServerProtocol> Deref for Channel<P> {
    type Target = Pipe;

    fn deref(&self) -> &Pipe {
        &self.pipe
    }
}

impl<P: ServerProtocol> DerefMut for Channel<P> {
    fn deref_mut(&mut self) -> &mut Pipe {
        &mut self.pipe
    }
}

impl<P: ServerProtocol> Channel<P> {
    pub fn new(pipe: Pipe) -> Self {
        Self::resume(pipe, P::Counter::default())
    }

    /// Continues a stream of messages whose last number is `counter`.
    pub fn resume(pipe: Pipe, counter: P::Counter) -> Self {
        Self { pipe, counter }
    }

    pub fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// Waits for the next message and returns it.
    pub fn next(&mut self) -> Result<P::Message<'_>, Fault<P>> {
        while self.peek()?.is_none() {
            self.pipe.more()?;
        }
        let Input { bytes, start, end } = &mut self.pipe.input;
        let mut unread = &bytes[*start..*end];
        let message = P::next_message(&mut self.counter, &mut unread)?;
        *start = *end - unread.len();
        Ok(message.expect("the message is complete"))
    }

    /// Returns the next message if it is complete, without consuming it.
    pub fn peek(&self) -> Result<Option<P::Message<'_>>, Fault<P>> {
        let mut counter = self.counter;
        P::next_message(&mut counter, &mut self.pipe.unread())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::wire::mysql::Mysql;

    #[test]
    fn a_message_is_whole_and_consumed_only_by_next() {
        let (client, mut server) = UnixStream::pair().unwrap();
        let mut channel = Channel::<Mysql>::new(Pipe::new(client.into(), None));
        server.write_all(&[3, 0, 0, 7, b'a', b'b']).unwrap();
        channel.more().unwrap();
        assert!(channel.peek().unwrap().is_none());
        server.write_all(&[b'c', 1, 0, 0, 8, b'd']).unwrap();
        assert_eq!(channel.next().unwrap(), b"abc");
        assert_eq!(channel.counter, 8);
        assert_eq!(channel.peek().unwrap(), Some(&b"d"[..]));
        assert_eq!((channel.counter, channel.unread().len()), (8, 5));
        assert_eq!(channel.next().unwrap(), b"d");
        assert!(channel.unread().is_empty());
    }
}
