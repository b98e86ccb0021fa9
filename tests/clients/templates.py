"""The agent templates, each made by `create_agent` with `template` and `params` and run by the desk, with real parts: files, a
web server, a database of each kind, a mailbox (pymap), a server that takes mail (aiosmtpd), WebDAV (wsgidav) and S3 (moto)."""

import asyncio
import email.policy
import imaplib
import json
import os
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from aiosmtpd.smtp import SMTP

from desk import PASSPHRASE, Desk, check
from mail import Box, certificate

RULES = """
workspace: { roots: [{ name: notes, path: FOLDER, access: write }] }
rules:
  - { name: looking, match: { kind: outside.read }, effect: allow, waive_trust: true, message: looking is fine }
"""


def owner(desk, operation, **fields):
    return json.loads(desk.cli("call", operation, "--json", "--input", json.dumps(fields), "--passphrase-stdin", stdin=PASSPHRASE + "\n"))


def person(desk, *args, then="", **more):
    return desk.cli(*args, "--json", "--passphrase-stdin", stdin=f"{PASSPHRASE}\n{then}", **more)


def mount(desk, name, *words, env=(), verbs=()):
    """Puts one of the desk's own connectors behind it."""
    more = [word for pair in env for word in ("--env", pair)] + [f"--verb={pair}" for pair in verbs]
    words = ["--home", str(desk.home), "--json", "--passphrase-stdin", "--", "deskmate", "connector", *words]
    return json.loads(desk.run("gateway", "add", name, *more, *words, stdin=PASSPHRASE + "\n"))


def deploy(desk, template, bare=False, **params):
    """Makes an agent from a template, a bare one without the policies that go with it, and asks for its deployment."""
    made = owner(desk, "agents_create_agent", template=template, params=params, schedule="", **({"policies": []} if bare else {}))
    assert made["needs"] == [], made["needs"]
    return made["name"], owner(desk, "agents_deploy_agent", agentId=made["agentId"])


def make(desk, template, **more):
    """Makes an agent from a template and deploys it."""
    name, done = deploy(desk, template, **more)
    assert done["deployed"], {name: value for name, value in done.items() if name != "agent"}
    return name


def waiting(desk):
    listed = json.loads(person(desk, "inbox", "list"))
    return listed.get("requests", listed.get("items"))


def run(desk, name, approve=True, **given):
    """Runs it to its end; a person approves whatever waits for it on the way. Answers the run, and what was approved."""
    started = owner(desk, "agents_run_agent", agentId=name, input=given)["runId"]
    seen, approved = {}, []
    for _ in range(60):
        seen = owner(desk, "agents_wait_for_run", runId=started, timeoutSeconds=1)
        if seen["ended"]:
            break
        for request in waiting(desk):
            if request["kind"] != "handoff":
                person(desk, "inbox", *(["approve"] if approve else ["reject", "--reason", "not now"]), request["request"])
                approved.append(request)
    return seen, approved


def done(desk, name, **given):
    seen, approved = run(desk, name, **given)
    assert seen["state"] == "done", f"{seen['state']}: {seen.get('error')} {seen.get('log')}"
    return seen["result"], approved


def messages(desk, token):
    read = json.loads(desk.cli("call", "bridge_read_messages", "--json", "--input", '{"mark_read": true}', token=token))
    return [message["content"] for message in read["messages"]]


# Files.


def data_processor(desk, notes):
    (notes / "in").mkdir()
    (notes / "in" / "a.csv").write_text("name,town\n Ada ,Zürich\nGrace,\"New  York\"\n,\n")
    (notes / "in" / "b.csv").write_text("name,town\nAda,Zürich\nLinus,\"Helsinki, FI\"\n")
    (notes / "in" / "other.txt").write_text("left alone")
    name = make(desk, "data-processor", folder="notes/in", to={"who": "{{item.name}}", "where": "{{item.town}}"}, columns=["who", "where"])
    result, approved = done(desk, name)
    check(result["files"] == 2 and result["rows"] == 3, f"data-processor: two files become three rows: {result}")
    check(len(approved) == 1, "data-processor: a person approved what was written")
    written = (notes / "in" / result["output"].removeprefix("notes/in/")).read_text()
    check(written == 'who,where\nAda,Zürich\nGrace,New York\nLinus,"Helsinki, FI"\n', "data-processor: clean, once, in the order that was asked for")
    check(sorted(path.name for path in (notes / "in").iterdir()) == ["clean", "done", "other.txt"], "data-processor: what was read is put aside")
    result, approved = done(desk, name)
    check(result["stopped"] and not approved, "data-processor: without new files nothing is asked for")
    (notes / "in" / "c.csv").write_text("name,town\nMary,Rome\n")
    seen, _ = run(desk, name, approve=False)
    check(seen["state"] == "failed" and "not approved" in seen["error"] and (notes / "in" / "c.csv").exists(), "data-processor: what is rejected is not done")


