//! Pages of the web through the built binary: off, then on, and never on this machine.

use std::net::TcpListener;

use serde_json::json;

use crate::workspace::{agent, ask, desk, open};

#[test]
fn no_page_of_this_machine_or_its_networks_is_read() {
    let (desk, folder, token) = desk();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let mut client = agent(&desk, &token);
    let off = ask(&mut client, "browse_web", json!({ "url": "http://127.0.0.1/" })).to_string();
    assert!(off.contains("is off on this desk") && off.contains("web: true"), "{off}");
    open(&desk, &format!("workspace: {{ web: true, roots: [{{ name: notes, path: {} }}] }}\n", folder.path().display()));
    for address in ["127.0.0.1", "localhost", "x.localhost", "[::1]", "2130706433", "0x7f.1", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let refused = client.tool("browse_web", json!({ "url": format!("http://{address}/latest/meta-data?x=1") }));
        assert_eq!(refused["isError"], true, "{address}: {refused}");
        assert!(refused.to_string().contains("not on the public internet"), "{address}: {refused}");
        let refused = client.tool("browse_web", json!({ "url": format!("http://{address}:{port}/") }));
        assert_eq!(refused["isError"], true, "{address}: {refused}");
    }
    assert!(server.accept().is_err(), "nobody came");
    let past = ask(&mut client, "search_past_actions", json!({ "query": "169.254.169.254" }));
    assert_eq!(past["events"][0]["payload"]["url"], format!("http://169.254.169.254:{port}/"), "{past}");
    assert!(past.to_string().contains("/latest/meta-data") && !past.to_string().contains("x=1"), "{past}");
}
