//! Policies: the text people write, what is in force, and the one answer to every intended act.

mod conditions;
mod document;
mod limits;
mod properties;
mod reference;
mod rules;
mod store;
mod support;
