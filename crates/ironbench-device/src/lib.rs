//! Storage devices as pure functions of time.
//!
//! A `Device` computes when an I/O that arrives now will complete. A device stores no data, never waits, and reads no
//! clock. The module `model` contains the devices, and `array` composes several devices. `text` parses device
//! expressions, and `build` turns an expression into a device. Two modules use the completion times: `live` waits until
//! they have passed, and `replay` does not wait.

pub mod array;
pub mod build;
pub mod device;
pub mod live;
pub mod model;
#[cfg(test)]
mod model_properties;
pub mod parameters;
pub mod replay;
#[cfg(test)]
mod testing;
pub mod text;

pub use build::{ARRAYS, build};
pub use device::{Device, Op};
pub use model::ZeroLatency;
pub use parameters::Models;
pub use text::{Expression, parse};
