//! Distributions that comparisons need and that Python could have only by importing scipy: docs/adr/0017-statistics-on-scipy.md.

pub mod student;
