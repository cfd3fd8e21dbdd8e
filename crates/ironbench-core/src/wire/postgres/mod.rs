//! PostgreSQL: its messages (`protocol`).
pub mod protocol;
