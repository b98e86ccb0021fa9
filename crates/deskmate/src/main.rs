//! One desk for people and their AI agents.

mod app;
mod live;
mod mcp;
mod shim;
mod socket;
mod world;

fn main() {
}