def file_organizer(desk, notes):
    folder = notes / "mess"
    folder.mkdir()
    for name in ("a.txt", "b.pdf", "plain"):
        (folder / name).write_text(name)
    name = make(desk, "file-organizer", folder="notes/mess")
    result, _ = done(desk, name)
    check(result["moved"] == 3 and (folder / "pdf" / "b.pdf").exists() and (folder / "txt" / "a.txt").exists(), "file-organizer: files are in their places")
    result, approved = done(desk, name)
    check(result["stopped"] and not approved, "file-organizer: what is tidy stays")


def report_generator(desk, notes):
    (notes / "sales.csv").write_text("region,amount\nNorth,10\nSouth,4.5\nNorth,2\n")
    (notes / "reports").mkdir()
    name = make(desk, "report-generator", path="notes/sales.csv", of="amount", by="region", title="Sales", folder="notes/reports")
    first, _ = done(desk, name)
    text = (notes / first["report"].removeprefix("notes/")).read_text()
    check("| North | 2 | 12 | 6 |" in text and "16.5 in all" in text, "report-generator: figures are added up in groups")
    (notes / "sales.csv").write_text("region,amount\nNorth,10\nWest,1\n")
    second, _ = done(desk, name)
    text = (notes / second["report"].removeprefix("notes/")).read_text()
    changed = "North: 12 before, 10 now" in text and "West is new: 1" in text and "South is gone" in text
    check(changed, "report-generator: the second one says what changed since the first")


def content_moderator(desk, notes):
    comments = [{"id": 1, "text": "What a lovely day"}, {"id": 2, "text": "You idiot!"}, {"id": 3, "text": "idiotic weather"}]
    path = notes / "comments.jsonl"
    path.write_text("".join(json.dumps(comment) + "\n" for comment in comments))
    name = make(desk, "content-moderator", path="notes/comments.jsonl")
    result, _ = done(desk, name)
    check([found["item"]["id"] for found in result["handed_over"]] == [2], "content-moderator: what breaks the rules goes to a person, and nothing else")
    check(any(request["kind"] == "handoff" for request in waiting(desk)), "content-moderator: it waits in the inbox")
    with path.open("a") as file:
        file.write(json.dumps({"id": 4, "text": "free money, click here"}) + "\n")
    result, _ = done(desk, name)
    check([found["item"]["id"] for found in result["handed_over"]] == [4], "content-moderator: what was handed over is not handed over again")
    result, _ = done(desk, name)
    check(result["stopped"], "content-moderator: then nothing is new")


# The web.


