//! Memory for the prepared statements of all sessions.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of bytes of all prepared statements.
const MAX_BYTES: usize = 256 << 20;

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// A number of bytes that counts until it is dropped.
#[derive(Debug, Default)]
pub struct Reserved(usize);

impl Reserved {
    /// Reserves bytes. Returns None if all prepared statements would be larger than the limit.
    pub fn new(bytes: usize) -> Option<Self> {
        (BYTES.load(Relaxed).saturating_add(bytes) <= MAX_BYTES).then(|| Self::beyond_limit(bytes))
    }

    /// Reserves bytes even beyond the limit.
    pub fn beyond_limit(bytes: usize) -> Self {
        BYTES.fetch_add(bytes, Relaxed);
        Self(bytes)
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.0
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.0, Relaxed);
    }
}
