//! The built binary from outside: started as a user or an MCP client starts it, on a data directory of its own.

mod desk;
mod http;
mod mcp;
mod shim;
