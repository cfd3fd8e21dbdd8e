//! The loop that runs transactions against a wire.
pub mod plan;
