//! Requests, on both engines: the state machine, who decides, grants, the inbox, and what the record proves of them.

mod deciding;
mod emergency;
mod execution;
mod inbox;
mod people;
mod policy;
mod proof;
mod states;
mod support;
