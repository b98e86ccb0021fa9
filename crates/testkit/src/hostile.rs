//! Texts that mean something to a program somewhere, and must mean nothing to the desk.

/// NUL, lines of other protocols, JSON of one, SQL, paths, characters that are not seen, nothing, templates, a broken glob.
pub const HOSTILE: [&str; 9] = [
    "a\u{0}b",
    "line one\nline two\r\n\r\nHTTP/1.1 200 OK",
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
    "'; drop table message; --",
    "../../../../etc/passwd",
    "\u{202e}\u{feff}\u{fffd}\u{1f980}",
    "",
    "$1 %s %n {{x}} <script>alert(1)</script>",
    "**/[!a-z{a,b",
];
