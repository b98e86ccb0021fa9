//! The built binary from outside: started as a user or an MCP client starts it, on a data directory of its own.

#[cfg(test)]
mod agentos;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod bridge_file;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod compliance;
#[cfg(test)]
mod connect;
#[cfg(test)]
mod connectors;
#[cfg(test)]
mod cowork;
#[cfg(test)]
mod coworker;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod extension;
#[cfg(test)]
mod front;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod gateway_changes;
#[cfg(test)]
mod gateway_faults;
#[cfg(test)]
mod gateway_reads;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod http;
#[cfg(test)]
mod import;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod keep;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod outlets;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod rest;
#[cfg(test)]
mod runners;
#[cfg(test)]
mod running;
#[cfg(test)]
mod secret;
#[cfg(test)]
mod service;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod shim;
#[cfg(test)]
mod smtp;
#[cfg(test)]
mod spans;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod upkeep;
#[cfg(test)]
mod workspace;
#[cfg(test)]
mod workspace_proof;
#[cfg(test)]
mod workspace_python;
#[cfg(test)]
mod workspace_random;
#[cfg(test)]
mod workspace_roots;
#[cfg(test)]
mod workspace_scan;
#[cfg(test)]
mod workspace_web;
