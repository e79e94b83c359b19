#!/usr/bin/env python3
"""A driver that writes without an end, in the way that its first argument says."""
import itertools
import json
import socketserver
import sys
import threading
import time

MODE, LISTEN, TOKEN_FILE = sys.argv[1:]
PIECE = b"x" * (1 << 20)
INVENTORY = {"instances": [], "load_balancers": [], "auxiliaries": [], "routes": []}
CAPABILITIES = {"protocol": 1, "name": "hostile", "machines": False, "facilities": []}


with open(TOKEN_FILE, "rb") as file:
    TOKEN = file.read().strip()


def flood(channel, piece=PIECE):
    try:
        while True:
            channel.write(piece)
            channel.flush()
    except OSError:
        pass


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            self.answer()
        except OSError:
            pass

    def answer(self):
        for at in itertools.count():
            line = self.rfile.readline()
            if not line:
                return
            path = line.split()[1].decode()
            token = b""
            while (header := self.rfile.readline()) not in (b"\r\n", b""):
                token = header if header.lower().startswith(b"authorization") else token
            if MODE == "endless-head":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nx-a: ")
                flood(self.wfile)
            is_capabilities = path.endswith("/capabilities")
            endless = MODE == "endless-capabilities" or (MODE == "endless-inventory" and not is_capabilities)
            if endless or MODE == "endless-error":
                status = "500 No" if MODE == "endless-error" else "200 OK"
                head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 1099511627776\r\n\r\n"
                self.wfile.write(head.encode() + b'{"error": "')
                flood(self.wfile)
            known = token.split()[-1:] == [TOKEN]
            body = json.dumps((CAPABILITIES if is_capabilities else INVENTORY) if known else {}).encode()
            status = "200 OK" if known else "401 Who"
            head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True


def main():
    if MODE == "stdout-without-line-end":
        flood(sys.stdout.buffer)
    if MODE == "stderr-without-line-end":
        flood(sys.stderr.buffer)
    if MODE == "endless-lines":
        flood(sys.stdout.buffer, b"x\n" * (1 << 19))
    host, port = LISTEN.rsplit(":", 1)
    server = Server((host, int(port)), Handler)
    print(json.dumps({"ready": True, "driver": f"{host}:{server.server_address[1]}"}), flush=True)
    if MODE == "floods-while-it-works":
        for channel in (sys.stdout.buffer, sys.stderr.buffer):
            threading.Thread(target=flood, args=(channel,), daemon=True).start()
        time.sleep(0.5)
    server.serve_forever()


main()
