//! Storage devices as pure functions of time.
//!
//! A `Device` is asked when an I/O that arrives now will be done; it holds no data, waits for nothing and reads no
//! clock. `model` has the devices, `array` what is made of several, `text` how they are written and `build` how an
//! expression becomes a device. The front ends answer from them: live ones wait until the time has come, replay does not.

pub mod array;
pub mod build;
pub mod device;
pub mod figures;
#[cfg(test)]
mod laws;
pub mod live;
pub mod model;
pub mod replay;
#[cfg(test)]
mod testing;
pub mod text;

pub use build::{ARRAYS, build};
pub use device::{Device, Op};
pub use figures::Models;
pub use model::Free;
pub use text::{Expression, parse};
