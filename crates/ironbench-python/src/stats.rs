//! Distributions for Python.

use ironbench_core::student;
use pyo3::prelude::*;

/// Returns P(T ≥ t) of Student's t distribution.
#[pyfunction]
pub fn student_t_above(t: f64, freedom: f64) -> f64 {
    student::above(t, freedom)
}

/// Returns t with P(T ≤ t) = p of Student's t distribution, or NaN unless 0 < p < 1 and `freedom` is above 0.
#[pyfunction]
pub fn student_t_quantile(p: f64, freedom: f64) -> f64 {
    student::quantile(p, freedom)
}
