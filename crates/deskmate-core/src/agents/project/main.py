"""Does what TASK.md says. What it prints is the run's log; the last line, as JSON, is its result."""

import json
import pathlib

import desk


def work(call, calls):
    """Makes the calls, one after another, and answers what came of each."""
    return [{"operation": operation, "answer": call(operation, **json.loads(fields))} for operation, fields in calls]


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    print((here / "TASK.md").read_text().strip())
    done = work(desk.call, json.loads((here / "calls.json").read_text()))
    print(json.dumps({"calls": len(done), "input": desk.given()}))
