//! Distributions for Python.

use ironbench_core::student;
use pyo3::prelude::*;

/// Returns P(T ≥ t) of Student's t distribution.
#[pyfunction]
pub fn student_t_above(t: f64, freedom: f64) -> f64 {
    student::above(t, freedom)
}

/// Returns the t for which P(T ≤ t) = p in Student's t distribution. Returns NaN if p is not between 0 and 1, or if
/// `freedom` is not above 0.
#[pyfunction]
pub fn student_t_quantile(p: f64, freedom: f64) -> f64 {
    student::quantile(p, freedom)
}
