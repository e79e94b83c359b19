#!/usr/bin/env python3
"""A CCM that takes memory: it writes without an end, or asks for much and never reads it."""
import json
import os
import resource
import socket
import ssl
import sys
import threading
import time

HOW = "MODE"
# The listener of the measurement: in its sandbox, a CCM cannot write files that other processes see.
DONE = ("127.0.0.1", int("REPORTS_TO"))
# The numbers of each replica; both replicas have the same user.
WATCHES, LISTS, SILENT = 300, 60, 60


def say(line):
    with socket.create_connection(DONE, timeout=10) as done:
        done.sendall(f"{line}\n".encode())
    sys.stderr.write(f"hostile: {line}\n")
    sys.stderr.flush()


def flood(channel):
    while True:
        channel.write(b"x" * (1 << 20))
        channel.flush()


def connect():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    at = (os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]))
    return context.wrap_socket(socket.create_connection(at, timeout=30))


def ask(method, path, body=None):
    """Sends a request; the connection, and the first line of the answer."""
    body = json.dumps(body).encode() if body else b""
    stream = connect()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/merge-patch+json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    stream.sendall(head.encode() + body)
    return stream, stream.recv(600).decode(errors="replace")


def unread():
    stream, text = ask("GET", "/api/v1/nodes?limit=50")
    stream.settimeout(2)
    try:
        while piece := stream.recv(1 << 20):
            text += piece.decode(errors="replace")
    except OSError:
        pass
    nodes = [node["metadata"]["name"] for node in json.loads(text[text.index("{") :])["items"]]
    large = {"metadata": {"annotations": {"example.com/large": "x" * 250_000}}}
    patched = [ask("PATCH", f"/api/v1/nodes/{node}", large)[1].startswith("HTTP/1.1 200") for node in nodes]
    say(f"{sum(patched)} large Nodes")
    held = []
    for what, number, path in [
        ("lists", LISTS, "/api/v1/nodes"),
        ("watches", WATCHES, "/api/v1/nodes?watch=1"),
        ("silent", SILENT, None),
    ]:
        served = refused = failed = 0
        for _ in range(number):
            try:
                if path is None:
                    held.append(connect())
                    served += 1
                    continue
                stream, answer = ask("GET", path)
                held.append(stream)
                served += answer.startswith("HTTP/1.1 200")
                refused += answer.startswith("HTTP/1.1 429") and "retry-after: 1" in answer.lower()
            except OSError:
                failed += 1
        say(f"{what}: {served} served, {refused} asked to wait, {failed} closed")
    time.sleep(3600)


def main():
    if HOW == "writes":
        say("writes to both outputs without a line end")
        for channel in (sys.stdout.buffer, sys.stderr.buffer):
            threading.Thread(target=flood, args=(channel,)).start()
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    unread()


if HOW != "writes":
    with open("/var/run/secrets/kubernetes.io/serviceaccount/token", encoding="utf-8") as file:
        TOKEN = file.read().strip()
main()
