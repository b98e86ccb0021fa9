"""A real mail server, aiosmtpd: mail goes to it over both kinds of TLS, and only with the right password."""

import asyncio
import email.policy
import json
import logging
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import warnings
from email import message_from_bytes
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult

from desk import PASSPHRASE, Desk, check

PASSWORD = "p4ss of the mail server"


class Box:
    """Keeps what the server took, with who sent it and whether the connection was protected."""

    def __init__(self):
        self.mails = []

    async def handle_DATA(self, server, session, envelope):
        message = message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append((session.ssl is not None, session.auth_data, envelope.rcpt_tos, message))
        return "250 taken"

    def wait(self, number):
        for _ in range(400):
            if len(self.mails) >= number:
                return self.mails
            time.sleep(0.05)
        raise AssertionError(f"{len(self.mails)} of {number} mails came")


def login(server, session, envelope, mechanism, data):
    is_right = (data.login, data.password) == (b"desk", PASSWORD.encode())
    # Not handled: the server itself says no.
    return AuthResult(success=is_right, handled=False, auth_data="desk" if is_right else None)


class Server:
    """The mail server on a free port, in a thread of its own: TLS from the first byte, or when the client asks for it and nothing before."""

    def __init__(self, box, tls, context):
        self.loop = asyncio.new_event_loop()
        implicit = tls == "implicit"
        # Of TLS from the first byte aiosmtpd itself knows nothing, so it cannot ask for it before a password.
        more = {"auth_require_tls": False} if implicit else {"require_starttls": True, "tls_context": context}
        factory = lambda: SMTP(box, loop=self.loop, hostname="mail.test", auth_required=True, authenticator=login, **more)
        opening = self.loop.create_server(factory, "127.0.0.1", 0, ssl=context if implicit else None)
        self.server = self.loop.run_until_complete(opening)
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.loop.call_soon_threadsafe(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)


def certificate(folder):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*command, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def settings(port, tls, ca_file):
    return json.dumps({
        "notifications": {
            "outlets": [{
                "name": "mail", "kind": "email", "host": "localhost", "port": port, "tls": tls,
                "from": "Deskmate <desk@example.org>", "user": "desk", "password": "secret:mail", **({"ca_file": str(ca_file)} if ca_file else {}),
            }],
        },
    })


def at(desk):
    """The command line as the person whose passphrase it is; what comes `then` follows on standard input."""

    def run(*args, then="", **more):
        return desk.cli(*args, "--json", "--passphrase-stdin", stdin=f"{PASSPHRASE}\n{then}", **more)

    return run


def deliver(box, port, tls, ca_file):
    with Desk(settings(port, tls, ca_file)) as desk:
        desk.claim()
        person = at(desk)
        person("secret", "set", "mail", then="wrong")
        person("notify", "set", "mail", "--address", "grace@example.net", "--details", "redacted")
        refused = json.loads(person("notify", "test", "mail", check=False))
        check(refused["arrived"] is False and refused["permanent"] and "535" in refused["why"], f"{tls}: a wrong password is refused: {refused['why']}")
        person("secret", "rotate", "mail", then=PASSWORD)
        time.sleep(5)
        arrived = json.loads(person("notify", "test", "mail"))
        check(arrived["arrived"], f"{tls}: a test arrives, and the command says so")
        asked = desk.call("cowork_propose", "code", domain="crm.deals", action="update", target="deal/1 for ada@example.com",
                          proposed_change="{}", confidence=0.5, reasoning="because")
        is_protected, user, to, message = box.wait(2)[-1]
        text = message.get_content()
        check(to == ["grace@example.net"] and user == "desk", f"{tls}: who signed in sends to whom it should")
        check(is_protected or tls == "implicit", f"{tls}: protected on the way")
        check(message["Subject"] == "Deskmate: something needs you" and message.get_content_type() == "text/plain", f"{tls}: a subject of the desk's own")
        check(f"{desk.url}/requests/{asked['request_id']}" in text and "[redacted:email]" in text, f"{tls}: it leads to the request, without personal data")
        check(message["Message-ID"] == message["Message-ID"].strip() and message["Date"] is not None, f"{tls}: it has an id and a date")


def untrusted(box, port, tls):
    with Desk(settings(port, tls, None)) as desk:
        desk.claim()
        person = at(desk)
        person("secret", "set", "mail", then=PASSWORD)
        person("notify", "set", "mail", "--address", "grace@example.net")
        before = len(box.mails)
        # The server complains of it too.
        logging.disable(logging.CRITICAL)
        told = json.loads(person("notify", "test", "mail", check=False))
        is_refused = not told["arrived"] and "certificate" in told["why"].lower()
        logging.disable(logging.NOTSET)
        check(is_refused and len(box.mails) == before, f"{tls}: a certificate that nobody vouches for gets nothing: {told['why']}")


def main():
    folder = Path(tempfile.mkdtemp(prefix="deskmate-mail-"))
    try:
        context = certificate(folder)
        warnings.filterwarnings("ignore", message="Requiring AUTH while not requiring TLS")
        logging.getLogger("mail.log").setLevel(logging.ERROR)
        for tls in ("implicit", "starttls"):
            box = Box()
            server = Server(box, tls, context)
            try:
                deliver(box, server.port, tls, folder / "cert.pem")
                untrusted(box, server.port, tls)
            finally:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
