//! Storage devices as pure functions of time.
//!
//! A `Device` is asked when an I/O that arrives now will be done; it holds no data, waits for nothing and reads no
//! clock. `model` has the devices; the front ends answer from them: live ones wait until the time has come, replay
//! does not.

pub mod device;
pub mod model;

pub use device::{Device, Op};
pub use model::Free;
