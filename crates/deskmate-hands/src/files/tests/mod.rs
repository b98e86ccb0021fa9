//! What the files module promises, tried on real file systems.

mod audit;
mod back;
mod crashes;
mod devices;
mod holes;
mod hostile;
mod kit;
mod looking;
mod pages;
mod steps;
mod unprivileged;
