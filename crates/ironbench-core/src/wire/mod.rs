//! How engines are talked to.
