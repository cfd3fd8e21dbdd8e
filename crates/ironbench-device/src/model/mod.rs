//! The devices, each a pure function of its figures, its seed and its arrivals.

mod free;

pub use free::Free;
