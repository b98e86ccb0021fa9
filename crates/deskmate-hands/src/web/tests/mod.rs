//! Pages of servers that the tests start themselves, on this machine.

mod bounds;
mod guard;
mod pages;
mod server;
mod text;
mod tls;
