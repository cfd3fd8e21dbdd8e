//! How engines are talked to.
pub mod postgres;
