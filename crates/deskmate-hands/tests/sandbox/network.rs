//! The network, and every other kind of socket.

use crate::bench::{Bench, ordinary, text, ways};
use deskmate_hands::sandbox::Network;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::{fs, thread};

#[test]
fn no_listener_is_reached() {
    let bench = Bench::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp_port) = (tcp.local_addr().map(|at| (tcp, at.port())).unwrap(), udp.local_addr().unwrap().port());
    let port = tcp.1;
    thread::spawn(move || tcp.0.incoming().for_each(drop));
    bench.only_outside(&format!("import socket; socket.create_connection(('127.0.0.1', {port})); print('done')"));
    bench.only_outside(&format!("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp_port})); print('done')"));
    udp.set_nonblocking(true).unwrap();
    assert!(udp.recv(&mut [0]).is_ok(), "from outside");
    assert!(udp.recv(&mut [0]).is_err(), "from inside");
}

#[test]
fn no_unix_socket_is_reached() {
    let bench = Bench::new();
    let open = |name: &str| fs::set_permissions(bench.path(name), fs::Permissions::from_mode(0o777)).unwrap();
    let stream = UnixListener::bind(bench.path("open/stream")).unwrap();
    let datagram = UnixDatagram::bind(bench.path("open/datagram")).unwrap();
    open("open/stream");
    open("open/datagram");
    thread::spawn(move || stream.incoming().for_each(drop));
    for code in [
        "s = socket.socket(socket.AF_UNIX); s.connect(BENCH + '/open/stream')",
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', BENCH + '/open/datagram')",
        // A pair of datagram sockets could be pointed at any address.
        "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(BENCH + '/open/datagram')",
        "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', BENCH + '/open/datagram')",
        "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendmsg([b'x'], [], 0, BENCH + '/open/datagram')",
    ] {
        let code = format!("import socket; {code}; print('done')");
        bench.only_outside(&code);
        // Nor when the directory itself was granted.
        for way in ways() {
            let mut spec = bench.python(&code);
            spec.read_write.push(bench.path("open"));
            assert_eq!(text(&bench.run(&spec, way).stdout.bytes), "", "{way:?} {code}");
        }
    }
    datagram.set_nonblocking(true).unwrap();
    assert_eq!((0..9).filter(|_| datagram.recv(&mut [0]).is_ok()).count(), 3, "what was sent from outside arrived, and nothing else");
}

#[test]
fn no_abstract_socket_is_reached() {
    let bench = Bench::new();
    let name = format!("sandbox-test-{}", std::process::id());
    let mut listener = ordinary("/usr/bin/python3")
        .args([
            "-c",
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind('\\0' + sys.argv[1]); s.listen(); print('up', flush=True); sys.stdin.read()",
            &name,
        ])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(listener.stdout.as_mut().unwrap(), &mut [0; 2]).unwrap();
    bench.only_outside(&format!("import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{name}'); print('done')"));
    drop(listener.stdin.take());
    listener.wait().unwrap();
}

#[test]
fn no_other_kind_of_socket_is_to_be_had() {
    let bench = Bench::new();
    bench.only_outside("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).bind((0, 0)); print('done')");
    bench.only_outside("import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); print('done')");
    for family in ["AF_PACKET", "AF_ALG", "AF_VSOCK", "AF_BLUETOOTH"] {
        bench.never_inside(&format!("import socket; socket.socket(socket.{family}, socket.SOCK_RAW, 0); print('done')"));
    }
}

#[test]
fn with_the_network_allowed_tcp_works_and_unix_sockets_do_not() {
    let bench = Bench::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    thread::spawn(move || tcp.incoming().for_each(drop));
    let stream = UnixListener::bind(bench.path("open/stream")).unwrap();
    fs::set_permissions(bench.path("open/stream"), fs::Permissions::from_mode(0o777)).unwrap();
    for way in ways() {
        let mut spec = bench.python(&format!(
            "import socket; socket.create_connection(('127.0.0.1', {port})); socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print('done')"
        ));
        spec.network = Network::Allowed;
        assert_eq!(bench.prints(&spec, way), "done\n");
        for family in ["AF_UNIX", "AF_NETLINK", "AF_ALG"] {
            let mut spec = bench.python(&format!("import socket; s = socket.socket(socket.{family}, socket.SOCK_STREAM); print('done')"));
            spec.network = Network::Allowed;
            spec.read_write.push(bench.path("open"));
            let outcome = bench.run(&spec, way);
            assert!(outcome.stdout.bytes.is_empty() && text(&outcome.stderr.bytes).contains("Operation not permitted"), "{way:?} {family}");
        }
    }
    drop(stream);
}

#[test]
fn with_one_port_tcp_reaches_that_port_and_nothing_else_works() {
    let bench = Bench::new();
    let (tcp, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (port, closed) = (tcp.local_addr().unwrap().port(), other.local_addr().unwrap().port());
    thread::spawn(move || tcp.incoming().for_each(drop));
    thread::spawn(move || other.incoming().for_each(drop));
    for way in ways() {
        let mut spec = bench.python(&format!("import socket; socket.create_connection(('127.0.0.1', {port})); print('done')"));
        spec.network = Network::Port(port);
        assert_eq!(bench.prints(&spec, way), "done\n");
        for act in [
            format!("socket.create_connection(('127.0.0.1', {closed}))"),
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)".to_owned(),
            "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)".to_owned(),
            "socket.socket(socket.AF_UNIX)".to_owned(),
            "socket.create_server(('127.0.0.1', 0))".to_owned(),
            format!("socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {closed}))"),
        ] {
            let mut spec = bench.python(&format!("import socket; {act}; print('done')"));
            spec.network = Network::Port(port);
            let outcome = bench.run(&spec, way);
            assert!(outcome.stdout.bytes.is_empty(), "{way:?} {act}: {}", text(&outcome.stdout.bytes));
        }
    }
}
