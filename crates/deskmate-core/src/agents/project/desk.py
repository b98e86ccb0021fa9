"""Speaks to the desk as the agent whose run this is."""

import json
import os
import urllib.request


def call(operation, **fields):
    """Calls an operation of the desk, and answers what it says."""
    request = urllib.request.Request(
        f"{os.environ['DESKMATE_URL']}/api/{operation}",
        data=json.dumps(fields).encode(),
        headers={"authorization": f"Bearer {os.environ['DESKMATE_TOKEN']}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def given():
    """What the run was started with."""
    with open("input.json") as file:
        return json.load(file)
