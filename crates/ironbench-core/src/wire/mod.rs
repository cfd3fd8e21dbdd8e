//! How engines are talked to.
pub mod postgres;
pub mod sqlite;
pub mod transport;
