//! One desk for people and their AI agents.

mod app;
mod live;
mod world;

fn main() {
}
