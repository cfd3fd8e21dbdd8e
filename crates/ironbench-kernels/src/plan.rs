//! The plan of a kernel trial.

use serde::Deserialize;

use crate::mandelbrot::Variant;
use crate::region::Huge;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelPlan {
    pub threads: usize,
    /// CPUs to which the threads are pinned in rotation. If there are none, the kernel places the threads.
    pub pin: Vec<usize>,
    pub warmup_s: f64,
    pub seed: u64,
    pub kernel: Kernel,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Kernel {
    Mandelbrot { width: usize, height: usize, limit: u32, variant: Variant },
    Lottery { bytes: usize, huge: Huge, draws: u64, probe_s: f64 },
}
