//! Rows of the standard workloads.