class Shop(BaseHTTPRequestHandler):
    """A shop that can be down, and a channel that takes messages."""

    status, price, posted, key = 200, "10 EUR", [], None

    def do_GET(self):
        Shop.key = self.headers.get("x-key")
        body = f"<html><title>Shop</title><body><h1>Shop</h1><p>Teapot: {Shop.price}</p><p>About us</p></body></html>".encode()
        self.send_response(Shop.status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        Shop.posted.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def api_monitor(desk, token, base):
    mount(desk, "web", "http", "--allow", f"{base}/shop", "--header-env", "x-key=SHOP_KEY", env=["SHOP_KEY=secret:shop"],
          verbs=["check_url=outside.read", "read_page=outside.read"])
    name = make(desk, "api-monitor", urls=[f"{base}/shop"], has="Teapot", to="code")
    done(desk, name)
    check(messages(desk, token) == [] and Shop.key == "k3y of the shop", "api-monitor: what is up is not told, and the key comes from the secret store")
    Shop.status = 503
    done(desk, name)
    told = messages(desk, token)
    check(len(told) == 1 and "is down; it was up" in told[0] and "503" in told[0], f"api-monitor: what is down is told: {told}")
    result, _ = done(desk, name)
    check(result["stopped"] and messages(desk, token) == [], "api-monitor: once")
    Shop.status = 200
    done(desk, name)
    check("is up; it was down" in messages(desk, token)[0], "api-monitor: and so is its return")
    other = make(desk, "api-monitor", urls=[f"{base}/admin"], to="code")
    seen, _ = run(desk, other)
    check(seen["state"] == "failed" and "not allowed" in seen["error"], "api-monitor: an address that nobody named is not reached")


def web_scraper(desk, notes, base):
    (notes / "web").mkdir()
    name = make(desk, "web-scraper", urls=[f"{base}/shop"], keep="EUR", mount="web", folder="notes/web")
    result, _ = done(desk, name)
    check(result["found"] == [{"line": "Teapot: 10 EUR", "url": f"{base}/shop"}], f"web-scraper: the lines that were asked for: {result}")
    result, _ = done(desk, name)
    check(result["stopped"], "web-scraper: what has not changed is not written again")
    Shop.price = "12 EUR"
    result, _ = done(desk, name)
    text = (notes / result["output"].removeprefix("notes/")).read_text()
    check("new," in text and "12 EUR" in text and "gone," in text and "10 EUR" in text, "web-scraper: what changed is written down")


def slack_bot(desk, notes, base):
    person(desk, "secret", "set", "channel", then=f"{base}/hooks/T0/secret-part")
    mount(desk, "chat", "webhook", env=["WEBHOOK_URL=secret:channel"], verbs=["post_message=chat.post"])
    today = time.strftime("%m-%d", time.gmtime())
    (notes / "days.csv").write_text(f"date,text\n{today},Grace has her birthday\n01-01,Happy new year\n")
    name = make(desk, "slack-bot", path="notes/days.csv")
    Shop.posted = []
    mocks = {"file": {"text": f"date,text\n{time.strftime('%Y-%m-%d', time.gmtime())},Hello\n"}}
    tested = owner(desk, "agents_test_agent", agentId=name, scenario="Post what is due", mockData=mocks)
    foreseen = [act["operation"] for act in tested["acts"] if act["answer"] != "act"]
    check(tested["passed"] and foreseen == ["gateway_call"] and not Shop.posted, "slack-bot: a test foresees what would wait, and posts nothing")
    result, approved = done(desk, name, text="and hello")
    check(result["posted"] == 2 and len(approved) == 2, "slack-bot: a person saw both messages first")
    check(sorted(body["text"] for _, body in Shop.posted) == ["Grace has her birthday", "and hello"], "slack-bot: they are in the channel, once")
    check(all(path == "/hooks/T0/secret-part" for path, _ in Shop.posted), "slack-bot: at its secret address")
    check("secret-part" not in desk.cli("call", "gateway_list_calls", "--json", "--input", "{}", "--passphrase-stdin", stdin=PASSPHRASE + "\n"), "slack-bot: which is not told")


# Databases.


def database_analyst(desk, notes, token):
    path = notes / "sales.db"
    with sqlite3.connect(path) as database:
        database.executescript("create table sale (region text, amount real); insert into sale values ('North', 10), ('South', 4.5), ('North', 2)")
    mount(desk, "database", "database", "--sqlite", str(path), verbs=["query=outside.read"])
    sql = "select region, sum(amount) as amount from sale group by region order by region"
    name = make(desk, "database-analyst", sql=sql, by=["region"], to="code")
    done(desk, name)
    check("| North | 12" in messages(desk, token)[0], "database-analyst: SQLite is asked, and what it says is told")
    result, _ = done(desk, name)
    check(result["stopped"], "database-analyst: the same figures are not told twice")
    _, seen = deploy(desk, "database-analyst", sql="delete from sale returning region", to="code")
    check(not seen["deployed"] and "no_delete" in seen["message"], "database-analyst: its policies forbid to change anything")
    seen, _ = run(desk, make(desk, "database-analyst", bare=True, sql="delete from sale returning region", to="code"))
    check(seen["state"] == "failed" and "nothing can be changed" in seen["error"], f"database-analyst: and the connector cannot: {seen.get('error')}")
    server = os.environ.get("DESKMATE_TEST_PG", "skip")
    if server == "skip":
        print("SKIPPED: PostgreSQL is not there (scripts/with-postgres)")
        return
    psql(server, "drop table if exists template_sale; create table template_sale (region text, amount numeric); insert into template_sale values ('East', 7)")
    person(desk, "secret", "set", "pg", then=server)
    mount(desk, "pg", "database", "--seconds", "2", env=["DATABASE_URL=secret:pg"], verbs=["query=outside.read"])
    name = make(desk, "database-analyst", mount="pg", sql="select region, sum(amount) as amount from template_sale group by region", to="code")
    done(desk, name)
    check("| East | 7 |" in messages(desk, token)[0], "database-analyst: so is PostgreSQL")
    for bad in ("delete from template_sale returning region", "select 1; drop table template_sale", "select nextval('nowhere')", "select pg_sleep(30)",
                "select 1) asked; drop table template_sale; --"):
        seen, _ = run(desk, make(desk, "database-analyst", bare=True, mount="pg", sql=bad, to="code"))
        assert seen["state"] == "failed", f"{bad}: {seen}"
    check(psql(server, "select count(*) from template_sale").strip() == "1", "database-analyst: which cannot be changed or kept busy either")


def psql(server, sql):
    return subprocess.run(["psql", "-qtA", server, "-c", sql], check=True, capture_output=True, text=True).stdout


# Mail.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Door(threading.Thread):
    """TLS before the mailbox."""

    def __init__(self, context, port):
        super().__init__(daemon=True)
        self.inner, self.context = port, context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            try:
                raw, _ = self.listener.accept()
                client = self.context.wrap_socket(raw, server_side=True)
            except (OSError, ssl.SSLError):
                if self.listener.fileno() < 0:
                    return
                continue
            server = socket.create_connection(("127.0.0.1", self.inner))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    @staticmethod
    def copy(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def mailbox(port):
    for _ in range(100):
        try:
            box = imaplib.IMAP4("127.0.0.1", port)
            break
        except OSError:
            time.sleep(0.1)
    box.login("desk", "p4ss of the mailbox")
    return box


def letter(subject, text, sender="grace@example.org", more=""):
    return f"From: Grace <{sender}>\r\nTo: desk@example.net\r\nSubject: {subject}\r\nMessage-ID: <{subject.replace(' ', '.')}@example.org>\r\n{more}\r\n{text}\r\n".encode()


def email_assistant(desk, folder):
    context = certificate(folder)
    port = free_port()
    command = [Path(sys.executable).parent / "pymap", "--host", "127.0.0.1", "--port", str(port), "--no-tls", "dict", "--demo-data",
               "--demo-user", "desk", "--demo-password", "p4ss of the mailbox"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    loop, box = asyncio.new_event_loop(), Box()
    taking = loop.run_until_complete(loop.create_server(lambda: SMTP(box, loop=loop, hostname="mail.test"), "127.0.0.1", 0))
    smtp = taking.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    door = None
    try:
        own = mailbox(port)
        own.create("Drafts")
        own.select("INBOX")
        own.store("1:*", "+FLAGS", "\\Deleted")
        own.expunge()
        door = Door(context, port)
        door.start()
        own.append("INBOX", "", None, letter("Where is it", "When does my order come?"))
        own.append("INBOX", "", None, letter("Refund", "I want a refund, immediately."))
        own.append("INBOX", "", None, letter("On holiday", "How nice, my order", more="Auto-Submitted: auto-replied\r\n"))
        person(desk, "secret", "set", "mailbox", then="p4ss of the mailbox")
        words = ["mail", "--imap", f"imaps://localhost:{door.port}", "--ca-file", str(folder / "cert.pem"), "--user", "desk", "--from", "Desk <desk@example.net>"]
        verbs = ["read_mail=outside.read", "draft_mail=mail.draft", "send_mail=mail.send"]
        mount(desk, "mail", *words, env=["IMAP_PASSWORD=secret:mailbox"], verbs=verbs)
        name = make(desk, "email-assistant", answer="We look into it.")
        result, _ = done(desk, name)
        check(result["answered"] == 1 and result["handed_over"] == 1, f"email-assistant: one is answered, one handed over, a program gets nothing: {result}")
        own.select("Drafts")
        _, found = own.fetch("1", "(RFC822 FLAGS)")
        draft = message_from_bytes(found[0][1], policy=email.policy.default)
        check(draft["To"] == "grace@example.org" and draft["Subject"] == "Re: Where is it" and "We look into it." in draft.get_content(), "email-assistant: the answer is a draft")
        check(draft["In-Reply-To"] == "<Where.is.it@example.org>", "email-assistant: in its thread")
        own.select("INBOX")
        _, unseen = own.search(None, "UNSEEN")
        check(len(unseen[0].split()) == 3, "email-assistant: reading leaves no trace")
        result, _ = done(desk, name)
        check(result["stopped"], "email-assistant: nothing is read twice")
        mount(desk, "mail-out", *words, "--smtp", f"smtp://127.0.0.1:{smtp}", env=["IMAP_PASSWORD=secret:mailbox"], verbs=verbs)
        sending = make(desk, "email-assistant", mount="mail-out", answer="It is on its way.", send=True)
        result, approved = done(desk, sending)
        check(len(approved) >= 1, "email-assistant: a person saw what was sent")
        _, _, to, sent = box.wait(1)[0]
        check(to == ["grace@example.org"] and sent["Subject"] == "Re: Where is it" and "on its way" in sent.get_content(), "email-assistant: the answer is sent")
        check(len(box.mails) == 1, "email-assistant: once, and to nobody else")
    finally:
        loop.call_soon_threadsafe(taking.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        if door:
            door.listener.close()
        server.terminate()
        server.wait(10)


# Backups.


def serve(app):
    from cheroot.wsgi import Server

    server = Server(("127.0.0.1", 0), app)
    server.prepare()
    threading.Thread(target=server.serve, daemon=True).start()
    return server


def webdav(folder):
    from wsgidav.wsgidav_app import WsgiDAVApp

    folder.mkdir()
    return serve(WsgiDAVApp({
        "provider_mapping": {"/": str(folder)},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "simple_dc": {"user_mapping": {"*": {"desk": {"password": "p4ss of the disk"}}}},
        "logging": {"enable": False}, "verbose": 0, "dir_browser": {"enable": False}, "lock_storage": True, "property_manager": False,
    }))


class Signed:
    """Lets through what is signed as botocore signs it, and nothing else: moto itself does not look."""

    def __init__(self, app):
        self.app, self.seen, self.refused = app, 0, 0

    def __call__(self, environ, start_response):
        from urllib.parse import parse_qs, quote, unquote

        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        query = {key: values[0] for key, values in parse_qs(environ["QUERY_STRING"], keep_blank_values=True).items()}
        given = query.pop("X-Amz-Signature", "")
        auth = S3SigV4QueryAuth(Credentials("the-key", "the s3cret"), "s3", "eu-test-1")
        encoded = "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in sorted(query.items()))
        path = quote(unquote(environ["PATH_INFO"]), safe="/-_.~")
        request = AWSRequest(method=environ["REQUEST_METHOD"], url=f"http://{environ['HTTP_HOST']}{path}?{encoded}")
        request.context["timestamp"] = query.get("X-Amz-Date", "")
        request.headers["host"] = environ["HTTP_HOST"]
        signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        if signature != given:
            self.refused += 1
            start_response("403 Forbidden", [("content-length", "0")])
            return [b""]
        self.seen += 1
        return self.app(environ, start_response)


def s3():
    from moto.server import create_backend_app

    app = create_backend_app("s3")
    return serve(app), app


def backup_agent(desk, notes, folder, token):
    source, local = folder / "source", folder / "local"
    (source / "deep").mkdir(parents=True)
    local.mkdir()
    (source / "a.txt").write_text("one")
    (source / "deep" / "b.bin").write_bytes(os.urandom(9_000_000))
    (source / "key.env").write_text("secret")
    verbs = ["back_up=backup.make", "verify_backup=outside.read", "test_restore=outside.read"]
    mount(desk, "backup", "storage", "--read", str(source), "--deny", "*.env", "--to", str(local), verbs=verbs)
    name = make(desk, "backup-agent", to="code")
    result, approved = done(desk, name)
    check(result["files"] == 2 and result["verified"] and result["restored"], f"backup-agent: copied, checked and brought back: {result}")
    check(len(approved) == 1, "backup-agent: a person saw that files are copied")
    back = folder / "back"
    back.mkdir()
    desk.run("connector", "storage", "--to", str(local), "--restore", result["backup"], "--into", str(back))
    same = all((back / name).read_bytes() == (source / name).read_bytes() for name in ("a.txt", "deep/b.bin"))
    check(same and not (back / "key.env").exists(), "backup-agent: a person brings it back")
    block = max((path for path in local.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    block.write_bytes(b"x" * block.stat().st_size)
    seen, _ = run(desk, name)
    check(seen["state"] == "failed" and "damaged" in seen["error"], "backup-agent: damage is found")
    check("failed" in messages(desk, token)[0], "backup-agent: and told")

    disk = webdav(folder / "disk")
    try:
        person(desk, "secret", "set", "disk", then="p4ss of the disk")
        words = ["storage", "--read", str(source), "--to", f"http://127.0.0.1:{disk.bind_addr[1]}/desk/backups"]
        (folder / "disk" / "desk" / "backups").mkdir(parents=True)
        mount(desk, "dav", *words, "--user", "desk", env=["WEBDAV_PASSWORD=secret:disk"], verbs=verbs)
        result, _ = done(desk, make(desk, "backup-agent", mount="dav", to="code"))
        check(result["files"] == 3 and result["restored"], "backup-agent: so on WebDAV")
        mount(desk, "dav-open", *words, verbs=verbs)
        seen, _ = run(desk, make(desk, "backup-agent", mount="dav-open", to="code"))
        check(seen["state"] == "failed" and "401" in seen["error"], "backup-agent: which takes nothing without the password")
        messages(desk, token)
    finally:
        disk.stop()

    store, app = s3()
    try:
        import boto3

        endpoint = f"http://127.0.0.1:{store.bind_addr[1]}"
        boto3.client("s3", endpoint_url=endpoint, region_name="eu-test-1", aws_access_key_id="the-key", aws_secret_access_key="the s3cret").create_bucket(
            Bucket="desk", CreateBucketConfiguration={"LocationConstraint": "eu-test-1"})
        signed = Signed(app)
        store.wsgi_app = signed
        person(desk, "secret", "set", "s3-key", then="the-key")
        person(desk, "secret", "set", "s3-secret", then="the s3cret")
        words = ["storage", "--read", str(source), "--to", endpoint, "--bucket", "desk", "--region", "eu-test-1", "--prefix", "desk/of/ada"]
        mount(desk, "s3", *words, env=["S3_KEY=secret:s3-key", "S3_SECRET=secret:s3-secret"], verbs=[*verbs, "*=outside.read"])
        result, _ = done(desk, make(desk, "backup-agent", mount="s3", to="code"))
        check(result["files"] == 3 and result["restored"] and signed.seen > 5 and signed.refused == 0, f"backup-agent: so in S3, every request signed: {result}")
        mount(desk, "s3-wrong", *words, env=["S3_KEY=secret:s3-key", "S3_SECRET=secret:s3-key"], verbs=verbs)
        seen, _ = run(desk, make(desk, "backup-agent", mount="s3-wrong", to="code"))
        check(seen["state"] == "failed" and "403" in seen["error"] and signed.refused > 0, "backup-agent: which takes nothing with another signature")
        steps = [{"id": "put", "do": "gateway_call", "with": {"mount": "s3", "tool": "put_object", "arguments": {"name": "notes/a", "text": "hello"}}},
                 {"id": "list", "do": "gateway_call", "with": {"mount": "s3", "tool": "list_objects", "arguments": {"prefix": "notes/"}}},
                 {"id": "head", "do": "gateway_call", "with": {"mount": "s3", "tool": "head_object", "arguments": {"name": "notes/a"}}},
                 {"id": "get", "do": "gateway_call", "with": {"mount": "s3", "tool": "get_object", "arguments": {"name": "notes/a"}}},
                 {"id": "backups", "do": "gateway_call", "with": {"mount": "s3", "tool": "list_backups", "arguments": {}}},
                 {"id": "all", "do": "set", "with": {name: "{{steps.%s.result.structuredContent}}" % name for name in ("list", "head", "get", "backups")}}]
        made = owner(desk, "agents_create_agent", description="Keep a text", name="keeper", steps=steps, policies=[])
        owner(desk, "agents_deploy_agent", agentId=made["agentId"])
        result, _ = done(desk, "keeper")
        found = result["list"]["items"] == ["notes/a"] and result["head"]["bytes"] == 5 and result["get"]["text"] == "hello" and result["backups"]["count"] == 1
        check(found, f"backup-agent: single texts are put, listed, looked at and brought: {result}")
    finally:
        store.stop()


def own_templates(desk):
    folder = desk.home / "templates"
    folder.mkdir()
    (folder / "good.yaml").write_text("id: greeter\ntitle: Greeter\ndescription: Says hello.\ncategory: custom\napproval: false\ntask: Say hello to somebody.\n"
                                      "params: [{ name: to, kind: text, about: who is greeted }]\n"
                                      "steps: [{ id: tell, do: bridge_send_message, with: { to: '{{params.to}}', content: hello } }]\n")
    (folder / "bad.yaml").write_text("id: broken\ntitle: Broken\ndescription: x\ncategory: custom\ntask: x\nsteps: [{ id: a, do: rm_rf }]\n")
    desk.restart()
    listed = owner(desk, "agents_list_templates", type="agent")
    check(len(listed["agents"]) == 13 and any(one["id"] == "greeter" for one in listed["agents"]), "own templates: a good file is taken in")
    check(len(listed["problems"]) == 1 and "bad.yaml" in listed["problems"][0] and "rm_rf" in listed["problems"][0], "own templates: a bad one is named, with what is wrong")


def log_watcher(desk, notes, token):
    log = notes / "server.log"
    log.write_text("started\n10:01 ERROR disk is full\nanswered\n")
    name = make(desk, "log-watcher", path="notes/server.log", to="code")
    result, _ = done(desk, name)
    check(result["told"] == 1 and result["looked_at"] == 3, f"log-watcher: the line that speaks of an error is told: {result}")
    check(any("10:01 ERROR disk is full" in text for text in messages(desk, token)), "log-watcher: to whom it was to be")
    result, _ = done(desk, name)
    check(result["stopped"] and messages(desk, token) == [], "log-watcher: and not again")
    with log.open("a") as file:
        file.write("10:02 fine\n10:03 Traceback of something\n")
    result, _ = done(desk, name)
    told = messages(desk, token)
    check(result["told"] == 1 and "10:03 Traceback" in told[0] and "10:01" not in told[0], "log-watcher: only what is new is told")


def duplicate_finder(desk, notes, token):
    folder = notes / "pictures"
    folder.mkdir()
    for name, size in (("a.jpg", 9000), ("b.jpg", 9000), ("c.jpg", 9001), ("small1", 10), ("small2", 10)):
        (folder / name).write_bytes(b"x" * size)
    name = make(desk, "duplicate-finder", folder="notes/pictures", to="code")
    result, _ = done(desk, name)
    told = messages(desk, token)
    check(result["wasted"] == 9000 and len(result["groups"]) == 1, f"duplicate-finder: files with the same content are found: {result}")
    check(len(told) == 1 and "a.jpg" in told[0] and "b.jpg" in told[0] and "c.jpg" not in told[0], "duplicate-finder: and told")
    result, _ = done(desk, name)
    check(result["stopped"] and messages(desk, token) == [] and len(list(folder.iterdir())) == 5, "duplicate-finder: once, and nothing is deleted")


class Restartable(Desk):
    def restart(self):
        self.process.terminate()
        self.process.wait(10)
        (self.home / "desk.lock").unlink(missing_ok=True)
        command = [*self.binary, "up", "--home", str(self.home), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, env=self.env(), stdout=self.log, stderr=self.log)
        self.url = self._wait_for_url()


def main():
    folder = Path(tempfile.mkdtemp(prefix="deskmate-templates-"))
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{shop.server_port}"
    wanted = sys.argv[1:]
    try:
        with Restartable() as desk:
            desk.claim()
            token = desk.register("code")
            notes = folder / "notes"
            notes.mkdir()
            draft = folder / "draft.yaml"
            draft.write_text(RULES.replace("FOLDER", str(notes)))
            person(desk, "policy", "apply", str(draft))
            person(desk, "secret", "set", "shop", then="k3y of the shop")
            parts = {
                "data-processor": lambda: data_processor(desk, notes),
                "file-organizer": lambda: file_organizer(desk, notes),
                "report-generator": lambda: report_generator(desk, notes),
                "content-moderator": lambda: content_moderator(desk, notes),
                "api-monitor": lambda: api_monitor(desk, token, base),
                "web-scraper": lambda: web_scraper(desk, notes, base),
                "slack-bot": lambda: slack_bot(desk, notes, base),
                "database-analyst": lambda: database_analyst(desk, notes, token),
                "email-assistant": lambda: email_assistant(desk, folder),
                "backup-agent": lambda: backup_agent(desk, notes, folder, token),
                "log-watcher": lambda: log_watcher(desk, notes, token),
                "duplicate-finder": lambda: duplicate_finder(desk, notes, token),
                "own": lambda: own_templates(desk),
            }
            for name, part in parts.items():
                if not wanted or name in wanted:
                    part()
    finally:
        shop.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
