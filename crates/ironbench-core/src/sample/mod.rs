//! The sampling thread.
