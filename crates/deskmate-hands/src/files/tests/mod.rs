//! What the files module promises, tried on real file systems.

mod holes;
mod kit;
