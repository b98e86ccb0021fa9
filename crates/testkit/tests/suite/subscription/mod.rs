//! How each person is told, on both engines: what they choose, what reaches them and when, links that decide, and what did not
//! arrive.

mod dead;
mod links;
mod preferences;
mod support;
mod telling;
