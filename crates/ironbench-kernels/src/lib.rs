//! Kernels that measure processor and memory. The module `mandelbrot` computes a picture of the Mandelbrot set, and
//! `lottery` searches tickets in memory. `probes` measures the plain bandwidth and latency that explain the lottery's
//! results.

pub mod complex;
pub mod fractal;
pub mod game;
pub mod lottery;
pub mod mandelbrot;
pub mod picture;
pub mod plan;
pub mod probes;
pub mod region;
pub mod threads;

pub use plan::KernelPlan;
pub use threads::{KernelThreads, Watch};
