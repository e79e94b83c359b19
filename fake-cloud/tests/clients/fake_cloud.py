"""The fake cloud's driver API, as far as the clients' tests use it. `cargo xtask clients` starts the cloud and sets the variables."""

import json
import os
import random
import urllib.error
import urllib.request

URL = os.environ["FAKE_CLOUD_URL"]
TOKEN = os.environ["FAKE_CLOUD_TOKEN"]
DRIVER_URL = os.environ["FAKE_CLOUD_DRIVER_URL"]
DRIVER_TOKEN = os.environ["FAKE_CLOUD_DRIVER_TOKEN"]


def driver(method, path, body=None):
    """One call of the driver API; what it answers, or None."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{DRIVER_URL}/driver/v1/{path}", data=data, method=method)
    request.add_header("Authorization", f"Bearer {DRIVER_TOKEN}")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def reset():
    """An empty cloud."""
    driver("POST", "reset")


def put_instances(*instances):
    """Machines, each with fields of the driver API's instance beyond id and name."""
    driver("POST", "instances", list(instances))


def inventory():
    """Everything the cloud holds."""
    return driver("GET", "inventory")


def settings(**wanted):
    """Changes settings of the cloud."""
    driver("PUT", "settings", wanted)


def fault(effect, calls=1, **matching):
    """Puts a fault in force."""
    return driver("PUT", f"faults/{random.randrange(1, 1 << 53)}", {"matching": matching, "effect": effect, "calls": calls})


def journal(after=0):
    """Entries of the journal numbered above `after`."""
    return driver("GET", f"journal?after={after}")["entries"]


def lowered(headers):
    """Headers by name in lower case."""
    return {name.lower(): value for name, value in headers.items()}


def raw(method, path, body=None, token=TOKEN):
    """A call of the cloud API without a client: status, headers and body."""
    request = urllib.request.Request(f"{URL}{path}", data=body, method=method)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return answer.status, lowered(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, lowered(error.headers), error.read()
